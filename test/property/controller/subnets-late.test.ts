/**
 * Two controllers that both believe that they lead, one after the other (docs/develop/subnets.md, "Why no address is in
 * two pools"). The first stops at each of its writes in turn: the write is carried out late, at each later moment, or
 * the controller goes on without hearing its watches any more. Whatever comes when, no address is in two pools, a pool
 * gets only addresses reserved for it alone, and in the end each workload has its addresses.
 */
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openCaches } from "../../../host/controller/caches.ts";
import { startFinalizers } from "../../../host/controller/finalizers/finalizer-controller.ts";
import { type LeadershipDeps, startLeadership } from "../../../host/controller/leadership.ts";
import { PoolWrites } from "../../../host/controller/pool-writes.ts";
import { startSubnets } from "../../../host/controller/subnets/subnets-controller.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Range } from "../../../host/net/range.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeAssignments } from "../../../host/resources/subnet.ts";
import { ALLOCATIONS, MemoryApiServer, type StoredObject, type Written } from "../../fakes/memory-api-server.ts";
import { type DemandOptions, ScriptedPoolOwners } from "../../fakes/scripted-pool-owners.ts";
import { allocationObject, allocationSpec } from "../../lab/cluster/objects.ts";

const NODES = "/api/v1/nodes";
const BERTH = "/apis/ipam.vendor.io/v1";
const [POOLS, SUBNETS] = [`${BERTH}/ippools`, `${BERTH}/subnets`];
const own = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });
/** A controller has done its work by then. */
const REST_MS = 11_000;
/** Before which step of the second one the write is carried out; "deaf": at once, and the first one hears no more. */
type Late = number | "deaf";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
});
afterEach(() => void vi.useRealTimers());

const addressesOf = (ranges: readonly Range[]): string[] =>
  ranges.flatMap(({ first, last }) =>
    Array.from({ length: Number(last.value - first.value) + 1 }, (_, at) =>
      formatIp({ ...first, value: first.value + BigInt(at) }),
    ),
  );

class World {
  readonly server = new MemoryApiServer({
    serves: { [POOLS]: own("IPPool"), [SUBNETS]: own("Subnet") },
    ...{ isOpen: true, nowMs: () => Date.now() },
  });
  readonly owners = new ScriptedPoolOwners();
  readonly breaches: string[] = [];
  /** Writes that were refused. */
  refused = 0;

  constructor() {
    this.server.onWritten = (written) => this.#check(written);
  }

  subnet(name: string, spec: object): void {
    this.server.put(SUBNETS, name, { ...this.server.collection(SUBNETS).get(name), spec: { ...SPEC, ...spec } });
  }

  want(name: string, ...demands: readonly DemandOptions[]): void {
    this.owners.want(name, `uid-${name}`, ...demands.map((each) => ({ subnets: ["a"], reason: "pods", ...each })));
  }

  /** Starts a controller; `stopAt`: the number of the write that does not return; its watches are late by `lagMs`. */
  async lead(stopAt = Number.POSITIVE_INFINITY, isDeaf = false, lagMs = 0) {
    let [writes, commitLate, isSilent] = [0, (): unknown => undefined, false];
    const leading = new AbortController();
    const api = this.server.client(
      (call, commit) => {
        if (call.method === "GET") return Promise.resolve().then(commit);
        if (++writes !== stopAt)
          return Promise.resolve()
            .then(commit)
            .catch((error: unknown) => {
              this.refused++;
              throw error;
            });
        isSilent = true;
        if (isDeaf) return Promise.resolve().then(commit);
        commitLate = commit;
        return new Promise(() => {});
      },
      (_path, deliver) => void (isSilent || (lagMs > 0 ? setTimeout(deliver, lagMs) : queueMicrotask(deliver))),
    );
    const log = openLog("test", "silent");
    const nowMs = () => performance.now();
    const caches = openCaches({ api, configNamespace: "berth", log, random: () => 0.5 });
    const synced = caches.synced();
    for (let left = 50; left > 0 && caches.unread.length > 0; left--) await turn();
    await synced;
    const leadership = startLeadership({ finalizers: startFinalizers, subnets: startSubnets }, {
      ...{ api, caches, log, random: () => 0.5, leading: leading.signal, clock: { nowMs, now: () => new Date() } },
      events: { emit: () => {}, close: async () => {} },
      owners: { pools: this.owners },
      poolWrites: new PoolWrites({ nodes: () => 1, nowMs }),
    } as unknown as LeadershipDeps);
    const end = () => {
      leading.abort(new Error("It has ended"));
      leadership.close().catch(() => {});
      caches.close().catch(() => {});
    };
    const tryLate = () => {
      try {
        commitLate();
      } catch {}
    };
    return { end, writes: () => writes, commitLate: tryLate };
  }

