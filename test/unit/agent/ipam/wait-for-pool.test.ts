import { describe, expect, it } from "vitest";
import type { PoolChanges } from "../../../../host/agent/ipam/cluster-ipam.ts";
import { PoolInventory } from "../../../../host/agent/ipam/pool-inventory.ts";
import {
  findUnobserved,
  hasUnobserved,
  type SkipIfFull,
  waitForPool,
} from "../../../../host/agent/ipam/wait-for-pool.ts";
import { BLOCK_WAIT_MS, POOL_WAIT_MS } from "../../../../host/agent/request/add-deadline.ts";
import { CniError } from "../../../../host/cni/error.ts";
import type { NicDemand } from "../../../../host/ipam/model.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { noPoolMatches, poolsExhausted } from "../../../../host/ipam/refusal.ts";
import { findUnservable, selectPools } from "../../../../host/ipam/selection.ts";
import type { SubnetState } from "../../../../host/ipam/subnet-capacity.ts";
import type { Registry } from "../../../../host/registry/registry.ts";
import type { PoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { decodeIpPool, type IpPool } from "../../../../host/resources/ip-pool.ts";
import { leasingPool, seenAt } from "../../../world/leasing-pool.ts";
import {
  decodedSnapshot,
  demandOf,
  EMPTY_SNAPSHOT,
  ipPool,
  openCore,
  pool,
  poolsByName,
  subject,
} from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const WEB: PoolOwner = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-web" };
const WANTED = { interface: "eth0", reclaim: true, wanted: 2, reason: "1 replica and 1 more" };
const RULE = 'IPv4 of interface "eth0" (annotation "ipam.vendor.io/subnet")';

const made = (ips: readonly string[], more: Partial<IpPool> = {}, application = WEB): IpPool => ({
  ...pool(`p-${application.uid}`, "10.1.0.0/24", { ips, generated: { ...WANTED, subnet: "blue", application } }),
  ...more,
});

/** Attempts take an address out of the pool cache, as a claim would; time passes only when nothing happens. */
class World {
  nowMs = 1_000;
  readonly poolCache = new PoolCache(openCore());
  readonly attempts: string[] = [];
  readonly subnetReads: string[] = [];
  forgotten = 0;
  /** Pools that the pod names. Default: those of its Subnet. */
  names: readonly string[] | undefined;
  /** Pools that were marked. */
  readonly wanted: string[] = [];
  subnetState: SubnetState = { kind: "there", family: 4, isDeleting: false };
  /** Events while the ADD waits, one for each wait. */
  readonly script: (() => void)[] = [];
  /** Called at the start of an attempt, and at the end of one that fails. */
  before: () => void = () => {};
  after: () => void = () => {};
  #count = 0;
  readonly #inventory: PoolInventory;

  constructor(...pools: readonly IpPool[]) {
    const registry = { setCooldowns: () => {}, readUsed: async () => new Uint8Array() } as Partial<Registry>;
    this.#inventory = new PoolInventory(this.poolCache, registry as Registry, EMPTY_SNAPSHOT);
    this.follow(...pools);
  }

  follow(...pools: readonly IpPool[]): void {
    this.#inventory.follow({ ...EMPTY_SNAPSHOT, pools: poolsByName(...pools) });
    this.#count++;
  }

  /** The addresses of its pool are in use. */
  fill(): void {
    for (const address of ["10.1.0.1", "10.1.0.2"]) this.poolCache.mark("", ip(address));
  }

  freed(address: string): void {
    this.poolCache.unmark("", ip(address));
    this.#count++;
  }

  readonly #poolChanges: PoolChanges = (() => {
    const world = this;
    return {
      get changeCount() {
        return world.#count;
      },
      changed: async (signal, { since, withinMs }) => {
        signal.throwIfAborted();
        if (world.#count !== since) return true;
        world.script.shift()?.();
        if (world.#count !== since) return true;
        world.nowMs += withinMs;
        return false;
      },
    };
  })();

  add(signal = new AbortController().signal): Promise<string> {
    const deps = {
      inventory: this.#inventory,
      cluster: {
        poolChanges: this.#poolChanges,
        readSubnet: async ({ name }: { name: string }) => {
          this.subnetReads.push(name);
          return this.subnetState;
        },
        forgetPoolOwners: () => void this.forgotten++,
        markWanted: async (name: string) => void this.wanted.push(name),
      },
    };
    const deadline = { clock: { nowMs: () => this.nowMs, sleep: async () => {} }, signal };
    return waitForPool(deps, (skipIfFull) => this.#attempt(skipIfFull), deadline);
  }

  async #attempt(skipIfFull: SkipIfFull): Promise<string> {
    const snapshot = await this.#inventory.loaded();
    const pod = {
      namespace: "shop",
      name: "w",
      labels: {},
      annotations: this.names === undefined ? { subnet: { ipv4: ["blue"] } } : { ippool: { ipv4: [...this.names] } },
      application: { kind: "application", application: WEB } as const,
    };
    const { nics } = selectPools(subject({ pod }), snapshot.pools);
    const nic = nics[0] as NicDemand;
    const demand = nic.families[0] ?? expect.fail("no family");
    this.before();
    if (findUnservable(nics) !== undefined) {
      this.attempts.push("none");
      throw noPoolMatches({ nics, nic, demand });
    }
    for (const { pool } of demand.candidates) {
      const taken = pool && this.poolCache.take(pool, 0);
      if (taken !== undefined) {
        this.attempts.push("taken");
        return "an address";
      }
    }
    this.attempts.push(skipIfFull(demand) ? "left" : "searched");
    this.after();
    const reasons = new Map(["p-u-web", "seg"].map((name) => [name, "has no free address"]));
    throw poolsExhausted({ nics, nic, demand, reasons });
  }
}

const refusalOf = (world: World): Promise<CniError> =>
  world.add().then(
    () => expect.fail("served"),
    (error) => error,
  );

describe("an ADD is served", () => {
  it("when its pool comes, and when that gets addresses; the pools of others do not make it try", async () => {
    const world = new World();
    const others = made(["10.1.0.9"], {}, { ...WEB, uid: "u-other" });
    world.script.push(
      () => world.follow(others),
      () => world.follow(others, made([])),
      () => world.follow(others, made(["10.1.0.1"])),
    );
    await world.add();
    expect([world.attempts, world.nowMs]).toEqual([["none", "taken"], 1_000]);
  });

  it("when an address of its full pool becomes free; another one's does not make it try", async () => {
    const world = new World(made(["10.1.0.1-10.1.0.2"]));
    world.fill();
    world.script.push(
      () => world.freed("10.1.0.9"),
      () => world.freed("10.1.0.2"),
    );
    await world.add();
    expect(world.attempts).toEqual(["searched", "taken"]);
  });

  it("by a change that came while it tried", async () => {
    const world = new World(made([]));
    world.after = () => {
      world.after = () => {};
      world.follow(made(["10.1.0.1"]));
    };
    await world.add();
    expect([world.attempts, world.nowMs]).toEqual([["left", "taken"], 1_000]);
  });

  it("by the last read, when an address has become free elsewhere without an event", async () => {
    const world = new World(made(["10.1.0.1-10.1.0.2"]));
    world.fill();
    world.before = () => {
      if (world.nowMs > 1_000) world.poolCache.unmark("", ip("10.1.0.2"));
    };
    expect(await world.add()).toBe("an address");
    expect([world.attempts, world.nowMs]).toEqual([["searched", "taken"], 1_000 + POOL_WAIT_MS]);
  });
});

describe("an ADD whose pool leases blocks", () => {
  const seg = (blocks: readonly string[], shortfall?: string): IpPool =>
    leasingPool("seg", "10.6.0.0/24", blocks, { spec: { selection: "ascending" }, ...(shortfall && { shortfall }) });
  const worldOf = (one: IpPool): World => {
    const world = new World(one);
    world.names = ["seg"];
    world.poolCache.followRegistry(() => seenAt("e1"));
    return world;
  };
  const USED_UP = "the share of 4 blocks is used up";

  it("marks the pool, and waits until a block has rested", async () => {
    const world = worldOf(seg([]));
    world.script.push(
      () => world.follow(seg(["10.6.0.16/28 Resting"])),
      () => world.follow(seg(["10.6.0.16/28 New"])),
    );
    await world.add();
    expect([world.attempts, world.wanted, world.nowMs]).toEqual([["searched", "taken"], ["seg"], 1_000]);
  });

  it.each<[what: string, pool: IpPool, waitedMs: number]>([
    ["no reason is known why none would come", seg([]), BLOCK_WAIT_MS],
    ["a block rests", seg(["10.6.0.16/28 Resting"], USED_UP), BLOCK_WAIT_MS],
    ["it is known why none comes", seg([], USED_UP), POOL_WAIT_MS],
  ])("waits for a block while %s", async (_what, given, waitedMs) => {
    const world = worldOf(given);
    expect(await refusalOf(world)).toMatchObject({ code: 101 });
    expect([world.attempts, world.nowMs]).toEqual([["searched", "searched"], 1_000 + waitedMs]);
  });

  it("ends the wait when it becomes known why none comes, and says so with the range", async () => {
    const world = worldOf(seg([]));
    world.script.push(() => world.follow(seg([], USED_UP)));
    const message = `No address is free for IPv4 of interface "eth0" (annotation "ipam.vendor.io/ippool"): pool "seg" has no free address, takes its blocks from AddressRange "seg": ${USED_UP}`;
    expect(await refusalOf(world)).toMatchObject({ code: 101, message });
    expect(world.nowMs).toBe(1_000 + POOL_WAIT_MS);
  });
});

describe("an ADD that waited in vain", () => {
  it("has waited for so long, has tried twice, and says how many addresses are there", async () => {
    const world = new World(made(["10.1.0.1"]));
    world.poolCache.mark("", ip("10.1.0.1"));
    const why = "has 1 of 2 addresses wanted (1 replica and 1 more): no more have come within 5 s";
    const message = `No address is free for ${RULE}: pool "p-u-web" has no free address, ${why}`;
    expect(await refusalOf(world)).toMatchObject({ code: 11, message });
    expect([world.attempts, world.nowMs]).toEqual([["left", "searched"], 1_000 + POOL_WAIT_MS]);
    expect([world.subnetReads, world.forgotten]).toEqual([[], 0]);
  });

  const shortfall =
    'has 0 of 2 addresses wanted (1 replica and 1 more): Subnet "blue" has 0 free of 254, 254 assigned to 12 pools';
  it.each([
    ["the obstacle of its pool", made([], { shortfall }), shortfall],
    ["that it has all of them", made(["10.1.0.1-10.1.0.2"]), "has 2 of 2 addresses wanted (1 replica and 1 more)"],
  ])("is told %s: code 101", async (_what, given, why) => {
    const world = new World(given);
    world.fill();
    const message = `No address is free for ${RULE}: pool "p-u-web" has no free address, ${why}`;
    expect(await refusalOf(world)).toMatchObject({ code: 101, message });
    expect(world.attempts).toEqual(["searched", "searched"]);
  });

  const absent = `No pool may serve ${RULE}: no pool has been generated for Deployment shop/web out of Subnet "blue" yet`;
  const toBeMade = 'to be made out of Subnet "blue", because all nodes are told of each';
  const there = { kind: "there", family: 4, isDeleting: false } as const;
  it.each<[subnetState: SubnetState, why: string]>([
    [{ kind: "absent" }, 'Subnet "blue" does not exist'],
    [{ ...there, waiting: 1 }, `1 new pool waits ${toBeMade}`],
    [{ ...there, waiting: 812 }, `812 new pools wait ${toBeMade}`],
  ])("for no pool at all: %j", async (subnetState, why) => {
    const world = new World();
    world.subnetState = subnetState;
    expect(await refusalOf(world)).toMatchObject({ code: 11, message: `${absent}: ${why}` });
    expect([world.attempts, world.subnetReads, world.forgotten]).toEqual([["none", "none"], ["blue"], 1]);
  });

  it("for a pool that is going away keeps the first words", async () => {
    const world = new World(made(["10.1.0.1"], { deleting: true }));
    const message = `No pool may serve ${RULE}: pool "p-u-web" is being deleted`;
    expect(await refusalOf(world)).toMatchObject({ code: 100, message });
  });
});

describe("no ADD waits", () => {
  it("when something else was wrong", async () => {
    const world = new World(made(["10.1.0.1"]));
    world.before = () => {
      throw new CniError(107, "no registry");
    };
    await expect(world.add()).rejects.toMatchObject({ code: 107 });
    expect(world.nowMs).toBe(1_000);
  });

  it("when the caller hung up", async () => {
    const world = new World();
    const giveUp = new AbortController();
    world.script.push(() => {
      giveUp.abort(new Error("the caller hung up"));
      world.follow();
    });
    await expect(world.add(giveUp.signal)).rejects.toThrow("the caller hung up");
  });
});

const COORDINATOR = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" }, spec: {} };
const ready = (observedGeneration: number) => ({
  status: { conditions: [{ type: "Ready", status: "True", message: "", observedGeneration }] },
});
/** Of generation 2. */
const blueOf = (status: object, spec: object = {}) => ({
  ...ipPool("blue", "10.6.0.0/24", spec),
  metadata: { name: "blue", resourceVersion: "1", generation: 2 },
  ...status,
});
const generated = { ...WANTED, subnet: "s", application: WEB };

it.each<[string, object[], boolean]>([
  ["is looked at when its generation is Ready", [COORDINATOR, blueOf(ready(2))], false],
  ["is not, after its specification was changed", [COORDINATOR, blueOf(ready(1))], true],
  ["is not, without a status", [COORDINATOR, blueOf({})], true],
  ["is looked at by its controller", [COORDINATOR, blueOf({}, { generated, ips: [] })], false],
  ["is not waited for where no controller is expected", [blueOf({})], false],
])("a pool %s", (_, manifests, wanted) => {
  const snapshot = decodedSnapshot(...manifests);
  expect(findUnobserved(snapshot)).toBe(wanted ? "blue" : undefined);
  const other = demandOf({ ifName: "eth0", pools: [] }, snapshot.pools);
  const demand = { nics: [demandOf({ ifName: "eth0", pools: [["blue"]] }, snapshot.pools)] };
  expect([hasUnobserved(snapshot, demand), hasUnobserved(snapshot, { nics: [other] })]).toEqual([wanted, false]);
});

it("a pool of a file has no generation, and is not looked at", () =>
  expect(decodeIpPool(ipPool("blue", "10.6.0.0/24"), "the test").isObserved).toBeUndefined());
