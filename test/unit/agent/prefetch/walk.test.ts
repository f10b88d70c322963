/** Random walks through all that can happen to a pod and its claim: whatever comes, nothing is lost, nothing is there twice, and the figures agree. */

import { expect, it } from "vitest";
import { UNATTACHED_MS } from "../../../../host/agent/prefetch/prefetcher.ts";
import { nic, type PrefetchWorld, podOf, until, withWorld } from "./prefetch-world.ts";

const STEPS = 200;
const PODS = 12;
const SEEDS = [1, 20_261_120, 77_003, 4_242];

/** The same numbers for the same seed (mulberry32). */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    const again = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((again ^ (again >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const ippools = ["eth0", "net1"].map((name) => ({ interface: name, ipv4: ["blue"] }));
const TOGETHER = { annotations: { ippools }, networks: "lab" };
const SANDBOX = { status: { phase: "Pending", podIPs: [{ ip: "10.9.0.1" }] } };
const DELETING = { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } };

/** One step; answers the ADD that it began. */
function step({ prefetcher, door, ...world }: PrefetchWorld, roll: (below: number) => number, generation: number[]) {
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
  withWorld({
    nics: () => [nic("eth0"), nic("net1")],
    test: async (world) => {
      const roll = dice(seed);
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
      await until("all ADDs are answered and all claims over", () => {
        world.door.open();
        const { wanted, claimed, found, late, withdrawn, failed } = world.prefetcher.stats();
        return isThrough && wanted === claimed + found + late + withdrawn + failed;
      });
      const refused = (await all).filter((outcome) => typeof outcome === "string" && outcome.startsWith("Error"));
      expect(refused).toEqual([]);

      for (let number = 0; number < PODS; number++) {
        const uid = `p-${number}-${generation[number]}`;
        world.prefetcher.podGone(podOf(`p-${number}`, { uid }));
      }
      // The rule unattached: what an ADD claimed for another NIC of its pod stays for now.
      const isExplained = async (): Promise<boolean> => {
        const rows = await world.registry.list(undefined, 1_000);
        const attached = new Set(rows.filter(({ containerId }) => containerId !== "").map(({ owner }) => owner));
        return rows.every(({ owner }) => attached.has(owner));
      };
      await until("what no ADD took is free", isExplained);
      const places = (await world.registry.list(undefined, 1_000)).map(({ owner, ifName }) => `${owner} ${ifName}`);
      expect(places.length).toBeGreaterThan(5);
      expect(new Set(places).size).toBe(places.length);
      expect(world.poolCache.counts("blue")?.used).toBe(places.length);
      const { claimed, found, used, discarded, returned, timedOut } = world.prefetcher.stats();
      expect(claimed + found).toBe(used + discarded + returned + timedOut);
    },
  }),
);
