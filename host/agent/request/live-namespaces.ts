/** The addresses on the NICs of this node's pods, as the kernel has them. */

import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { NicAddress } from "../../findings/node/find-damage.ts";
import { isOwnNetns, NetnsError, type NetnsIdentity, readNetnsIdentity } from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { openPodNamespace } from "../../kernel/open-namespace.ts";
import { messageOf } from "../../lib/describe.ts";
import { tryOr } from "../../lib/try-or.ts";
import type { Mac } from "../../net/mac.ts";
import type { Prefix } from "../../net/prefix.ts";

/** The directories of containerd and CRI-O, and of Docker. */
export const NETNS_FOLDERS: readonly string[] = ["/run/netns", "/run/docker/netns"];

export interface LiveAddress extends Omit<NicAddress, "ip" | "macs"> {
  /** The same namespace has the same, whatever its path: {@link netnsIdOf}. */
  readonly netnsId: string;
  readonly mac: Mac | undefined;
  readonly prefix: Prefix;
}

/**
 * Global addresses and MAC addresses in all namespaces below the directories but the node's own; each namespace once,
 * one in a turn of the event loop, on which probes count milliseconds. Each problem is a sentence that names the path.
 */
export async function readLiveNamespaces(directories: readonly string[]) {
  const seen = new Set<string>();
  const read: ReturnType<typeof readNamespaceAddresses>[] = [];
  for (const path of listNamespacePaths(directories)) {
    read.push(readNamespaceAddresses(path, seen));
    await setImmediate();
  }
  return {
    addresses: read.flatMap(({ addresses, macs }) => addresses.map((each) => ({ ...each, macs }))),
    macs: new Set(read.flatMap(({ macs }) => macs)),
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

/** The files in which runtimes keep network namespaces. */
export function listNamespacePaths(directories: readonly string[]): readonly string[] {
  return directories.flatMap(listPaths);
}

const NOTHING = { addresses: [], macs: [] };

/**
 * The same of one path, and the MAC addresses of all its links. `seen`: the namespaces that were read before, to
 * which this one is added.
 */
export function readNamespaceAddresses(
  path: string,
  seen: Set<string>,
): { readonly addresses: readonly LiveAddress[]; readonly macs: readonly Mac[]; readonly problem?: string } {
  try {
    const identity = readNetnsIdentity(path);
    const netnsId = formatIdentity(identity);
    if (isOwnNetns(identity) || seen.has(netnsId)) return NOTHING;
    seen.add(netnsId);
    return readAddresses(path, netnsId);
  } catch (error) {
    // Runtimes leave files behind that are no namespaces any more.
    if (error instanceof NetnsError) return NOTHING;
    return { ...NOTHING, problem: `${path} cannot be read: ${messageOf(error)}` };
  }
}

function formatIdentity({ device, inode, cookie }: NetnsIdentity): string {
  return cookie === undefined ? `${device} ${inode}` : `${cookie}`;
}

/** Returns undefined if the path leads into no network namespace, or cannot be read. */
export function netnsIdOf(path: string): string | undefined {
  return tryOr(() => formatIdentity(readNetnsIdentity(path)), undefined);
}

/** Returns the paths of all files in the directory; none if it cannot be read. */
export function listPaths(directory: string): string[] {
  // Other runtimes keep theirs elsewhere.
  return tryOr(() => readdirSync(directory), []).map((name) => join(directory, name));
}

/** Returns a path for each namespace that a process is in. */
export function processPaths(): readonly string[] {
  const found = new Map<string, string>();
  for (const folder of listPaths("/proc")) {
    const path = join(folder, "ns", "net");
    try {
      found.set(readlinkSync(path), path);
    } catch {
      // It has ended, or it is no process.
    }
  }
  return [...found.values()];
}

function readAddresses(netns: string, netnsId: string): { addresses: LiveAddress[]; macs: Mac[] } {
  using open = openPodNamespace(netns);
  const { links, addresses } = observeNamespace(open, { addresses: true });
  const ofNics = addresses.flatMap(({ link, prefix, scope }) => {
    const nic = links.find(({ name }) => name === link);
    if (scope !== 0 || nic === undefined || nic.loopback) return [];
    const parent = nic.parentElsewhere ? nic.parent : undefined;
    return [{ netns, netnsId, ifName: link, mac: nic.mac, prefix, parent }];
  });
  return { addresses: ofNics, macs: links.flatMap(({ mac }) => mac ?? []) };
}
