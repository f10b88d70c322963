/**
 * Looking at what really is there: addresses on a pod's interface, answers to a ping, the agent's own records.
 * Called by the scenes; each gives what it saw, the scenes judge.
 * Effects: runs ip and ping; asks the agent.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Netns } from "../lab/netns.ts";
import { formatColumns } from "./narrator.ts";
import type { Pod, Stage } from "./stage.ts";

interface IpAddressLine {
  readonly addr_info: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly tentative?: boolean;
  }[];
}

/** One address in the agent's records. */
export interface AddressRecord {
  readonly address: string;
  readonly pool: string;
  readonly state: string;
  readonly namespace: string;
  readonly pod: string;
  readonly interface: string;
}

interface PoolCount {
  readonly name: string;
  readonly subnet: string;
  readonly total: string | number;
  readonly used: string | number;
  readonly free: string | number;
}

/** The interface's global addresses that the kernel lets it use, with prefix length, sorted. */
async function usableAddresses(netns: Netns, ifName: string): Promise<string[]> {
  const links = await netns.ipJson<IpAddressLine>(`addr show dev ${ifName}`);
  const all = links
    .flatMap((link) => link.addr_info)
    .filter(({ scope, tentative }) => scope === "global" && !tentative);
  return all.map(({ local, prefixlen }) => `${local}/${prefixlen}`).sort();
}

/** The same, once there are as many as `wanted`: the kernel holds an IPv6 address back for a second or two (RFC 4862 §5.4). */
export function addressesOf(netns: Netns, ifName: string, wanted: number): Promise<string[]> {
  return eventually(
    () => usableAddresses(netns, ifName),
    (addresses) => addresses.length === wanted,
    5_000,
  );
}

/** Two pings; `answered` when one came back. */
export async function ping(from: Netns, address: string): Promise<{ answered: boolean; seen: string }> {
  const { exitCode, stdout, stderr } = await from.exec(["ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", address]);
  const summary = stdout.split("\n").find((line) => line.includes("packets transmitted")) ?? stderr.trim();
  return { answered: exitCode === 0, seen: `${address}: ${summary}` };
}

export async function recordsOf(stage: Stage): Promise<AddressRecord[]> {
  return (await stage.agent.get("/v1/allocations")) as AddressRecord[];
}

/** How many addresses of all pools are in use, or resting after a release. */
export async function usedAddresses(stage: Stage): Promise<number> {
  const pools = (await stage.agent.get("/v1/pools")) as PoolCount[];
  return pools.reduce((sum, { used }) => sum + Number(used), 0);
}

/** Asks again until `holds`, at most `patienceMs`; gives the last answer either way. */
export async function eventually<T>(
  ask: () => Promise<T>,
  holds: (answer: T) => boolean,
  patienceMs: number,
): Promise<T> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const answer = await ask();
    if (holds(answer) || Date.now() > deadline) return answer;
    await sleep(100);
  }
}

/** Pools, then pods with their addresses, as the agent reports them. */
export async function overview(stage: Stage): Promise<string[]> {
  const pools = (await stage.agent.get("/v1/pools")) as PoolCount[];
  const poolRows = pools.map(({ name, subnet, total, used, free }) => [name, subnet, `${total}`, `${used}`, `${free}`]);
  const records = await recordsOf(stage);
  const podRows = records.map((record) => [
    `${record.namespace}/${record.pod}`,
    record.interface,
    record.address,
    record.pool,
    record.state,
  ]);
  const poolLines = formatColumns([["POOL", "SUBNET", "TOTAL", "USED", "FREE"], ...poolRows]);
  if (podRows.length === 0) return [...poolLines, "", "No pod has an address."];
  return [...poolLines, "", ...formatColumns([["POD", "NIC", "ADDRESS", "POOL", "STATE"], ...podRows.sort()])];
}

/** All addresses of a pod without prefix length, as its plugins' results said. */
export function resultAddresses(pod: Pod): string[] {
  return pod.nics.flatMap(({ addresses }) => addresses.map((address) => address.replace(/\/.*/, ""))).sort();
}
