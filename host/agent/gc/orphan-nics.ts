/**
 * The network namespace of an orphan: finding it when the journal has no path of it, and taking addresses off its
 * NICs and setting those down, so that the orphan neither answers for the addresses nor sends from them.
 */

import * as fs from "node:fs";
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { NetnsStatus } from "../../ipam/leak.ts";
import { mayBeShared } from "../../ipam/retention.ts";
import { EINVAL, ENODEV, ENOENT, ENOTTY } from "../../kernel/errno.ts";
import { type Address, addressOf } from "../../kernel/netlink/address/address.ts";
import { deleteAddress, listAddresses } from "../../kernel/netlink/address/requests.ts";
import { createConversation } from "../../kernel/netlink/conversation.ts";
import { NetlinkError, unlessRefused } from "../../kernel/netlink/error.ts";
import { IFF_LOOPBACK } from "../../kernel/netlink/link/constants.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { listLinks, setLink } from "../../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { isOwnNetns, NetnsError } from "../../kernel/netns.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import type { KubeEvent } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Workload } from "../../resources/member.ts";

interface OrphanNics {
  /** Path of the orphan's network namespace, as its ADD gave it. */
  readonly netns: string;
  readonly ips: readonly Ip[];
  /**
   * Whether a virtual machine may run in the pod. It has the address inside, where no link of the pod shows it: all
   * links of the pod are set down then.
   */
  readonly hasMachine: boolean;
}

/**
 * Returns the names of the links that were set down; none if no link has one of the addresses. Undefined if the path
 * is no network namespace of a pod. Throws NetlinkError when the kernel refuses, NetnsError when the namespace cannot
 * be entered.
 */
export function fenceNics({ netns, ips, hasMachine }: OrphanNics): readonly string[] | undefined {
  try {
    return isOwnNetns(netns) ? undefined : fenceIn(netns, ips, hasMachine && !isReused(netns));
  } catch (error) {
    if (error instanceof NetnsError && NO_NAMESPACE.has(error.errno)) return undefined;
    throw error;
  }
}

/** Process IDs are reused: such a namespace is recognised only by an address. */
function isReused(netns: string): boolean {
  return netns.startsWith("/proc/");
}

function fenceIn(netns: string, ips: readonly Ip[], isAll: boolean): readonly string[] {
  using socket = openRouteSocket(netns);
  const conversation = createConversation(socket);
  const addresses = listAddresses(conversation).map(addressOf).filter(isWanted(ips));
  const links = listLinks(conversation)
    .map(linkOf)
    .filter(({ flags }) => (flags & IFF_LOOPBACK) === 0);
  const fenced = links.filter(({ index }) => isAll || addresses.some(({ link }) => link === index));
  for (const address of addresses) deleteAddress(conversation, address);
  for (const { index } of fenced) unlessRefused([ENODEV], () => setLink(conversation, index, { up: false }));
  return fenced.map(({ name }) => name);
}

function isWanted(ips: readonly Ip[]) {
  return (address: Address | undefined): address is Address =>
    address !== undefined && ips.some((ip) => equalIp(ip, address.prefix.ip));
}

/** The directory of containerd and CRI-O. */
const USUAL_FOLDER = "/run/netns";

/**
 * Returns the path of the first namespace that has the address and is not one of `known`, the namespaces of the
 * journal's attachments; their directories are searched. Undefined if there is none.
 */
