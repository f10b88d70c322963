/**
 * A census of the kernel state of all nodes: which pod network namespace has which address on a NIC, several times a
 * second.
 *
 *   await using census = startCensus(cluster);
 *   // ... churn ...
 *   census.duplicates();      // addresses that two namespaces had at one moment, as sentences
 *
 * It reads the kernel only: pods whose objects are gone, and addresses that no registry knows, are counted as well. A
 * sample is not atomic, so an address that seems to be on two NICs is read again in both namespaces, the first one
 * before and after the second.
 * Effects: enters the pods' network namespaces from a timer.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { observeNamespace } from "../../../host/kernel/observe-namespace.ts";
import { openPodNamespace } from "../../../host/kernel/open-namespace.ts";
import { tryOr } from "../../../host/lib/try-or.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { RealNode } from "./node.ts";

/** An address on a NIC of a pod's network namespace, both as the kernel has them. */
export interface NicAddress {
  readonly node: string;
  /** File name of the namespace, as the runtime made it. */
  readonly netns: string;
  readonly link: string;
  readonly isUp: boolean;
  readonly address: string;
}

export interface Census extends AsyncDisposable {
  /** Number of samples taken. */
  readonly samples: number;
  /** The longest pause between the starts of two samples, in milliseconds. */
  readonly longestPauseMs: number;
  /** Returns the findings of the last sample. */
  latest(): readonly NicAddress[];
  /** Addresses that two NICs had at one moment, each pair once, as sentences. */
  duplicates(): readonly string[];
  stop(): void;
}

/** Four samples a second, as long as a sample takes less than that. */
const PERIOD_MS = 250;
/** Folder of the network namespaces of containerd's sandboxes. */
const NETNS_FOLDER = "run/netns";

export function startCensus({ nodes }: { readonly nodes: readonly RealNode[] }, periodMs = PERIOD_MS): Census {
  const duplicates = new Map<string, string>();
  let latest: readonly NicAddress[] = [];
  let samples = 0;
  let longestPauseMs = 0;
  let lastMs: number | undefined;
  const sample = (): void => {
    const nowMs = performance.now();
    if (lastMs !== undefined) longestPauseMs = Math.max(longestPauseMs, nowMs - lastMs);
    lastMs = nowMs;
    samples++;
    latest = nodes.flatMap(readNode);
    for (const [one, other] of findPairs(latest)) {
      const key = `${one.address} ${placeOf(one)} ${placeOf(other)}`;
      if (!duplicates.has(key) && isShared(nodes, one, other))
        duplicates.set(key, `${one.address} is on ${placeOf(one)} and on ${placeOf(other)} (sample ${samples})`);
    }
  };
  sample();
  const timer = setInterval(sample, periodMs);
  const stop = (): void => clearInterval(timer);
  return {
    get samples() {
      return samples;
    },
    get longestPauseMs() {
      return longestPauseMs;
    },
    latest: () => latest,
    duplicates: () => [...duplicates.values()],
    stop,
    [Symbol.asyncDispose]: async () => stop(),
  };
}

const placeOf = ({ node, netns, link }: NicAddress): string => `${node} ${netns} ${link}`;

/** Every two sightings of one address, in the order of the sample. */
function findPairs(sightings: readonly NicAddress[]): [NicAddress, NicAddress][] {
  const byAddress = Map.groupBy(sightings, ({ address }) => address);
  return [...byAddress.values()].flatMap((same) =>
    same.flatMap((one, index) => same.slice(index + 1).map((other): [NicAddress, NicAddress] => [one, other])),
  );
}

/** Whether both had it at one moment: the first one before and after the second. */
function isShared(nodes: readonly RealNode[], one: NicAddress, other: NicAddress): boolean {
  const has = (wanted: NicAddress): boolean => {
    const node = nodes.find(({ name }) => name === wanted.node);
    const found = node === undefined ? [] : readNetns(node, wanted.netns);
    return found.some(({ link, address }) => link === wanted.link && address === wanted.address);
  };
  return has(one) && has(other) && has(one);
}

/** None of a node that is switched off. */
function readNode(node: RealNode): NicAddress[] {
  return listFiles(netnsFolder(node)).flatMap((netns) => readNetns(node, netns));
}

/** Global addresses of all NICs; none when the namespace goes away meanwhile. */
function readNetns(node: RealNode, netns: string): NicAddress[] {
  const folder = netnsFolder(node);
  if (folder === undefined) return [];
  try {
    using namespace = openPodNamespace(join(folder, netns));
    const { links, addresses } = observeNamespace(namespace, { addresses: true });
    return addresses.flatMap(({ link, prefix, scope }) => {
      const found = links.find(({ name }) => name === link);
      if (scope !== 0 || found === undefined || found.loopback) return [];
      return [{ node: node.name, netns, link, isUp: found.up, address: formatIp(prefix.ip) }];
    });
  } catch (error) {
    // Namespaces end while they are read; anything else is a fault of the census.
    if (error instanceof Error && /^(?:Netns|Netlink)Error$/.test(error.name)) return [];
    throw error;
  }
}

function netnsFolder(node: RealNode): string | undefined {
  return tryOr(() => join(node.machine.root, NETNS_FOLDER), undefined);
}

function listFiles(folder: string | undefined): string[] {
  return tryOr(() => (folder === undefined ? [] : readdirSync(folder)), []);
}
