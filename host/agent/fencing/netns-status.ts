/** Reads whether a pod's NIC still exists in its network namespace and has its address. */
// Not node:fs/promises, which loads the line editor of the REPL: `fs.promises` is loaded when it is read.
import * as fs from "node:fs";
import { dirname } from "node:path";
import type { NetnsStatus } from "../../ipam/leak.ts";
import { EINVAL, ENOENT, ENOTTY } from "../../kernel/errno.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";

/** The NIC that an address was assigned to. */
type AttachedNic = Pick<Allocation, "netns" | "ifName" | "ip">;

/**
 * Returns whether the NIC's network namespace still exists and the NIC still has its address. "unknown" for a path below a folder that is missing: the
 * agent may see another /run or /proc than the runtime does.
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
export const NO_NAMESPACE: ReadonlySet<number> = new Set([ENOENT, EINVAL, ENOTTY]);

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