function findNetns(ip: Ip, known: readonly string[]): string | undefined {
  const taken = new Set(known.map(resolve));
  const folders = new Set([...known.map(dirname), USUAL_FOLDER].map(resolve));
  for (const folder of folders) {
    if (folder.startsWith("/proc/")) continue;
    const found = list(folder).find((path) => !taken.has(path) && hasAddressAnywhere(path, ip));
    if (found !== undefined) return found;
  }
  return undefined;
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function resolve(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function hasAddressAnywhere(netns: string, ip: Ip): boolean {
  try {
    using socket = openRouteSocket(netns);
    return listAddresses(createConversation(socket))
      .map(addressOf)
      .some((address) => address !== undefined && equalIp(address.prefix.ip, ip));
  } catch (error) {
    if (error instanceof NetnsError) return false;
    throw error;
  }
}

/** The port to pods' NICs for work other than attaching them: the kernel's, unless a caller gives another. */
export interface NicAccess {
  readonly readNetnsStatus: typeof readNetnsStatus;
  readonly findNetns: typeof findNetns;
  readonly fenceNics: typeof fenceNics;
}

export const KERNEL_NICS: NicAccess = { readNetnsStatus, findNetns, fenceNics };

/** An address that is retained for a workload. */
export type OrphanRow = Allocation & { readonly workload: Workload };

export interface FenceDeps {
  /** Paths of the network namespaces of all attachments in the journal. */
  readonly knownNetns: () => Promise<readonly string[]>;
  /** Default: the kernel's. */
  readonly nics?: NicAccess | undefined;
  readonly node: string;
  /** The setting `enableFencing`, as it is now. */
  readonly isEnabled: () => boolean;
  /** Removes the links, routes and rules that the coordinator created for the attachment, also on the node. */
  readonly detach: (row: Allocation) => Promise<void>;
  readonly emit: (event: KubeEvent) => void;
  readonly log: Log;
}

/**
 * Takes the address off the orphan's NIC unless fencing is disabled. Returns whether no NIC of this node has the
 * address; false also if the orphan's namespace cannot be found. Rejects when the kernel refuses.
 */
export async function fenceOrphan(deps: FenceDeps, orphan: OrphanRow): Promise<boolean> {
  const { readNetnsStatus, findNetns, fenceNics } = deps.nics ?? KERNEL_NICS;
  const row = orphan.netns === undefined ? { ...orphan, netns: findNetns(orphan.ip, await deps.knownNetns()) } : orphan;
  const { netns, ip, workload } = row;
  const status = await readNetnsStatus(row);
  if (status === "gone") return true;
  if (status === "unknown" || netns === undefined) return false;
  const hasMachine = mayBeShared(workload);
  if (!deps.isEnabled()) return status === "there" && !hasMachine;
  const links = fenceNics({ netns, ips: [ip], hasMachine }) ?? [];
  // The container of an address adopted from the API server is unknown; the next attachment of the address replaces
  // the routes.
  if (row.containerId !== UNKNOWN_CONTAINER) await deps.detach(row);
  if (links.length > 0) report(deps, row, links);
  return (await readNetnsStatus(row)) !== "inUse";
}

function report({ node, emit, log }: FenceDeps, row: OrphanRow, links: readonly string[]): void {
  const { namespace, pod, owner, ifName, pool, workload } = row;
  const address = formatIp(row.ip);
  const names = links.map((link) => `"${link}"`).join(", ");
  const text = `Pod ${namespace}/${pod} (UID ${owner}) is deleted but its sandbox still runs on node "${node}"; removed address ${address} from it and set ${names} down`;
  log.info({ address, pool, namespace, pod, owner, ifName, links }, text);
  emit({
    regarding: {
      kind: workload.kind,
      apiVersion: apiVersionOf(workload),
      name: workload.name,
      uid: workload.uid,
      namespace: workload.namespace ?? namespace,
    },
    type: "Warning",
    reason: "OrphanFenced",
    action: "Fence",
    note: text,
  });
}

function apiVersionOf({ kind }: Workload): string {
  if (kind === "StatefulSet") return "apps/v1";
  return kind === "IPAMClaim" ? "k8s.cni.cncf.io/v1alpha1" : "kubevirt.io/v1";
}

/** Reads whether a pod's NIC still exists in its network namespace and has its address. */
// Not node:fs/promises, which loads the line editor of the REPL: `fs.promises` is loaded when it is read.

/** The NIC that an address was assigned to. */
type AttachedNic = Pick<Allocation, "netns" | "ifName" | "ip">;

/**
 * Returns whether the NIC's network namespace still exists and the NIC still has its address. "unknown" for a path
 * below a folder that is missing: the agent may see another /run or /proc than the runtime does.
 */
export async function readNetnsStatus({ netns, ifName, ip }: AttachedNic): Promise<NetnsStatus> {
  if (netns === undefined || netns === "") return "unknown";
  const found = await exists(netns);
  if (found === undefined) return "unknown";
  if (found) return hasAddress(netns, ifName, ip) ? "inUse" : "there";
  return (await exists(dirname(netns))) === true ? "gone" : "unknown";
}

/** False also when the path is no namespace any more; true when the kernel fails to answer, which keeps the address. */
function hasAddress(netns: string, ifName: string, ip: Ip): boolean {
  try {
    return observeLink(netns, ifName)?.addresses.some((address) => equalIp(address.ip, ip)) ?? false;
  } catch (error) {
    if (error instanceof NetlinkError) return true;
    if (error instanceof NetnsError) return !NO_NAMESPACE.has(error.errno);
    throw error;
  }
}

/** Errors of the kernel for a path that is no network namespace. */
const NO_NAMESPACE: ReadonlySet<number> = new Set([ENOENT, EINVAL, ENOTTY]);

/** Undefined when that cannot be found out. */
async function exists(path: string): Promise<boolean | undefined> {
  try {
    await fs.promises.stat(path);
    return true;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? false : undefined;
  }
}
