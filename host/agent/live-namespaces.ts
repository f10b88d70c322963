/** The addresses on the NICs of this node's pods, as the kernel has them. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isOwnNetns, NetnsError, readNetnsIdentity } from "../kernel/netns.ts";
import { observeNamespace } from "../kernel/observe-namespace.ts";
import { openPodNamespace } from "../kernel/open-namespace.ts";
import { messageOf } from "../lib/describe.ts";
import type { Mac } from "../net/mac.ts";
import type { Prefix } from "../net/prefix.ts";

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
  const seen = new Set<string>();
  const read = listNamespacePaths(directories).map((path) => readNamespaceAddresses(path, seen));
  return {
    addresses: read.flatMap(({ addresses }) => addresses),
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

/** The files in which runtimes keep network namespaces. */
export function listNamespacePaths(directories: readonly string[]): readonly string[] {
  return directories.flatMap(listPaths);
}

/** The same of one path. `seen`: the namespaces that were read before, to which this one is added. */
export function readNamespaceAddresses(
  path: string,
  seen: Set<string>,
): { readonly addresses: readonly LiveAddress[]; readonly problem?: string } {
  try {
    const { device, inode } = readNetnsIdentity(path);
    if (isOwnNetns(path) || seen.has(`${device} ${inode}`)) return { addresses: [] };
    seen.add(`${device} ${inode}`);
    return { addresses: readAddresses(path) };
  } catch (error) {
    // Runtimes leave files behind that are no namespaces any more.
    if (error instanceof NetnsError) return { addresses: [] };
    return { addresses: [], problem: `${path} cannot be read: ${messageOf(error)}` };
  }
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