  addressesOf(owner: string): readonly string[] {
    return this.#generated().flatMap((pool) => (pool.owner === owner ? pool.addresses : []));
  }

  /** `web 2 of a`, of each generated pool with addresses. */
  sizes(): string[] {
    const pools = this.#generated().filter(({ addresses }) => addresses.length > 0);
    return pools.map(({ owner, subnet, addresses }) => `${owner} ${addresses.length} of ${subnet}`).sort();
  }

  #generated() {
    return [...this.server.collection(POOLS).values()].flatMap((object) => {
      const { ranges, generated } = poolOf(object);
      if (generated === undefined) return [];
      const { application, subnet } = generated;
      const name = object.metadata.name;
      return [{ name, owner: application.name, subnet, addresses: addressesOf(ranges) }];
    });
  }

  #check({ collection, before, after }: Written): void {
    if (collection !== POOLS && collection !== SUBNETS) return;
    const reserved = [...this.server.collection(SUBNETS).values()].flatMap(({ metadata, status }) =>
      decodeAssignments(status, "test").pools.map(({ name, ips }) => ({
        ...{ by: `${name} in ${metadata.name}`, ips: addressesOf(ips) },
      })),
    );
    const had = collection === POOLS && before !== undefined ? addressesOf(poolOf(before).ranges) : [];
    const all = this.#generated();
    for (const { name, subnet, addresses } of all)
      for (const address of addresses) {
        const others = all.filter((each) => each.name !== name && each.addresses.includes(address));
        const own = `${name} in ${subnet}`;
        const promised = reserved.filter(({ ips }) => ips.includes(address)).map(({ by }) => by);
        const isNew = after?.metadata.name === name && !had.includes(address);
        if (others.length > 0) this.breaches.push(`${address} is in two pools: ${name}, ${others[0]?.name}`);
        if (!promised.includes(own)) this.breaches.push(`${own} has ${address}, which is not reserved for it`);
        if (isNew && promised.length > 1) this.breaches.push(`${own} gets ${address}, reserved for ${promised.join()}`);
      }
  }
}

const SPEC = { subnet: "10.0.0.0/27", ips: ["10.0.0.1-10.0.0.4"] };
const poolOf = (object: StoredObject) => decodeIpPool({ ...object, ...own("IPPool") }, "test").spec;

interface Scene {
  /** Events for the first controller, and for the second one, each when all is at rest. */
  readonly first: readonly ((world: World) => void)[];
  readonly second: readonly ((world: World) => void)[];
  readonly end: string;
}

const BOTH = [{ subnets: ["a"] }, { subnets: ["b"], ifName: "net1" }] as const;

