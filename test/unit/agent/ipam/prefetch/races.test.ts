/**
 * The rule prefetch: the ADD against the claim ahead of it, the pod's end against both, and what an agent leaves to
 * the next one.
 */
import { describe, expect, it } from "vitest";
import { MAX_UNSEEN_PODS } from "../../../../../host/agent/ipam/prefetch/known-pods.ts";
import { PREFETCHES_AT_ONCE, UNATTACHED_MS } from "../../../../../host/agent/ipam/prefetch/prefetcher.ts";
import { PREFETCH_PATIENCE_MS } from "../../../../../host/agent/request/add-deadline.ts";
import { nic, type Prefetching, type PrefetchTest, podOf, withPrefetching } from "../../../../world/prefetching.ts";
import { until } from "../../../../world/recorded-log.ts";
import { Seeded } from "../../../../world/seeded.ts";

const web = podOf("web-0");
const owner = "uid-web-0";

function check(name: string, test: PrefetchTest, options?: Parameters<typeof withPrefetching>[1]): void {
  it(name, () => withPrefetching(test, options));
}

/** The claim ahead for the pod stands before the registry's door. */
async function claimUnderWay({ door, prefetcher }: Prefetching, pod = web): Promise<void> {
  door.closed.add(pod.name);
  prefetcher.podChanged(pod);
  await until(() => door.underWay === 1, "the claim is under way");
}

/** Fills all places for claims under way. */
async function crowd(world: Prefetching): Promise<void> {
  for (let index = 0; index < PREFETCHES_AT_ONCE; index++) {
    world.door.closed.add(`crowd-${index}`);
    world.prefetcher.podChanged(podOf(`crowd-${index}`));
  }
  await until(() => world.door.underWay === PREFETCHES_AT_ONCE, "all places are taken");
}

describe("the ADD that arrives first waits for the claim under way instead of starting its own", () => {
  check("and takes what was claimed", async (world) => {
    await claimUnderWay(world);
    const adding = world.add(web);
    await until(() => world.prefetcher.stats().waited === 1, "the ADD waits");
    expect(world.door.claims).toHaveLength(1);
    world.door.open();
    const address = await adding;
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
    expect(world.door.claims.map(({ containerId }) => containerId)).toEqual(["", "c-web-0"]);
    expect(world.prefetcher.stats()).toMatchObject({ adds: 1, waited: 1, claimed: 1, used: 1, late: 0 });
  });

  check("and claims by itself when the claim under way fails", async (world) => {
    await claimUnderWay(world);
    const adding = world.add(web);
    await until(() => world.prefetcher.stats().waited === 1, "the ADD waits");
    world.door.broken.add("web-0");
    world.door.open();
    await expect(adding).rejects.toThrow("the API server does not answer");
    world.door.broken.clear();
    expect(await world.add(web)).toMatch(/^10\.6\.0\./);
  });

  check("no longer than its caller waits", async (world) => {
    await claimUnderWay(world);
    const caller = new AbortController();
    const adding = world.add(web, "eth0", { signal: caller.signal });
    await until(() => world.prefetcher.stats().waited === 1, "the ADD waits");
    caller.abort(new Error("the caller hung up"));
    await expect(adding).rejects.toThrow("the caller hung up");
    await expect(world.prefetcher.waitForClaim(owner, "eth0", caller.signal)).rejects.toThrow("the caller hung up");
    world.door.open();
    const address = await world.add(web);
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
  });

  check("no longer than a claim ahead may last", async (world) => {
    await claimUnderWay(world);
    const waiting = world.prefetcher.waitForClaim(owner, "eth0", new AbortController().signal);
    await world.node.clock.advance(PREFETCH_PATIENCE_MS);
    await waiting;
    expect(world.prefetcher.stats()).toMatchObject({ failed: 1, claimed: 0 });
    expect(await world.rows()).toEqual([]);
  });

  check(
    "also that of a NIC which another NIC's claim covers",
    async (world) => {
      const ippools = ["eth0", "net1"].map((name) => ({ interface: name, ipv4: ["blue"] }));
      const pod = podOf("web-0", { annotations: { ippools }, networks: "lab" });
      await claimUnderWay(world, pod);
      const adding = world.add(pod, "net1");
      await until(() => world.prefetcher.stats().waited === 1, "the ADD waits");
      world.door.open();
      await adding;
      expect(world.prefetcher.stats()).toMatchObject({ claimed: 2, used: 1 });
      expect(await world.rows()).toHaveLength(2);
    },
    { nics: () => [nic("eth0"), nic("net1")] },
  );
});

