/**
 * The network namespace of an attachment, which its cookie proves: paths, numbers of processes and inode numbers are
 * used again. Where the row has no cookie, its path has to do.
 */

import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { NetnsStatus } from "../../ipam/leak.ts";
import { EINVAL, ENOENT, ENOTTY } from "../../kernel/errno.ts";
import { addressesIn } from "../../kernel/netlink/address/address.ts";
import { listAddresses } from "../../kernel/netlink/address/requests.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { cookieOf, isNetnsError, NetnsError, readNetnsIdentity } from "../../kernel/netns.ts";
import { type OpenNamespace, openNamespace } from "../../kernel/open-namespace.ts";
import { isMissing } from "../../lib/describe.ts";
import { insteadOf } from "../../lib/try-or.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import { listPaths, NETNS_FOLDERS, processPaths } from "../request/live-namespaces.ts";

/** A namespace by path, and by cookie where that is known. */
export type NetnsOfNic = Pick<Allocation, "netns" | "netnsCookie">;

/** Errors of the kernel for a path that is no network namespace. */
const NO_NAMESPACE: ReadonlySet<number> = new Set([ENOENT, EINVAL, ENOTTY]);

/** Returns the cookie of the namespace at the path; undefined if there is none, or the kernel knows no cookies. */
export function readCookie(netns: string): bigint | undefined {
  return insteadOf(isNetnsError, undefined, () => readNetnsIdentity(netns).cookie);
}

/** Returns whether the path ends with a process. */
export function isNumber(netns: string): boolean {
  return netns.startsWith("/proc/");
}

/**
 * Opens the namespace at its path or, if that leads elsewhere by now, at another that is known to lead to it. Returns
 * undefined if there is none. Throws NetnsError if that cannot be found out.
 */
export function openPodNetns({ netns, netnsCookie }: NetnsOfNic): OpenNamespace | undefined {
  if (netns === undefined || netns === "") return undefined;
  if (netnsCookie === undefined) return openIf(netns, () => true);
  const isOwn = (namespace: OpenNamespace): boolean => cookieOf(namespace) === netnsCookie;
  const found = openIf(netns, isOwn);
  if (found !== undefined) return found;
  for (const path of otherPaths(netns)) {
    const other = openIf(path, isOwn);
    if (other !== undefined) return other;
  }
  return undefined;
}

function openIf(path: string, isWanted: (namespace: OpenNamespace) => boolean): OpenNamespace | undefined {
  try {
    const opened = openNamespace(path);
    if (isWanted(opened)) return opened;
    opened[Symbol.dispose]();
  } catch (error) {
    if (!(error instanceof NetnsError && NO_NAMESPACE.has(error.errno))) throw error;
  }
  return undefined;
}

/** Returns the paths of runtimes' namespaces, and those of all processes: a process keeps an unmounted one. */
function otherPaths(netns: string): readonly string[] {
  const own = isNumber(netns) ? [] : [dirname(netns)];
  return [...[...new Set([...own, ...NETNS_FOLDERS])].flatMap(listPaths), ...processPaths()];
}

/**
 * Returns whether the NIC's network namespace still exists, and has the address on any of its links. "unknown" for a
 * path below a folder that is missing: the agent may see another /run or /proc than the runtime does.
 */
export async function readNetnsStatus(nic: NetnsOfNic & Pick<Allocation, "ip">): Promise<NetnsStatus> {
  const { netns, netnsCookie, ip } = nic;
  if (netns === undefined || netns === "") return "unknown";
  if (netnsCookie === undefined) {
    const found = await exists(netns);
    if (found === undefined) return "unknown";
    if (!found) return (await exists(dirname(netns))) === true ? "gone" : "unknown";
  }
  try {
    using namespace = openPodNetns(nic);
    if (namespace !== undefined) return hasAddress(namespace, ip) ? "inUse" : "there";
  } catch (error) {
    // The address stays.
    if (error instanceof NetlinkError || error instanceof NetnsError) return "inUse";
    throw error;
  }
  if (netnsCookie === undefined) return "there";
  return isNumber(netns) || (await exists(dirname(netns))) === true ? "gone" : "unknown";
}

/** Throws NetlinkError. */
function hasAddress({ route }: OpenNamespace, ip: Ip): boolean {
  return addressesIn(listAddresses(route)).some(({ prefix }) => equalIp(prefix.ip, ip));
}

/** Undefined when that cannot be found out. */
function exists(path: string): Promise<boolean | undefined> {
  const found = stat(path).then(() => true);
  return found.catch((error) => (isMissing(error) ? false : undefined));
}
