/** The rule prefetch with many pods, and in walks at random. All else is in the transcripts. */
import { expect, it } from "vitest";
import { MAX_UNSEEN_PODS } from "../../../../../host/agent/ipam/prefetch/known-pods.ts";
import { PREFETCHES_AT_ONCE, UNATTACHED_MS } from "../../../../../host/agent/ipam/prefetch/prefetcher.ts";
import { nic, openPrefetching, type Prefetching, podOf } from "../../../../world/prefetching.ts";
import { until } from "../../../../world/recorded-log.ts";
import { Seeded } from "../../../../world/seeded.ts";

async function withPrefetching(test: (world: Prefetching) => Promise<void>, ifNames = ["eth0"]): Promise<void> {
  const world = await openPrefetching({ nics: () => ifNames.map((name) => nic(name)) });
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

const STEPS = 200;
const PODS = 12;
const SEEDS = [1, 20_261_120, 77_003, 4_242];

const ippools = ["eth0", "net1"].map((name) => ({ interface: name, ipv4: ["blue"] }));
const TOGETHER = { annotations: { ippools }, networks: "lab" };
const SANDBOX = { status: { phase: "Pending", podIPs: [{ ip: "10.9.0.1" }] } };
const DELETING = { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } };

/** One step; answers the ADD that it began. */
function step(world: Prefetching, roll: (below: number) => number, generation: number[]) {
  const { prefetcher, door } = world;
  const number = roll(PODS);
  const kind = number % 2 === 0 ? {} : TOGETHER;
  const name = `p-${number}`;
  const pod = (parts: object = {}) => podOf(name, { uid: `${name}-${generation[number]}`, ...kind, ...parts });
  switch (roll(10)) {
    case 0:
    case 1:
    case 2:
      return prefetcher.podChanged(pod());
    case 3:
    case 4:
      return world.add(pod(), roll(2) === 0 ? "eth0" : "net1");
    case 5:
      return prefetcher.podChanged(pod(roll(2) === 0 ? SANDBOX : DELETING));
    case 6:
      prefetcher.podGone(pod());
      generation[number] = (generation[number] ?? 0) + 1;
      return;
    case 7:
      door.closed.add(name);
      return;
    case 8:
      return roll(4) === 0 ? world.later(UNATTACHED_MS / 2) : undefined;
    default:
      return door.open();
  }
}

it.each(SEEDS)("a walk from seed %i", (seed) =>
  withPrefetching(
    async (world) => {
      const random = new Seeded(seed);
      const roll = (below: number): number => random.below(below);
      const generation = new Array<number>(PODS).fill(0);
      const adds: Promise<unknown>[] = [];
      for (let index = 0; index < STEPS; index++) {
        adds.push(Promise.resolve(step(world, roll, generation)).catch(String));
        for (let turns = roll(4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      }
      const all = Promise.all(adds);
      let isThrough = false;
      void all.then(() => {
        isThrough = true;
      });
      await until(() => {
        world.door.open();
        const { wanted, claimed, found, late, withdrawn, failed } = world.prefetcher.stats();
        return isThrough && wanted === claimed + found + late + withdrawn + failed;
      }, "all ADDs are answered and all claims over");
      const refused = (await all).filter((outcome) => typeof outcome === "string" && outcome.startsWith("Error"));
      expect(refused).toEqual([]);

      for (let number = 0; number < PODS; number++) {
        const uid = `p-${number}-${generation[number]}`;
        world.prefetcher.podGone(podOf(`p-${number}`, { uid }));
      }
      // The rule unattached: what an ADD claimed for another NIC of its pod stays for now.
      const isExplained = async (): Promise<boolean> => {
        const rows = await world.node.registry.list(undefined, 1_000);
        const attached = new Set(rows.filter(({ containerId }) => containerId !== "").map(({ owner }) => owner));
        return rows.every(({ owner }) => attached.has(owner));
      };
      await until(isExplained, "what no ADD took is free");
      const places = (await world.node.registry.list(undefined, 1_000)).map(
        ({ owner, ifName }) => `${owner} ${ifName}`,
      );
      expect(places.length).toBeGreaterThan(5);
      expect(new Set(places).size).toBe(places.length);
      expect(world.node.poolCache.counts("blue")?.used).toBe(places.length);
      const { claimed, found, used, discarded, returned, timedOut } = world.prefetcher.stats();
      expect(claimed + found).toBe(used + discarded + returned + timedOut);
    },
    ["eth0", "net1"],
  ),
);