describe("the ADD that comes before the claim has begun does not wait", () => {
  check("for its turn: the claim is withdrawn", async (world) => {
    await crowd(world);
    world.prefetcher.podChanged(web);
    const address = await world.add(web);
    world.door.open();
    await until(() => world.prefetcher.stats().claimed === PREFETCHES_AT_ONCE, "the others are through");
    expect((await world.rows()).filter((row) => row.startsWith("web"))).toEqual([
      `web-0 eth0 ${address} Bound c-web-0`,
    ]);
    expect(world.prefetcher.stats()).toMatchObject({ adds: 1, late: 1, used: 0 });
  });

  check("for the watch: nothing is claimed when that shows the pod", async (world) => {
    const address = await world.add(web);
    world.prefetcher.podChanged(web);
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 0, adds: 1, unseen: 1, used: 0 });
  });

  check("and of pods that are never seen only so many are remembered", async ({ prefetcher, door }) => {
    const { signal } = new AbortController();
    for (let index = 0; index <= MAX_UNSEEN_PODS; index++)
      await prefetcher.waitForClaim(`uid-ghost-${index}`, "eth0", signal);
    prefetcher.podChanged(podOf("ghost-1"));
    expect(prefetcher.stats()).toMatchObject({ unseen: MAX_UNSEEN_PODS + 1, wanted: 0 });
    prefetcher.podChanged(podOf("ghost-0"));
    await until(() => door.claims.length === 1, "the oldest is forgotten");
  });
});

describe("a pod deleted before its ADD", () => {
  check("prefetch: while its claim is under way: that ends, and nothing of it stays", async (world) => {
    await claimUnderWay(world);
    world.prefetcher.podGone(web);
    await until(() => world.door.underWay === 0, "the claim has ended");
    world.door.open();
    await until(() => world.prefetcher.stats().withdrawn === 1, "it was counted");
    expect([await world.rows(), world.node.poolCache.counts("blue")?.used]).toEqual([[], 0]);
  });

  check("while its claim is just being written: it is given back", async (world) => {
    world.door.isDeaf = true;
    await claimUnderWay(world);
    world.prefetcher.podGone(web);
    world.door.open();
    await until(() => world.prefetcher.stats().returned === 1, "it was given back");
    await until(async () => (await world.rows()).length === 0, "it is free");
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 1, withdrawn: 0 });
  });

  check("while its claim waits for its turn: it never begins", async (world) => {
    await crowd(world);
    world.prefetcher.podChanged(web);
    world.prefetcher.podGone(web);
    world.door.open();
    await until(() => world.prefetcher.stats().claimed === PREFETCHES_AT_ONCE, "the others are through");
    expect(world.prefetcher.stats()).toMatchObject({ withdrawn: 1 });
    expect((await world.rows()).filter((row) => row.startsWith("web"))).toEqual([]);
  });

  check("and a pod that got its sandbox otherwise is not claimed for any more", async (world) => {
    await crowd(world);
    world.prefetcher.podChanged(web);
    world.prefetcher.podChanged(podOf("web-0", { status: { phase: "Running", podIPs: [{ ip: "10.9.0.1" }] } }));
    expect(world.prefetcher.stats()).toMatchObject({ withdrawn: 1 });
  });

  check("the agent logs that releasing failed, and goes on", async (world) => {
    world.prefetcher.podChanged(web);
    await until(() => world.prefetcher.stats().claimed === 1, "it is claimed");
    world.door.isFull = true;
    world.prefetcher.podGone(web);
    const line = "warn Releasing addresses claimed ahead failed; they are released after 120000 ms";
    await until(() => world.node.lines.includes(line), "it was logged");
  });
});

