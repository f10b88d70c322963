/** The rule prefetch with many pods. All else is in the transcripts. */
import { expect, it } from "vitest";
import { MAX_UNSEEN_PODS } from "../../../../../host/agent/ipam/prefetch/known-pods.ts";
import { PREFETCHES_AT_ONCE } from "../../../../../host/agent/ipam/prefetch/prefetcher.ts";
import { nic, openPrefetching, type Prefetching, podOf } from "../../../../world/prefetching.ts";
import { until } from "../../../../world/recorded-log.ts";

async function withPrefetching(test: (world: Prefetching) => Promise<void>): Promise<void> {
  const world = await openPrefetching({ nics: () => [nic("eth0")] });
  try {
    await test(world);
  } finally {
    await world.close();
  }
}

it("many pods at once are claimed for a few at a time, all of them, each another address", () =>
  withPrefetching(async (world) => {
    for (let index = 0; index < 110; index++) world.prefetcher.podChanged(podOf(`web-${index}`));
    await until(() => world.prefetcher.stats().claimed === 110, "every claim ahead has ended");
    expect(world.door.mostAtOnce).toBeLessThanOrEqual(PREFETCHES_AT_ONCE);
    expect(new Set((await world.rows()).map((row) => row.split(" ")[2])).size).toBe(110);
  }));

it("of pods that are never seen only so many are remembered", () =>
  withPrefetching(async ({ prefetcher, door }) => {
    const { signal } = new AbortController();
    for (let index = 0; index <= MAX_UNSEEN_PODS; index++)
      await prefetcher.waitForClaim(`uid-ghost-${index}`, "eth0", signal);
    prefetcher.podChanged(podOf("ghost-1"));
    expect(prefetcher.stats()).toMatchObject({ unseen: MAX_UNSEEN_PODS + 1, wanted: 0 });
    prefetcher.podChanged(podOf("ghost-0"));
    await until(() => door.claims.length === 1, "the oldest is forgotten");
  }));

it("a late undo takes nothing back that an ADD has attached meanwhile", () =>
  withPrefetching(async (world) => {
    const web = podOf("web-0");
    world.prefetcher.podChanged(web);
    await until(() => world.prefetcher.stats().claimed === 1, "it is claimed");
    const claimed = world.prefetcher.claimedFor("uid-web-0", "eth0");
    expect(claimed).toHaveLength(1);
    const address = await world.add(web);
    expect(world.prefetcher.claimedFor("uid-web-0", "eth0")).toEqual([]);
    await world.node.registry.undo(claimed);
    world.prefetcher.podGone(web);
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
  }));
