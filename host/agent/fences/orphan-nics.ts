/**
 * Takes addresses off the NICs of an orphan, in a network namespace that is proven to be the orphan's, and sets those
 * NICs down, so that the orphan neither answers for the addresses nor sends from them. The namespace answers for none
 * that comes up later.
 */

import type { NetnsStatus } from "../../ipam/leak.ts";
import { mayBeShared } from "../../ipam/retention.ts";
import { ENODEV } from "../../kernel/errno.ts";
import { type Address, addressesIn } from "../../kernel/netlink/address/address.ts";
import { deleteAddress, listAddresses } from "../../kernel/netlink/address/requests.ts";
import { unlessRefused } from "../../kernel/netlink/error.ts";
import { IFF_LOOPBACK } from "../../kernel/netlink/link/constants.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { listLinks, setLink } from "../../kernel/netlink/link/requests.ts";
import { isOwnNetns } from "../../kernel/netns.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import { hasIpv6, SysctlError, writeSysctls } from "../../kernel/sysctl.ts";
import type { KubeEvent } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { insteadOf } from "../../lib/try-or.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import { isListedKind, type Workload } from "../../resources/member.ts";
import { type FoundNetns, findNetns, type SoughtNic } from "../netns/find-netns.ts";
import { isNumber, type NetnsOfNic, openPodNetns, readCookie, readNetnsStatus } from "../netns/pod-netns.ts";

interface OrphanNics extends NetnsOfNic {
  /** Path of the orphan's network namespace, as its ADD gave it. */
  readonly netns: string;
  readonly ips: readonly Ip[];
  /**
   * Whether a virtual machine may run in the pod. It has the address inside, where no link of the pod shows it: all
   * links of the pod are set down then.
   */
  readonly hasMachine: boolean;
  /** Whether the pod is gone, so that its namespace need not answer for anything any more. Default: it is. */
  readonly isOrphan?: boolean;
}

/**
 * Returns the names of the links that were set down; none if no link has one of the addresses. Undefined if there is
 * no such network namespace of a pod any more, whatever its path leads to now. Throws NetlinkError when the kernel
 * refuses, NetnsError when the namespace cannot be entered.
 */
function fenceNics({ ips, hasMachine, isOrphan = true, ...place }: OrphanNics): readonly string[] | undefined {
  using namespace = openPodNetns(place);
  if (namespace === undefined || isOwnNetns(namespace)) return undefined;
  // The number of a process proves nothing.
  const isProven = place.netnsCookie !== undefined || !isNumber(place.netns);
  if (isProven && isOrphan) mute(namespace);
  return fenceIn(namespace, ips, hasMachine && isProven);
}

/**
 * Lets no link of the namespace answer for its addresses, not even a link or an address that comes later
 * (networking/ip-sysctl.rst). A kernel that refuses leaves that to the next look.
 */
function mute({ fd, path }: OpenNamespace): void {
  const six = hasIpv6() ? ["all", "default"].map((link) => [`ipv6/conf/${link}/disable_ipv6`, "1"] as const) : [];
  const values = new Map([["ipv4/conf/all/arp_ignore", "8"], ...six]);
  insteadOf(
    (error) => error instanceof SysctlError,
    undefined,
    () => writeSysctls({ fd, path }, values),
  );
}

function fenceIn({ route }: OpenNamespace, ips: readonly Ip[], isAll: boolean): readonly string[] {
  const isWanted = ({ prefix }: Address): boolean => ips.some((ip) => equalIp(ip, prefix.ip));
  const addresses = addressesIn(listAddresses(route)).filter(isWanted);
  const links = listLinks(route)
    .map(linkOf)
    .filter(({ flags }) => (flags & IFF_LOOPBACK) === 0);
  const fenced = links.filter(({ index }) => isAll || addresses.some(({ link }) => link === index));
  for (const address of addresses) deleteAddress(route, address);
  for (const { index } of fenced) unlessRefused([ENODEV], () => setLink(route, index, { up: false }));
  return fenced.map(({ name }) => name);
}

/** The port to pods' NICs for work other than attaching them: the kernel's, unless a caller gives another. */
export interface NicAccess {
  /** Returns the cookie of the namespace at the path; undefined if that is unknown. */
  readonly readCookie: (netns: string) => bigint | undefined;
  readonly readNetnsStatus: (nic: NetnsOfNic & Pick<Allocation, "ifName" | "ip">) => Promise<NetnsStatus>;
  readonly findNetns: (nic: SoughtNic, known: readonly string[]) => FoundNetns;
  readonly fenceNics: (nics: OrphanNics) => readonly string[] | undefined;
}

export const KERNEL_NICS: NicAccess = {
  readCookie,
  readNetnsStatus,
  findNetns: (nic, known) => findNetns(nic, known),
  fenceNics,
};

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
  /** The address is off the NIC, whose namespace may still be there. */
  readonly remember: (row: Allocation) => void;
  readonly log: Log;
}

/**
 * Takes the address off the orphan's NIC unless fencing is disabled. Returns whether no NIC of this node has the
 * address; false also if no namespace is proven to be the orphan's. Rejects when the kernel refuses.
 */
export async function fenceOrphan(deps: FenceDeps, orphan: Allocation): Promise<boolean> {
  const { readNetnsStatus, fenceNics } = deps.nics ?? KERNEL_NICS;
  const row = await withProof(deps, orphan);
  const { netns, netnsCookie, ip, workload } = row;
  const status = await readNetnsStatus(row);
  if (status === "gone") return true;
  if (status === "unknown" || netns === undefined || !row.isProven) return false;
  const hasMachine = mayBeShared(workload);
  if (!deps.isEnabled()) return status === "there" && !hasMachine;
  const links = fenceNics({ netns, netnsCookie, ips: [ip], hasMachine });
  if (links === undefined) return (await readNetnsStatus(row)) === "gone";
  // The container of an address adopted from the API server is unknown; the next attachment of the address replaces
  // the routes.
  if (row.containerId !== UNKNOWN_CONTAINER) await deps.detach(row);
  if (links.length > 0) report(deps, row, links);
  const isOff = (await readNetnsStatus(row)) !== "inUse";
  if (isOff) deps.remember(row);
  return isOff;
}

/** A row without a cookie, and without another proof, means a path only. */
async function withProof(
  { nics = KERNEL_NICS, knownNetns }: FenceDeps,
  orphan: Allocation,
): Promise<Allocation & { readonly isProven: boolean }> {
  if (orphan.netnsCookie !== undefined) return { ...orphan, isProven: true };
  const found = nics.findNetns(orphan, await knownNetns());
  return found.kind === "proven" ? { ...orphan, ...found, isProven: true } : { ...orphan, isProven: false };
}

function report({ node, emit, log }: FenceDeps, row: Allocation, links: readonly string[]): void {
  const { namespace, pod, owner, ifName, pool, workload } = row;
  const address = formatIp(row.ip);
  const names = links.map((link) => `"${link}"`).join(", ");
  const text = `Pod ${namespace}/${pod} (UID ${owner}) is deleted but its sandbox still runs on node "${node}"; removed address ${address} from it and set ${names} down`;
  log.info({ address, pool, namespace, pod, owner, ifName, links }, text);
  emit({
    regarding:
      workload === undefined || isListedKind(workload.kind)
        ? { kind: "Pod", apiVersion: "v1", name: pod, uid: owner, namespace }
        : {
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