describe("an agent that ends between a claim and its ADD", () => {
  check("leaves it in the journal: the next one claims nothing, and the ADD is a hit", async (world, reopen) => {
    world.prefetcher.podChanged(web);
    await until(() => world.prefetcher.stats().claimed === 1, "it is claimed");
    const before = await world.rows();
    const next = await reopen();
    next.prefetcher.podChanged(web);
    await until(() => next.prefetcher.stats().found === 1, "it is found");
    expect([next.door.claims, await next.rows()]).toEqual([[], before]);
    const address = await next.add(web);
    expect(before[0]).toContain(` ${address} `);
    expect(next.prefetcher.stats()).toMatchObject({ claimed: 0, found: 1, used: 1 });
  });

  check("and after it: a NIC that is attached is not claimed for again", async (world, reopen) => {
    world.prefetcher.podChanged(web);
    const address = await world.add(web);
    const next = await reopen();
    next.prefetcher.podChanged(web);
    await until(() => next.prefetcher.stats().withdrawn === 1, "it was looked at");
    expect([next.door.claims, await next.rows()]).toEqual([[], [`web-0 eth0 ${address} Bound c-web-0`]]);
  });

  check("takes back what is under way, and drops what is not", async (world, reopen) => {
    await crowd(world);
    world.prefetcher.podChanged(web);
    await world.prefetcher.close();
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 0, withdrawn: PREFETCHES_AT_ONCE + 1 });
    world.prefetcher.podChanged(podOf("web-1"));
    await world.prefetcher.waitForClaim(owner, "eth0", AbortSignal.abort());
    expect(world.prefetcher.stats()).toMatchObject({ adds: 0 });
    expect(await (await reopen()).rows()).toEqual([]);
  });
});

describe("before the agent knows enough", () => {
  const gate = Promise.withResolvers<void>();
  check(
    "nothing is claimed; an ADD does not wait for that",
    async (world) => {
      world.prefetcher.podChanged(web);
      world.prefetcher.podChanged(podOf("web-1"));
      world.prefetcher.podChanged(podOf("web-2"));
      world.prefetcher.podChanged(podOf("web-2", { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } }));
      world.prefetcher.podChanged(podOf("web-3"));
      world.prefetcher.podGone(podOf("web-3"));
      await world.add(web);
      expect(world.door.claims.map(({ containerId }) => containerId)).toEqual(["c-web-0"]);
      gate.resolve();
      await until(() => world.prefetcher.stats().claimed === 1, "the other one is claimed for");
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 1, adds: 1, unseen: 1 });
    },
    { mayBegin: gate.promise },
  );

  const never = Promise.withResolvers<void>();
  check(
    "and when it never is, nothing is claimed at all",
    async (world) => {
      never.reject(new Error("the journal cannot be compared"));
      world.prefetcher.podChanged(web);
      await until(() => world.node.lines.includes("debug Addresses are not claimed ahead of ADDs"), "it was logged");
      expect(await world.add(web)).toMatch(/^10\.6\.0\./);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 0, unseen: 1 });
    },
    { mayBegin: never.promise },
  );
});

it("an agent that stops before it knows enough claims nothing, also when it knows enough then", async () => {
  const known = Promise.withResolvers<void>();
  await withPrefetching(
    async ({ prefetcher, door }) => {
      prefetcher.podChanged(web);
      const closed = prefetcher.close();
      known.resolve();
      await closed;
      await known.promise;
      expect([door.claims, prefetcher.stats().wanted]).toEqual([[], 0]);
    },
    { mayBegin: known.promise },
  );
});

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
    { nics: () => [nic("eth0"), nic("net1")] },
  ),
);
