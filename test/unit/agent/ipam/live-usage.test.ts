import { describe, expect, it } from "vitest";
import { allocateAddresses, MAX_CLAIM_ATTEMPTS } from "../../../../host/agent/ipam/allocate.ts";
import { LiveUsage, spanOf } from "../../../../host/agent/ipam/live-usage.ts";
import { PoolTally } from "../../../../host/controller/usage/usage-counter.ts";
import { MAX_OTHER_NAMES, PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { ApiUnavailable } from "../../../../host/kubernetes/kube-api.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { LIST_MAX_ADDRESSES } from "../../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../../host/resources/ip-pool-shape.ts";
import { encodeIpPoolUsage } from "../../../../host/resources/ip-pool-usage.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { TestClock } from "../../../world/clock.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { type ClusterNode, openClusterNode } from "../../../world/node.ts";
import { cases } from "../../../world/rows.ts";
import { openCore, pool, poolsByName, proposal, snapshotOf } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const USAGES = "/apis/ipam.vendor.io/v1/ippoolusages";
const serves = {
  [ALLOCATIONS]: { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" },
  [USAGES]: { apiVersion: "ipam.vendor.io/v1", kind: "IPPoolUsage" },
};
const core = openCore();

/** The addresses from 10.6.0.0 on with these numbers. */
const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => {
    const number = first + index;
    return `10.${6 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
  });

const TINY = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.2"] });
const SMALL = pool("blue", "10.6.0.0/24", { selection: "ascending" });
/** 8,190 addresses, of which others have all but those of 10.6.9.0/24. */
const LARGE = pool("blue", "10.6.0.0/19");
const NINE = range(2_304, 2_559);
const TAKEN = range(1, 8_190).filter((address) => !NINE.includes(address));
const VAST = pool("blue", "10.6.0.0/15", { selection: "ascending" });

const HOLDER_OF_N2 = { namespace: "shop", pod: "db-0", podUID: "u", interface: "eth0", node: "n2" };

interface Case {
  /** Default: none but "blue". */
  readonly pools?: readonly IpPool[];
  /** Addresses of another node, by the name that their pool had. */
  readonly taken?: Readonly<Record<string, readonly string[]>>;
  /** Addresses of this node. */
  readonly own?: readonly string[];
  /** The addresses that the node takes for used. */
  readonly marked?: readonly string[];
  /** The usage object is of a controller that knows of these, or of other ranges. */
  readonly usage?: readonly string[] | "of other ranges";
  readonly isMute?: boolean;
}

/** Returns an ADD's address or error, and its calls: creates, lists of names, reads of the usage object. */
async function search({ pools = [SMALL], taken = {}, own = [], marked = [], usage, isMute = false }: Case) {
  const server = new MemoryApiServer({ serves });
  for (const [name, addresses] of Object.entries(taken))
    for (const address of addresses) {
      const spec = { address, prefixLength: 24, pool: name, state: "Bound", node: "n2", holders: [HOLDER_OF_N2] };
      server.put(ALLOCATIONS, address, { spec });
    }
  const [first = SMALL] = pools;
  if (usage !== undefined) {
    const tally = new PoolTally(core, poolShape(first, []));
    const known = usage === "of other ranges" ? [] : usage;
    for (const address of known) tally.take(ip(address), true);
    const told = tally.usage({ Bound: known.length, Cooling: 0, Kept: 0, Quarantined: 0 });
    const { rangesHash } = usage === "of other ranges" ? { rangesHash: "0".repeat(16) } : told;
    server.put(USAGES, first.name, encodeIpPoolUsage({ ...told, rangesHash }, { name: first.name, poolUid: "u" }));
  }
  const clock = new TestClock({ isHasty: true });
  const node = await openClusterNode({ server, clock, snapshot: snapshotOf(...pools) });
  for (const address of own) await node.bind(address, `p-${address}`);
  for (const address of marked) node.poolCache.mark("", ip(address));
  node.calls.length = 0;
  let lists = 0;
  node.gate = async ({ accept, query }, commit) => {
    if (accept === undefined) return commit();
    if (isMute) throw new ApiUnavailable("GET", "no answer");
    if (query?.continue === undefined) lists++;
    return commit();
  };
  const nics = [{ ifName: "eth0", pools: [pools.map(({ name }) => name)] }];
  const outcome = await allocateAddresses(
    { registry: node.registry, poolCache: node.poolCache, cluster: clusterIpam({ records: node.registry }) },
    node.demand("far from there", nics),
  ).then(
    ({ held }) => held.map((row) => formatIp(row.ip)).join(),
    (error: unknown) => String(error),
  );
  const count = (wanted: RegExp): number => node.calls.filter((call) => wanted.test(call)).length;
  const calls = `${count(/^POST/)} creates, ${lists} lists, ${count(/ippoolusages/)} reads`;
  return { node, outcome, calls };
}

const HALF = { old: range(1, 254).filter((_, at) => at % 2 > 0), older: range(1, 250).filter((_, at) => at % 2 === 0) };
/** All of {@link SMALL} but four. */
const MOST = range(1, 250);
const WHOLE = [...TAKEN, ...NINE];

describe("exhaustion: a search in a pool of which the node knows little", () => {
  const of = (pool: IpPool, addresses: readonly string[], more: Case = {}) => ({
    ...{ pools: [pool], taken: { blue: addresses } },
    ...more,
  });
  it.each(cases<Case>`
    a small one is listed after two misses ${of(SMALL, MOST)} => ^10\.6\.0\.25[1-4]$ & 3 creates, 1 lists, 0 reads
    a vast one is not; pods spread ${of(VAST, range(0, 8))} => ^10\.[67]\. & 3 creates, 0 lists, 1 reads
    it goes on by trying when there is no list ${of(SMALL, range(1, 20), { isMute: true })} => ^10\.6\.0\.
    misses of the node's own addresses are no reason ${{ own: range(1, 5) }}
      => ^10\.6\.0\.6$ & 1 creates, 0 lists, 0 reads
    it is not full because the node believes so ${of(TINY, ["10.6.0.1"], { marked: range(1, 2) })}
      => ^10\.6\.0\.2$ & 1 creates, 1 lists, 0 reads
    it is full after one list ${of(TINY, range(1, 2))} => 2 of 2 in use & 2 creates, 1 lists, 0 reads
    a full one does not hold up the next ${of(TINY, range(1, 2), { pools: [TINY, pool("green", "10.7.0.0/30")] })}
      => ^10\.7\.0\.[12]$
    its addresses of a pool that is gone are listed, too ${{ taken: { old: MOST } }} => ^10\.6\.0\.25[1-4]$
    and those of two ${{ taken: HALF }} => ^10\.6\.0\.25[13]$
    a small one's usage object is not read ${of(SMALL, MOST, { usage: MOST })}
      => ^10\.6\.0\.25[1-4]$ & 3 creates, 1 lists, 0 reads
    of a large one the usage object spares the list ${of(LARGE, TAKEN, { usage: TAKEN })}
      => ^10\.6\.9\. & 3 creates, 0 lists, 1 reads
    without one the list comes after more misses ${of(LARGE, TAKEN)} => ^10\.6\.9\. & 9 creates, 1 lists, 1 reads
    pool-changes: nor is one of other ranges believed ${of(LARGE, TAKEN, { usage: "of other ranges" })}
      => ^10\.6\.9\. & 9 creates, 1 lists, 1 reads
    one that is old misleads for a while ${of(LARGE, TAKEN, { usage: [] })}
      => ^10\.6\.9\. & 11 creates, 1 lists, 1 reads
    one that says full refuses no pod ${of(LARGE, TAKEN, { usage: WHOLE })} => ^10\.6\.9\. & 3 creates, 1 lists, 1 reads
    it is read before the list if the node believes that the pool is full ${of(LARGE, TAKEN, { usage: TAKEN, marked: WHOLE })}
      => ^10\.6\.9\. & 1 creates, 0 lists, 1 reads
    the list decides that it is full ${of(LARGE, WHOLE, { usage: WHOLE })}
      => 8190 of 8190 in use & 2 creates, 1 lists, 1 reads
  `)("%s", async (_, given, expected) => {
    const [outcome = "", calls = ""] = expected.split(" & ");
    const found = await search(given);
    expect([found.outcome, found.calls]).toEqual([expect.stringMatching(outcome), expect.stringContaining(calls)]);
  });

  it("a usage object does not free the node's own addresses", async () => {
    const { node } = await search({ pools: [LARGE], taken: { blue: TAKEN }, own: ["10.6.9.7"], usage: TAKEN });
    expect(node.poolCache.takeExactly(LARGE, ip("10.6.9.7"))).toBe("taken");
  });

  it("a pool too large for a list is shown by its usage object, also a second time", async () => {
    const vaster = pool("blue", "10.4.0.0/14");
    const { registry, poolCache } = (await search({ pools: [vaster], usage: range(1, 9) })).node;
    const show = () =>
      new LiveUsage({ registry, records: registry, poolCache, keepsEstimates: true }).refresh([vaster]);
    expect([await show(), await show(), poolCache.isEstimate("blue")]).toEqual([true, false, true]);
  });

  it("a pool too large for a list is searched by trying, whatever its usage object says", async () => {
    const { node, outcome } = await search({ pools: [VAST], usage: range(0, 131_071), marked: range(0, 131_071) });
    expect([outcome, node.poolCache.isEstimate("blue")]).toEqual([expect.stringMatching(/^10\.[67]\./), false]);
  });
});

it("exhaustion: in a search that goes on a small pool is listed again each time the misses have doubled", async () => {
  const cache = new PoolCache(core);
  const blue = pool("blue", "10.6.0.0/24");
  cache.apply(poolsByName(blue), []);
  const lists: number[] = [];
  const registry = {
    listUsed: async () => void lists.push(usage.misses),
    readUsageSummary: async () => undefined,
    readUsed: async () => new Uint8Array(),
  };
  const usage = new LiveUsage({ registry, records: registry, poolCache: cache });
  await usage.refresh([blue]);
  const picked = [proposal("10.6.0.1")];
  for (let miss = 0; miss < MAX_CLAIM_ATTEMPTS; miss++) {
    await usage.miss(picked);
    await usage.refresh([blue]);
  }
  expect(lists).toEqual([0, 2, 4, 8, 16, 32, 64]);
});

describe("exhaustion: a list of a pool and of former ones", () => {
  const lists = (node: ClusterNode): number => node.calls.filter((each) => each.startsWith("GET")).length;

  it.each([
    ["all of them", LIST_MAX_ADDRESSES / 2, 2],
    ["the pool alone, if all are too many", LIST_MAX_ADDRESSES / 2 + 1, 1],
  ])("has %s", async (_, poolSize, wanted) => {
    const node = await openClusterNode({ poolSize });
    await node.registry.listUsed(spanOf(pool("blue", "10.6.0.0/24")), ["blue"], ["old"]);
    expect(lists(node)).toBe(wanted);
  });

  it("names no more than MAX_OTHER_NAMES, those noted last, and none that had no address of the pool", () => {
    const [cache, blue] = [new PoolCache(core), pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] })];
    cache.apply(poolsByName(blue), []);
    const note = (name: string, address: string): void =>
      cache.noteRecorded({ space: "", ip: ip(address), pool: name });
    note("blue", "10.6.0.1");
    note("elsewhere", "10.6.0.10");
    expect([...cache.otherNamesOf(blue)]).toEqual([]);
    for (let at = 0; at <= MAX_OTHER_NAMES; at++) note(`old-${at}`, "10.6.0.1");
    note("old-1", "10.6.0.2");
    note("last", "10.6.0.9");
    const names = [...cache.otherNamesOf(blue)];
    expect(names).toHaveLength(MAX_OTHER_NAMES);
    expect([names.slice(-2), names.includes("old-2")]).toEqual([["old-1", "last"], false]);
  });
});