const SCENES: Readonly<Record<string, Scene>> = {
  "a Subnet takes back what it promised, and promises it to another": {
    first: [(world) => world.want("web", { count: 4 })],
    second: [
      (world) => world.subnet("a", { excludeIPs: SPEC.ips }),
      (world) => {
        world.want("api", { count: 4 });
        world.subnet("a", { excludeIPs: [] });
      },
    ],
    end: "api 4 of a",
  },
  "a pool gives back, and another one grows": {
    first: [(world) => world.want("web", { count: 4 }), (world) => world.want("web", { count: 1 })],
    second: [(world) => world.want("api", { count: 3 })],
    end: "api 3 of a, web 1 of a",
  },
  "a pool gives back while another one grows": {
    first: [
      (world) => world.want("web", { count: 3 }),
      (world) => {
        world.want("web", { count: 1 });
        world.want("api", { count: 2 });
      },
    ],
    second: [(world) => world.want("api", { count: 3 })],
    end: "api 3 of a, web 1 of a",
  },
  "a pool gives back, and grows again": {
    first: [(world) => world.want("web", { count: 4 }), (world) => world.want("web", { count: 1 })],
    second: [(world) => world.want("web", { count: 4 }), (world) => world.want("api", { count: 2, subnets: ["b"] })],
    end: "api 2 of b, web 4 of a",
  },
  "a workload goes, and another one comes": {
    first: [(world) => world.want("web", { count: 3 }), (world) => world.owners.end("uid-web")],
    second: [(world) => world.want("api", { count: 4 })],
    end: "api 4 of a",
  },
  "two Subnets of one network": {
    first: [(world) => world.want("web", { count: 2 }), (world) => world.want("api", { count: 2, subnets: ["b"] })],
    second: [(world) => world.want("web", { count: 3 }), (world) => world.want("api", { count: 3, subnets: ["b"] })],
    end: "api 3 of b, web 3 of a",
  },
  "a workload of two NICs moves": {
    first: [(world) => world.want("web", ...BOTH.map((each) => ({ ...each, count: 2 })))],
    second: [(world) => world.want("web", { subnets: ["b"], count: 2 }), (world) => world.want("api", { count: 4 })],
    end: "api 4 of a, web 2 of b",
  },
};

/** Returns the number of writes of the first controller. */
async function play(scene: Scene, stopAt: number, late: Late): Promise<number> {
  const world = new World();
  world.subnet("a", {});
  world.subnet("b", { ips: ["10.0.0.3-10.0.0.12"] });
  const rest = () => vi.advanceTimersByTimeAsync(REST_MS);
  const leader = await world.lead(stopAt, late === "deaf");
  for (const step of scene.first) {
    step(world);
    await rest();
  }
  if (late !== "deaf") leader.end();
  const next = await world.lead();
  await rest();
  for (const [at, step] of scene.second.entries()) {
    if (late === at) leader.commitLate();
    step(world);
    await rest();
  }
  if (late === scene.second.length) leader.commitLate();
  leader.end();
  for (let left = 3; left > 0; left--) await rest();
  const told = `${stopAt} ${late}: ${world.breaches.join("; ")}`;
  expect(world.breaches, told).toEqual([]);
  expect(world.sizes().join(", "), told).toContain(scene.end);
  next.end();
  return leader.writes();
}

it.each(Object.entries(SCENES))(
  "%s",
  async (_, scene) => {
    const writes = await play(scene, Number.POSITIVE_INFINITY, scene.second.length);
    expect(writes).toBeGreaterThan(3);
    for (let stopAt = 1; stopAt <= writes; stopAt++) {
      await play(scene, stopAt, "deaf");
      for (let late = 0; late <= scene.second.length; late++) await play(scene, stopAt, late);
    }
  },
  60_000,
);

it("a pass waits for the writes of the last one: a late watch costs no refused write", async () => {
  const world = new World();
  world.subnet("a", { ips: ["10.0.0.1-10.0.0.30"] });
  const leader = await world.lead(undefined, false, 300);
  for (let number = 10; number < 25; number++) {
    world.want(`w${number}`, { count: 2 });
    await vi.advanceTimersByTimeAsync(50);
  }
  await vi.advanceTimersByTimeAsync(REST_MS);
  leader.end();
  expect(world.sizes()).toEqual(Array.from({ length: 15 }, (_, at) => `w${at + 10} 2 of a`));
  expect(world.refused).toBe(0);
});

const CLAIMED = allocationObject(allocationSpec("10.0.0.2", { pool: "former" }));

it.each([
  ["a pod of another pool", ALLOCATIONS, "10.0.0.2", CLAIMED],
  ["a Node", NODES, "n1", { status: { addresses: [{ type: "InternalIP", address: "10.0.0.2" }] } }],
])("an address that %s turns out to have is replaced at once", async (_, collection, name, object) => {
  const world = new World();
  world.subnet("a", {});
  const leader = await world.lead();
  world.want("web", { count: 2 });
  await vi.advanceTimersByTimeAsync(REST_MS);
  expect(world.addressesOf("web")).toEqual(["10.0.0.2", "10.0.0.3"]);
  world.server.put(collection, name, object);
  await vi.advanceTimersByTimeAsync(1_000);
  leader.end();
  expect(world.addressesOf("web")).toEqual(["10.0.0.3", "10.0.0.4"]);
});
