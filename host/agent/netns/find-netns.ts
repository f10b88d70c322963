/**
 * Finds the network namespace of an attachment whose row lacks it: a row taken in from the API server, or written by an
 * older Berth. Only the runtime's record of the attachment, or the coordinator's pair, proves that a namespace is the
 * attachment's: an address in a namespace proves nothing.
 */

import { existsSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { addressesIn } from "../../kernel/netlink/address/address.ts";
import { listAddresses } from "../../kernel/netlink/address/requests.ts";
import { createConversation } from "../../kernel/netlink/conversation.ts";
import { type Link, linkOf } from "../../kernel/netlink/link/link.ts";
import { listLinks } from "../../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { cookieOf, isNetnsError, isOwnNetns, OWN_NETNS } from "../../kernel/netns.ts";
import { openNamespace } from "../../kernel/open-namespace.ts";
import { insteadOf, tryOr } from "../../lib/try-or.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import { listPaths, NETNS_FOLDERS } from "../request/live-namespaces.ts";
import { type CachedAttachment, readRuntimeCache } from "../request/runtime-cache.ts";
import { isNumber } from "./pod-netns.ts";

/** Where runtimes keep the results of ADDs: those of libcni, and Multus's of further networks. */
const RESULT_FOLDERS: readonly string[] = ["/var/lib/cni/results", "/var/lib/cni/multus/results"];

/** An attachment whose namespace is looked for. */
export type SoughtNic = Pick<Allocation, "owner" | "containerId" | "ifName" | "ip" | "netns">;

export type FoundNetns =
  | { readonly kind: "proven"; readonly netns: string; readonly netnsCookie: bigint | undefined }
  /** The runtime has no record of the attachment, and no namespace has the address. */
  | { readonly kind: "absent" }
  /** `candidates`: paths of namespaces that have the address, and that no other row is known to mean. */
  | { readonly kind: "unknown"; readonly candidates: readonly string[] };

interface Contents {
  readonly path: string;
  readonly cookie: bigint | undefined;
  readonly links: readonly Link[];
  readonly ips: readonly Ip[];
}

/** `known`: paths of the namespaces of the journal's attachments, whose directories are searched as well. */
export function findNetns(
  nic: SoughtNic,
  known: readonly string[],
  results: readonly string[] = RESULT_FOLDERS,
): FoundNetns {
  const records = readRuntimeCache(results).attachments.filter((each) => isOf(each, nic));
  const taken = new Set(known.filter((path) => path !== nic.netns).map(resolve));
  const folders = new Set([...known.filter((path) => !isNumber(path)).map(dirname), ...NETNS_FOLDERS].map(resolve));
  const own = [...records.flatMap(({ netns }) => netns ?? []), nic.netns ?? ""].filter((path) => path !== "");
  const paths = new Set([...own, ...[...folders].flatMap(listPaths).filter((path) => !taken.has(path))]);
  const containers = containersOf(nic, records);
  const candidates: string[] = [];
  for (const path of paths) {
    const found = readContents(path);
    if (found === undefined) continue;
    const isProven = records.some((record) => isRecorded(record, found)) || hasPair(found, containers);
    if (isProven) return { kind: "proven", netns: path, netnsCookie: found.cookie };
    if (found.ips.some((ip) => equalIp(ip, nic.ip))) candidates.push(path);
  }
  const isAbsent = records.length === 0 && candidates.length === 0 && results.some((folder) => existsSync(folder));
  return isAbsent ? { kind: "absent" } : { kind: "unknown", candidates };
}

function isOf({ containerId, ifName, args }: CachedAttachment, nic: SoughtNic): boolean {
  if (ifName !== nic.ifName) return false;
  return nic.containerId === UNKNOWN_CONTAINER
    ? args.get("K8S_POD_UID") === nic.owner
    : containerId === nic.containerId;
}

/** A path in a record may lead to another namespace by now: that has no link with the NIC's MAC address. */
function isRecorded({ netns, ifName, result }: CachedAttachment, { path, links }: Contents): boolean {
  if (netns === undefined || resolve(netns) !== resolve(path)) return false;
  const isNic = (each: (typeof result.interfaces)[number]): boolean => each.name === ifName && Boolean(each.sandbox);
  const mac = result.interfaces.find(isNic)?.mac;
  return mac !== undefined && links.some((link) => link.mac === mac);
}

/** The containers of the attachment's pod: the row's, the runtime's, and those that the node's ends of pairs name. */
function containersOf({ owner, containerId }: SoughtNic, records: readonly CachedAttachment[]): readonly string[] {
  if (containerId !== UNKNOWN_CONTAINER) return [containerId];
  using socket = openRouteSocket(OWN_NETNS);
  const named = listLinks(createConversation(socket)).flatMap((message) => {
    const pair = parseAlias(linkOf(message).alias);
    return pair?.owner === owner ? pair.containerId : [];
  });
  return [...named, ...records.map((record) => record.containerId)];
}

function hasPair({ links }: Contents, containers: readonly string[]): boolean {
  return containers.some((containerId) => {
    const { pod } = nameVeth(containerId);
    return links.some(({ name, mac }) => name === pod.name && mac === pod.mac);
  });
}

/** Returns undefined for a path that leads into no network namespace, or into the node's own. Throws NetlinkError. */
function readContents(path: string): Contents | undefined {
  return insteadOf(isNetnsError, undefined, () => {
    using namespace = openNamespace(path);
    if (isOwnNetns(namespace)) return undefined;
    const { route } = namespace;
    return {
      ...{ path, cookie: cookieOf(namespace), links: listLinks(route).map(linkOf) },
      ips: addressesIn(listAddresses(route)).map(({ prefix }) => prefix.ip),
    };
  });
}

function resolve(path: string): string {
  return tryOr(() => realpathSync(path), path);
}
