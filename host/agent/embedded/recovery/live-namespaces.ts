/** The addresses on the NICs of this node's pods, as the kernel has them. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isOwnNetns, NetnsError, readNetnsIdentity } from "../../../kernel/netns.ts";
import { observeNamespace } from "../../../kernel/observe-namespace.ts";
import { openPodNamespace } from "../../../kernel/open-namespace.ts";
import { messageOf } from "../../../lib/describe.ts";
import type { Mac } from "../../../net/mac.ts";
import type { Prefix } from "../../../net/prefix.ts";

export interface LiveAddress {
  /** Path of the network namespace. */
  readonly netns: string;
  readonly ifName: string;
  readonly mac: Mac | undefined;
  readonly prefix: Prefix;
}

interface LiveNamespaces {
  readonly addresses: readonly LiveAddress[];
  /** Each a sentence that names the path. */
  readonly problems: readonly string[];
}

/** Global addresses in all namespaces below the directories but the node's own; each namespace once. */
export function readLiveNamespaces(directories: readonly string[]): LiveNamespaces {
  const addresses: LiveAddress[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const path of directories.flatMap(listPaths)) {
    try {
      const { device, inode } = readNetnsIdentity(path);
      if (isOwnNetns(path) || seen.has(`${device} ${inode}`)) continue;
      seen.add(`${device} ${inode}`);
      addresses.push(...readAddresses(path));
    } catch (error) {
      // Runtimes leave files behind that are no namespaces any more.
      if (!(error instanceof NetnsError)) problems.push(`${path} cannot be read: ${messageOf(error)}`);
    }
  }
  return { addresses, problems };
}

/** Returns whether the path leads into a network namespace. */
export function isLiveNetns(path: string): boolean {
  try {
    readNetnsIdentity(path);
    return true;
  } catch (error) {
    if (error instanceof NetnsError) return false;
    throw error;
  }
}

function listPaths(directory: string): string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch {
    return []; // Other runtimes keep theirs elsewhere.
  }
}

function readAddresses(netns: string): LiveAddress[] {
  using open = openPodNamespace(netns);
  const { links, addresses } = observeNamespace(open, { addresses: true });
  return addresses.flatMap(({ link, prefix, scope }) => {
    const nic = links.find(({ name }) => name === link);
    return scope !== 0 || nic === undefined || nic.loopback ? [] : [{ netns, ifName: link, mac: nic.mac, prefix }];
  });
}
