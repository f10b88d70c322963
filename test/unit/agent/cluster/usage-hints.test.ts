/** The claim's loop with a usage object that tells the truth, is old, lies or is not there: claims-world.ts. */

import { describe, expect, it } from "vitest";
import { LIVE_USAGE_MISSES, LIVE_USAGE_MISSES_LARGE } from "../../../../host/agent/ipam/live-usage.ts";
import { ErrorCode } from "../../../../host/cni/error.ts";
import { PoolTally } from "../../../../host/controller/usage/pool-tally.ts";
import { readCoreWasm } from "../../../../host/core/instance.ts";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../../host/resources/ip-pool-shape.ts";
import type { PoolUsage } from "../../../../host/resources/usage/ip-pool-usage.ts";
import { ip, pool } from "../../ipam/subjects.ts";
import { worldOf } from "./claims-world.ts";

const space = PoolSpace.open(readCoreWasm());

/** 8,192 addresses, of which others have all but those of 10.6.9.0/24. */
const blue = pool("blue", "10.6.0.0/19");
const TAKEN = Array.from({ length: 8_192 }, (_, at) => `10.6.${at >> 8}.${at & 255}`).filter(
  (address) => !address.startsWith("10.6.9."),
);
const FULL = Array.from({ length: 256 }, (_, host) => `10.6.9.${host}`);

/** What a controller would write that knows these addresses. */
function usageOf(one: IpPool, addresses: readonly string[]): PoolUsage {
  const tally = new PoolTally(space, poolShape(one, []));
  for (const address of addresses) tally.take(ip(address), true);
  return tally.usage({ Bound: addresses.length, Cooling: 0, Kept: 0, Quarantined: 0 });
}

function world(usage: PoolUsage | undefined, one = blue, taken: readonly string[] = TAKEN) {
  const opened = worldOf([one]);
  for (const address of taken) opened.cluster.put(address);
  opened.cluster.usage = usage;
  return opened;
}

const SEED = { seedText: "far from there" };

describe("rule 11: the usage object of a large pool", () => {
  it("is read after two misses, and spares the list", async () => {
    const { cluster, claim } = world(usageOf(blue, TAKEN));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 0 });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + 1);
  });

  it("that is not there costs a question, and the list comes after more misses", async () => {
    const { cluster, claim } = world(undefined);
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 1 });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES_LARGE + 1);
  });

  it("rule 15: that was made for other ranges is not believed", async () => {
    const other = usageOf(blue, TAKEN);
    const { cluster, poolCache, claim } = world({ ...other, rangesHash: "0000000000000000" });
    await claim(SEED);
    expect(poolCache.isEstimate("blue")).toBe(false);
    expect(cluster.surveys).toBe(1);
  });

  it("that is old misleads the search for a while, and then the list is asked for", async () => {
    const { cluster, claim } = world(usageOf(blue, []));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 1 });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + LIVE_USAGE_MISSES_LARGE + 1);
  });

  it("that says full refuses nobody: the list has the last word", async () => {
    const { cluster, claim } = world(usageOf(blue, [...TAKEN, ...FULL]));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect(cluster.surveys).toBe(1);
  });

  it("that says full of a pool too large for a list refuses nobody either: the search goes on by trying", async () => {
    const { cluster, poolCache, claim } = world(usageOf(blue, [...TAKEN, ...FULL]), blue, TAKEN.slice(0, 4_096));
    cluster.tells = false;
    for (const address of [...TAKEN, ...FULL]) poolCache.mark("", ip(address));
    const [address] = await claim(SEED);
    expect(cluster.objects.get(address ?? "")?.owner).toBe("uid");
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 1 });
    expect(poolCache.isEstimate("blue")).toBe(false);
  });

  it("that names nothing but what is free gives no address out twice", async () => {
    const { cluster, claim } = world(usageOf(blue, []));
    const [address = ""] = await claim(SEED);
    expect(TAKEN).not.toContain(address);
    expect([...cluster.objects.values()].filter(({ owner }) => owner === "uid")).toHaveLength(1);
  });

  it("does not free in the pool cache what this node has itself", async () => {
    const { cluster, poolCache, claim } = world(usageOf(blue, TAKEN));
    cluster.put("10.6.9.7", { version: 1, owner: "mine" });
    await claim(SEED);
    expect(poolCache.takeExactly(blue, ip("10.6.9.7"))).toBe("taken");
  });

  it("is read before the list when the pool cache believes that the pool is full", async () => {
    const { cluster, poolCache, claim } = world(usageOf(blue, TAKEN));
    for (const address of [...TAKEN, ...FULL]) poolCache.mark("", ip(address));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 0 });
  });

  it("of a pool that is full ends in a refusal only after the list", async () => {
    const { cluster, claim } = world(usageOf(blue, [...TAKEN, ...FULL]), blue, [...TAKEN, ...FULL]);
    await expect(claim(SEED)).rejects.toMatchObject({ code: ErrorCode.PoolExhausted });
    expect({ glimpses: cluster.glimpses, surveys: cluster.surveys }).toEqual({ glimpses: 1, surveys: 1 });
  });

  it("of a small pool is not asked for: its list is as short", async () => {
    const small = pool("blue", "10.6.0.0/24");
    const taken = TAKEN.filter((address) => address.startsWith("10.6.0.")).slice(0, 250);
    const { cluster, claim } = world(usageOf(small, taken), small, taken);
    await claim(SEED);
    expect(cluster.glimpses).toBe(0);
  });
});
