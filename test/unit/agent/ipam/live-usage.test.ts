import { describe, expect, it } from "vitest";
import { allocateAddresses, MAX_CLAIM_ATTEMPTS } from "../../../../host/agent/ipam/allocate.ts";
import { LIVE_USAGE_MISSES, LiveUsage, spanOf } from "../../../../host/agent/ipam/live-usage.ts";
import { MAX_OTHER_NAMES, PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { LIST_MAX_ADDRESSES } from "../../../../host/registry/kubernetes/kubernetes-registry.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { type ClusterNode, openClusterNode } from "../../../world/node.ts";
import { openCore, pool, snapshotOf } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const FREE = "10.6.0.200";
const USED = Array.from({ length: 254 }, (_, index) => `10.6.0.${index + 1}`).filter((each) => each !== FREE);

/**
 * Another node has all addresses of the subnet but FREE: by turns of these pools, which this node's pool "blue" has
 * followed.
 */
async function nodeAfter(former: readonly string[]): Promise<ClusterNode> {
  const server = new MemoryApiServer();
  const pools = former.map((name) => pool(name, "10.6.0.0/24"));
  const other = await openClusterNode({ server, name: "n2", snapshot: snapshotOf(...pools) });
  for (const [index, address] of USED.entries())
    await other.bind(address, `p${index}`, { pool: former[index % former.length] ?? "" });
  return openClusterNode({ server, snapshot: snapshotOf(pool("blue", "10.6.0.0/24")) });
}

const claimsOf = ({ calls }: ClusterNode): number => calls.filter((each) => each.startsWith("POST")).length;

describe("exhaustion: addresses that are recorded for a pool that is gone", () => {
  it.each([[["old"]], [["old", "older"]]])(
    "are listed with those of the pool that has them now: %s",
    async (former) => {
      const node = await nodeAfter(former);
      const { held } = await allocateAddresses(node, node.demand("web-0", [{ ifName: "eth0", pools: [["blue"]] }]));
      expect(held.map(({ ip }) => formatIp(ip))).toEqual([FREE]);
      expect(claimsOf(node)).toBeLessThanOrEqual(LIVE_USAGE_MISSES + former.length);
    },
  );
});

it("exhaustion: in a search that goes on a small pool is listed again each time the misses have doubled", async () => {
  const cache = new PoolCache(openCore());
  const blue = pool("blue", "10.6.0.0/24");
  cache.update([blue], []);
  const lists: number[] = [];
  const registry = {
    listUsed: async () => void lists.push(usage.misses),
    readUsageSummary: async () => undefined,
    readUsed: async () => new Uint8Array(),
  };
  const usage = new LiveUsage({ registry, poolCache: cache });
  await usage.refresh([blue]);
  const picked = [{ ifName: "eth0", pool: blue, ip: ip("10.6.0.1") }];
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
    const [cache, blue] = [new PoolCache(openCore()), pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] })];
    cache.update([blue], []);
    const note = (name: string, address: string): void =>
      cache.noteRecorded({ space: "", ip: ip(address), pool: name });
    note("blue", "10.6.0.1");
    note("elsewhere", "10.6.0.10");
    expect([...cache.otherNamesOf(blue)]).toEqual([]);
    for (let at = 0; at <= MAX_OTHER_NAMES; at++) note(`old-${at}`, "10.6.0.1");
    note("old-1", "10.6.0.2");
    note("last", "10.6.0.9");
    const copy = cache.copy();
    note("later", "10.6.0.9");
    const names = [...copy.otherNamesOf(blue)];
    expect([names.length, names.slice(-2), names.includes("old-2")]).toEqual([
      MAX_OTHER_NAMES,
      ["old-1", "last"],
      false,
    ]);
  });
});
