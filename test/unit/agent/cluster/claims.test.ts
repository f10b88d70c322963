/**
 * The search of a claim against a registry that plays a cluster: others have addresses of which the pool cache has
 * not heard, and keep some.
 */
import { describe, expect, it } from "vitest";
import { allocateAddresses } from "../../../../host/agent/ipam/allocate.ts";
import type { ClusterIpam } from "../../../../host/agent/ipam/cluster-ipam.ts";
import { LIVE_USAGE_MISSES, LIVE_USAGE_MISSES_LARGE } from "../../../../host/agent/ipam/live-usage.ts";
import type { AllocateDeps } from "../../../../host/agent/ipam/sources/source.ts";
import type { TenantLimits } from "../../../../host/agent/ipam/tenant-limits.ts";
import { AddDeadline } from "../../../../host/agent/request/add-deadline.ts";
import { ErrorCode } from "../../../../host/cni/error.ts";
import { PoolTally } from "../../../../host/controller/usage/usage-counter.ts";
import { readCoreWasm } from "../../../../host/core/instance.ts";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { selectPools } from "../../../../host/ipam/selection.ts";
import { equalIp, formatIp, type Ip } from "../../../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import {
  type Allocation,
  type Claim,
  type ClaimOutcome,
  type Registry,
  RegistryError,
} from "../../../../host/registry/registry.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../../host/resources/ip-pool-shape.ts";
import type { PoolUsage } from "../../../../host/resources/ip-pool-usage.ts";
import { TestClock } from "../../../world/clock.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { openCore, pool, poolsByName, subject } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const FULL_NAMESPACE: TenantLimits = { perPod: undefined, full: { namespace: "shop", addresses: 9, limit: 9 } };
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };

/** The API server: the owners by address. Only what a claim needs is played. */
class Cluster {
  readonly objects = new Map<string, Allocation>();
  readonly released: string[] = [];
  usageReads = 0;
  usageReadsFail = false;
  retainedReads = 0;
  /** Content of any pool's usage object, and the number of requests for it. */
  usage: PoolUsage | undefined;
  summaryReads = 0;
  proposed: string[] = [];
  /** Whether a survey tells anything. */
  knowsUsage = true;
  #version = 0;

  put(address: string, rest: Partial<Allocation> = {}): Allocation {
    const object: Allocation = {
      ...{ space: "", ip: ip(address), prefixLength: 24, pool: "blue", state: "Bound", owner: "other", ifName: "eth0" },
      ...{ containerId: "-", network: "", namespace: "", pod: "other", sinceMs: 0, version: -++this.#version - 1 },
      ...rest,
    };
    this.objects.set(address, object);
    return object;
  }

  claim(claim: Claim): ClaimOutcome {
    const found = claim.proposals.map((proposal) => ({ proposal, object: this.objects.get(formatIp(proposal.ip)) }));
    this.proposed.push(...claim.proposals.map((proposal) => formatIp(proposal.ip)));
    const own = [...this.objects.values()].filter(
      ({ owner, ifName, version, isConfirmed }) =>
        owner === claim.owner && ifName === claim.ifName && (version > 0 || isConfirmed !== true),
    );
    if (own.length > 0) return { kind: "bound", held: own, created: [], previous: [] };
    const by = found.flatMap(({ object, proposal }) =>
      object === undefined || isFor(object, proposal.replaces) ? [] : [object],
    );
    if (by.length > 0) return { kind: "taken", by };
    const { owner, ifName, containerId, workload, number = 0 } = claim;
    const row = { owner, ifName, containerId, workload, claim: named(number) };
    const rows = found.map(({ proposal }) => this.put(formatIp(proposal.ip), { ...row, version: ++this.#version }));
    const added = rows.filter((_, index) => found[index]?.object === undefined);
    const open = workload === undefined ? [] : added.map(({ workload: _, ...row }) => row);
    return { kind: "bound", held: rows, created: rows, previous: [], added, open };
  }

  get used(): Ip[] {
    return [...this.objects.values()].map((object) => object.ip);
  }
}

const named = (number: number) => ({ id: "c", number, earlier: [] });

/** An address that is Bound in this node's journal has no other owner. */
function isFor({ version, state }: Allocation, replaces: number | undefined): boolean {
  return version === replaces && (version < 0 || state === "Cooling");
}

function packed(addresses: readonly Ip[]): Uint8Array {
  return Uint8Array.from(
    addresses.flatMap(({ value }) => [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 255n))),
  );
}

function worldOf(pools: readonly IpPool[]) {
  const cluster = new Cluster();
  const poolCache = new PoolCache(openCore());
  poolCache.update(pools, []);
  const clock = new TestClock({ isHasty: true });
  const registry = {
    claim: async (claim) => cluster.claim(claim),
    retain: async () => {},
    undo: async (created) => {
      for (const { space, ip: address } of created) {
        cluster.objects.delete(formatIp(address));
        poolCache.unmark(space, address);
      }
    },
    listUsed: async () => {
      cluster.usageReads++;
      if (cluster.usageReadsFail) throw new RegistryError("The API server does not tell");
      return cluster.knowsUsage ? packed(cluster.used) : undefined;
    },
    readUsageSummary: async () => {
      cluster.summaryReads++;
      return cluster.usage;
    },
    // Of this node itself.
    readUsed: async () =>
      packed([...cluster.objects.values()].filter(({ version }) => version > 0).map((each) => each.ip)),
    findRetained: async (workload) => {
      cluster.retainedReads++;
      return [...cluster.objects.values()].filter((each) => each.workload?.member === workload.member);
    },
    findOwner: async () => [],
    findCooling: async () => [],
    findQuarantined: async () => [],
    expire: async () => 0,
    findAddress: async (_space, address) => {
      const found = cluster.objects.get(formatIp(address));
      return found !== undefined && found.version > 0 ? found : undefined;
    },
  } satisfies Partial<Registry>;
  const deps: AllocateDeps & { readonly cluster: ClusterIpam } = {
    registry: registry as unknown as Registry,
    poolCache,
    cluster: clusterIpam({
      releaseRetained: async (retained) => void cluster.released.push(...retained.map((each) => formatIp(each.ip))),
    }),
  };
  const claim = async (
    options: { workload?: typeof WORKLOAD; seedText?: string; requested?: string; limits?: TenantLimits } = {},
  ) => {
    const names = pools.map(({ name }) => name);
    const given = subject({
      pod: { namespace: "shop", name: "db-0", labels: {}, annotations: { ippool: { ipv4: names } } },
    });
    const claimant = {
      ...{ owner: "uid", namespace: "shop", pod: "db-0", ifName: "eth0", containerId: "c", network: "lab" },
      workload: options.workload,
    };
    const requested =
      options.requested === undefined ? [] : [{ ip: ip(options.requested), source: "CNI_ARGS IP" as const }];
    const { held } = await allocateAddresses(deps, {
      ...{ nics: selectPools(given, poolsByName(...pools)).nics, requested, claimant, limits: options.limits },
      ...{ seedText: options.seedText ?? "seed", deadline: new AddDeadline(clock, new AbortController().signal) },
    });
    return held.map((each) => formatIp(each.ip));
  };
  return { cluster, poolCache, deps, claim };
}

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => `10.6.0.${first + index}`);

describe("exhaustion: a pool of which the pool cache knows little", () => {
  it("after two misses in a row it is asked what is in use, once", async () => {
    const { cluster, claim } = worldOf([pool("blue", "10.6.0.0/24", { selection: "ascending" })]);
    for (const address of range(1, 250)) cluster.put(address);
    const [address] = await claim();
    expect(range(251, 254)).toContain(address);
    expect(cluster.usageReads).toBe(1);
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + 1);
  });

  it("a large pool is not asked for misses; its pods spread", async () => {
    const large = pool("blue", "10.0.0.0/12", { selection: "ascending" });
    const { cluster, claim } = worldOf([large]);
    for (const host of [1, 2, 3, 4, 5, 6, 7, 8]) cluster.put(`10.0.0.${host}`);
    await claim();
    expect(cluster.usageReads).toBe(0);
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + 1);
  });

  it("a large pool that is nearly full is asked for after more misses, once", async () => {
    const { cluster, claim } = worldOf([pool("blue", "10.6.0.0/19")]);
    for (const third of Array(32).keys()) {
      for (const fourth of Array(256).keys()) if (third !== 9) cluster.put(`10.6.${third}.${fourth}`);
    }
    const [address] = await claim({ seedText: "far from there" });
    expect(address).toMatch(/^10\.6\.9\./);
    expect(cluster.usageReads).toBe(1);
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES_LARGE + 1);
  });

  it("a search goes on by trying when the API server does not tell", async () => {
    const { cluster, claim } = worldOf([pool("blue", "10.6.0.0/24", { selection: "ascending" })]);
    for (const address of range(1, 20)) cluster.put(address);
    cluster.usageReadsFail = true;
    expect(await claim()).toHaveLength(1);
    expect(cluster.usageReads).toBe(1);
  });

  it("misses of this node's own rows are no reason to ask", async () => {
    const { cluster, claim } = worldOf([pool("blue", "10.6.0.0/24", { selection: "ascending" })]);
    for (const address of range(1, 5)) cluster.put(address, { version: 7 });
    expect(await claim()).toEqual(["10.6.0.6"]);
    expect(cluster.usageReads).toBe(0);
  });

  it("exhausted only after a survey: what the pool cache believes is not enough", async () => {
    const tiny = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.2"] });
    const { cluster, poolCache, claim } = worldOf([tiny]);
    for (const address of ["10.6.0.1", "10.6.0.2"]) poolCache.mark("", ip(address));
    cluster.put("10.6.0.1");
    expect(await claim()).toEqual(["10.6.0.2"]);
    expect(cluster.usageReads).toBe(1);
  });

  it("a pool that is full by the survey is exhausted, and is asked once only", async () => {
    const tiny = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.2"] });
    const { cluster, claim } = worldOf([tiny]);
    for (const address of ["10.6.0.1", "10.6.0.2"]) cluster.put(address);
    await expect(claim()).rejects.toMatchObject({ code: 101, message: expect.stringContaining("2 of 2 in use") });
    expect(cluster.usageReads).toBe(1);
  });

  it("the next pool of the list is not held up by a full one", async () => {
    const tiny = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1"] });
    const { cluster, claim } = worldOf([tiny, pool("green", "10.7.0.0/30")]);
    cluster.put("10.6.0.1");
    expect((await claim())[0]).toMatch(/^10\.7\.0\.[12]$/);
  });
});

describe("the pool cache after a survey", () => {
  it("keeps reservations and frees addresses without an owner, in all pools of the subnet", () => {
    const pools = [pool("a", "10.6.0.0/24"), pool("b", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] })];
    const poolCache = new PoolCache(openCore());
    poolCache.update(pools, []);
    const [a, b] = pools;
    if (a === undefined || b === undefined) throw new Error("Two pools");
    expect(poolCache.neighboursOf(b).map(({ name }) => name)).toEqual(["a", "b"]);
    poolCache.mark("", ip("10.6.0.1"));
    expect(poolCache.takeExactly(b, ip("10.6.0.2"))).toBe("claimed");
    for (const each of pools) poolCache.replaceUsed(each, packed([ip("10.6.0.3")]));
    const state = range(1, 4).map((address) => poolCache.takeExactly(b, ip(address)));
    expect(state).toEqual(["claimed", "taken", "taken", "claimed"]);
    poolCache.cancel("", ip("10.6.0.2"));
    expect(poolCache.takeExactly(a, ip("10.6.0.2"))).toBe("claimed");
  });

  it("is told of the pools that share addresses with one, by way of others too, and of no other pool of the subnet", () => {
    const ranges = { a: "10-19", b: "19-29", c: "29-39", d: "40-49" };
    const pools = Object.entries(ranges).map(([name, ips]) => {
      const [first, last] = ips.split("-").map((end) => `10.6.0.${end}`);
      return pool(name, "10.6.0.0/24", { ips: [`${first}-${last}`] });
    });
    const poolCache = new PoolCache(openCore());
    poolCache.update(pools, []);
    const neighbours = pools.map((each) =>
      poolCache
        .neighboursOf(each)
        .map(({ name }) => name)
        .join(""),
    );
    expect(neighbours).toEqual(["abc", "abc", "abc", "d"]);
  });

  it.each([
    ["a list", (cache: PoolCache, blue: IpPool) => cache.replaceUsed(blue, packed([ip("10.6.0.2")]))],
    [
      "a usage summary",
      (cache: PoolCache, blue: IpPool) => {
        const { rangesHash, bitmap = new Uint8Array() } = usageOf(blue, ["10.6.0.2"]);
        expect(cache.loadEstimate(blue, { rangesHash, bitmap }, new Uint8Array())).toBe(true);
      },
    ],
  ])(
    "a reservation of an address that another owner has by %s is dropped: giving it back does not free it",
    (_, load) => {
      const blue = pool("blue", "10.6.0.0/24");
      const poolCache = new PoolCache(openCore());
      poolCache.update([blue], []);
      poolCache.takeExactly(blue, ip("10.6.0.2"));
      load(poolCache, blue);
      poolCache.cancel("", ip("10.6.0.2"));
      expect(poolCache.takeExactly(blue, ip("10.6.0.2"))).toBe("taken");
    },
  );
});

describe("retention: what is kept for a member", () => {
  const blue = pool("blue", "10.6.0.0/24");
  const retained = (rest: Partial<Allocation> = {}) => ({
    ...{ state: "Kept" as const, owner: "", pod: "", workload: WORKLOAD },
    ...rest,
  });

  it("is taken instead of a fresh address, which goes back", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
    expect([...cluster.objects.keys()]).toEqual(["10.6.0.77"]);
    expect(cluster.retainedReads).toBe(1);
  });

  it("is taken though it does not say for which NIC it is kept", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained({ ifName: "" }));
    cluster.put("10.9.0.1", retained({ ifName: "", pool: "gone" }));
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
    expect(cluster.released).toEqual([]);
  });

  it("gives way to an address that the pod asks for by name", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    cluster.put("10.6.0.79", retained({ ifName: "net1" }));
    expect(await claim({ workload: WORKLOAD, requested: "10.6.0.5" })).toEqual(["10.6.0.5"]);
    expect(cluster.released).toEqual(["10.6.0.77"]);
  });

  it("is not asked for again when a pod that asked for an address has it", async () => {
    const { cluster, claim } = worldOf([blue]);
    for (let repeat = 0; repeat < 3; repeat++) await claim({ workload: WORKLOAD, requested: "10.6.0.5" });
    expect(cluster.retainedReads).toBe(1);
  });

  it("is not asked for by other pods, nor when the NIC has an address", async () => {
    const { cluster, claim } = worldOf([blue]);
    await claim();
    expect(cluster.retainedReads).toBe(0);
    expect(await claim({ workload: WORKLOAD })).toHaveLength(1);
    expect(cluster.retainedReads).toBe(0);
  });

  it("is released when the pools that are selected now lack it, and another one stays", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.9.0.1", retained({ pool: "gone" }));
    expect((await claim({ workload: WORKLOAD }))[0]).toMatch(/^10\.6\.0\./);
    expect(cluster.released).toEqual(["10.9.0.1"]);
  });

  it("for a NIC that is not asked about now stays, also when the NIC that is finds nothing of its own", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.9.0.1", retained({ ifName: "net1", pool: "gone" }));
    cluster.put("10.6.0.77", retained({ ifName: "net1" }));
    const [address] = await claim({ workload: WORKLOAD });
    expect([address === "10.6.0.77", cluster.released]).toEqual([false, []]);
  });

  it.each([
    ["", {}],
    [" but what the selected pools lack, which is released", { "10.9.0.1": retained({ pool: "gone" }) }],
    [" for this NIC", { "10.6.0.77": retained({ ifName: "net1" }) }],
  ])("is nothing%s: a full namespace's member is refused without a write", async (_what, objects: object) => {
    const { cluster, claim } = worldOf([blue]);
    for (const [address, rest] of Object.entries(objects)) cluster.put(address, rest);
    await expect(claim({ workload: WORKLOAD, limits: FULL_NAMESPACE })).rejects.toMatchObject({
      code: ErrorCode.PoolExhausted,
    });
    expect([cluster.proposed, cluster.retainedReads]).toEqual([[], 1]);
    expect(cluster.released).toEqual(Object.keys(objects).filter((address) => address.startsWith("10.9.")));
  });

  it("is a full namespace's member's own, and nothing else is claimed", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    expect(await claim({ workload: WORKLOAD, limits: FULL_NAMESPACE })).toEqual(["10.6.0.77"]);
    expect([cluster.proposed, cluster.retainedReads]).toEqual([["10.6.0.77"], 1]);
  });

  it("of another NIC of the member is left alone", async () => {
    const { cluster, claim } = worldOf([blue]);
    const own = cluster.put("10.6.0.77", { ...retained(), ifName: "net1", state: "Bound", owner: "before" });
    const [address] = await claim({ workload: WORKLOAD });
    expect(address).not.toBe("10.6.0.77");
    expect(cluster.objects.get("10.6.0.77")).toEqual(own);
    expect(cluster.released).toEqual([]);
  });

  it("that another node was faster with is not waited for", async () => {
    const { cluster, deps, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    const find = deps.registry.findRetained.bind(deps.registry);
    deps.registry.findRetained = async (workload) => {
      const found = await find(workload);
      cluster.put("10.6.0.77", { pod: "thief" });
      return found;
    };
    const [address] = await claim({ workload: WORKLOAD });
    expect(equalIp(ip(address ?? "::"), ip("10.6.0.77"))).toBe(false);
  });

  it("is listed at the first address that another owner has, before the pool is listed", async () => {
    const { cluster, claim } = worldOf([pool("blue", "10.6.0.0/24", { selection: "ascending" })]);
    for (const address of range(1, 9)) cluster.put(address);
    cluster.put("10.6.0.77", retained());
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
    expect([cluster.proposed, cluster.usageReads]).toEqual([["10.6.0.1", "10.6.0.77"], 0]);
  });

  it("is asked for before a pool counts as full, whatever cools there", async () => {
    const tiny = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.2"] });
    const { cluster, poolCache, deps, claim } = worldOf([tiny]);
    for (const address of range(1, 2)) poolCache.mark("", ip(address));
    const cooling = cluster.put("10.6.0.1", { state: "Cooling" });
    deps.registry.findCooling = async () => [cooling];
    cluster.put("10.6.0.2", retained());
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.2"]);
    expect([cluster.proposed, cluster.usageReads]).toEqual([["10.6.0.2"], 0]);
  });

  it("beside what the NIC gets is released, the one with the highest number is used, and other NICs' stay", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained({ claim: named(1) }));
    cluster.put("10.6.0.78", retained({ claim: named(2) }));
    cluster.put("10.6.0.79", retained({ ifName: "net1" }));
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.78"]);
    expect(cluster.released).toEqual(["10.6.0.77"]);
  });

  it("is about to be: an address that a pod of this node has just released goes to no other pod", async () => {
    const tiny = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1"] });
    const { cluster, deps, claim } = worldOf([tiny]);
    const released = cluster.put("10.6.0.1", {
      state: "Cooling",
      workload: { ...WORKLOAD, member: "db-1" },
      version: 7,
    });
    deps.registry.findCooling = async () => [released];
    await expect(claim()).rejects.toMatchObject({ code: 101 });
    await expect(claim({ workload: WORKLOAD })).rejects.toMatchObject({ code: 101 });
  });

  it("is the member's where this node's own row of it is older", async () => {
    const { cluster, deps, claim } = worldOf([blue]);
    const object = { ...cluster.put("10.6.0.77", retained()) };
    const row = cluster.put("10.6.0.77", { state: "Cooling", version: 7 });
    deps.registry.findRetained = async () => [object];
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
    expect(row.workload).toBeUndefined();
  });

  it.each([
    ["a live pod elsewhere", { version: -40 }],
    ["an earlier pod of this node", { version: 40 }],
  ])("of another NIC of %s has another owner, and is no reason to wait", async (_, rest) => {
    const { cluster, deps, claim } = worldOf([pool("blue", "10.6.0.0/24", { selection: "ascending" })]);
    const displaced: Allocation[] = [];
    Object.assign(deps.cluster, { evictPredecessor: async (row: Allocation) => void displaced.push(row) });
    const other = cluster.put("10.6.0.1", { ...retained(), ifName: "net1", state: "Bound", owner: "before", ...rest });
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.2"]);
    expect([cluster.objects.get("10.6.0.1"), displaced]).toEqual([other, []]);
  });

  it("is taken before what an earlier pod seems to have, which is left of a claim that was undone", async () => {
    const { cluster, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    cluster.put("10.6.0.78", retained({ state: "Bound", owner: "before", pod: "db-0" }));
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
  });

  it("may be bound to the pod itself, by an agent whose journal is lost: it comes after what is retained", async () => {
    const { cluster, claim } = worldOf([blue]);
    const orphaned = { state: "Bound", owner: "uid", pod: "db-0", isConfirmed: true } as const;
    cluster.put("10.6.0.79", retained(orphaned));
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.79"]);
    const other = worldOf([blue]);
    other.cluster.put("10.6.0.77", retained());
    other.cluster.put("10.6.0.79", retained(orphaned));
    expect(await other.claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
  });

  it.each([
    ["a higher number", { claim: named(2) }, "10.6.0.79"],
    ["no number, and was created before", { claim: named(0), createdAt: "2026-01-01T00:00:00Z" }, "10.6.0.79"],
    ["no number, and was created later", { claim: named(0), createdAt: "2026-01-03T00:00:00Z" }, "10.6.0.80"],
  ])("of an earlier pod, beside one that the journal had lost, has %s", async (_, record, expected) => {
    const { cluster, deps, claim } = worldOf([blue]);
    const earlier = cluster.put("10.6.0.79", retained({ state: "Bound", owner: "before", ...record }));
    const first = { claim: named(0), createdAt: "2026-01-02T00:00:00Z" };
    const own = cluster.put("10.6.0.80", retained({ state: "Bound", owner: "uid", ...first }));
    const row = { ...own, version: 7, isConfirmed: true };
    deps.registry.findRetained = async () => [earlier, own];
    deps.registry.findAddress = async (_space, address) => (equalIp(address, row.ip) ? row : undefined);
    const take = deps.registry.claim.bind(deps.registry);
    deps.registry.claim = async (wanted) =>
      wanted.proposals.some((each) => equalIp(each.ip, earlier.ip))
        ? take(wanted)
        : { kind: "bound", held: [row], created: [], previous: [], open: [row] };
    cluster.objects.delete("10.6.0.80");
    expect(await claim({ workload: WORKLOAD })).toEqual([expected]);
  });

  it("beside what another NIC has is not surplus, if the journal had lost that address", async () => {
    for (const [containerId, released] of [
      [UNKNOWN_CONTAINER, []],
      ["c", ["10.6.0.79"]],
    ] as const) {
      const { cluster, claim, deps } = worldOf([blue]);
      cluster.put("10.6.0.77", retained());
      cluster.put("10.6.0.79", retained({ ifName: "net1" }));
      const row = { ...cluster.put("10.6.0.80"), isConfirmed: true, ifName: "net1", containerId };
      Object.assign(deps.registry, { findOwner: async () => [row] });
      await claim({ workload: WORKLOAD });
      expect(cluster.released).toEqual(released);
    }
  });

  it("is waited for while another pod of this node tries to claim it, and nothing else that is retained is released", async () => {
    const { cluster, deps, claim } = worldOf([blue]);
    cluster.put("10.6.0.76", retained());
    const object = cluster.put("10.6.0.77", retained({ claim: named(2) }));
    let attempts = 0;
    const take = deps.registry.claim.bind(deps.registry);
    const row = { ...object, state: "Bound" as const, owner: "app", version: 7, isConfirmed: false };
    deps.registry.claim = async (wanted) => {
      const isMet = wanted.proposals.some((each) => formatIp(each.ip) === "10.6.0.77") && ++attempts <= 3;
      return isMet ? { kind: "taken", by: [row] } : take(wanted);
    };
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.77"]);
    expect([attempts, cluster.retainedReads, cluster.released]).toEqual([4, 1, ["10.6.0.76"]]);
  });

  it("is the pod's when it has become free meanwhile, and is retained anew", async () => {
    const { cluster, deps, claim } = worldOf([blue]);
    cluster.put("10.6.0.77", retained());
    const undone = cluster.put("10.6.0.78", retained({ claim: named(2) }));
    const find = deps.registry.findRetained.bind(deps.registry);
    deps.registry.findRetained = async (workload) => {
      const found = await find(workload);
      cluster.objects.delete(formatIp(undone.ip));
      return found;
    };
    expect(await claim({ workload: WORKLOAD })).toEqual(["10.6.0.78"]);
    expect([cluster.retainedReads, cluster.released]).toEqual([1, ["10.6.0.77"]]);
  });

  it("starts its search at the same place whatever the pod's UID", async () => {
    const first = await worldOf([blue]).claim({ workload: WORKLOAD, seedText: "set/db-0" });
    const second = await worldOf([blue]).claim({ workload: WORKLOAD, seedText: "set/db-0" });
    expect(second).toEqual(first);
  });

  it("node-lost: it is not claimed ahead of the NIC that could ask for it, and nothing in its place", async () => {
    const { cluster, claim } = worldOf([blue]);
    const [first] = await claim({ seedText: "set/db-0" });
    const quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 0 } as const;
    const before = { workload: WORKLOAD, owner: "before", state: "Quarantined", quarantine, version: -7 } as const;
    cluster.put(first ?? "", before);
    await expect(claim({ workload: WORKLOAD, seedText: "set/db-0" })).rejects.toThrow("its ADD will");
    expect(cluster.objects.size).toBe(1);
  });

  it("an earlier pod of the member on this node gives way", async () => {
    const { cluster, deps, claim } = worldOf([blue]);
    const [first] = await claim({ seedText: "set/db-0" });
    const former = cluster.put(first ?? "", { workload: WORKLOAD, owner: "before", version: 40 });
    const displaced: string[] = [];
    Object.assign(deps.cluster, {
      evictPredecessor: async (row: Allocation) => {
        displaced.push(formatIp(row.ip));
        return cluster.put(formatIp(row.ip), { ...former, state: "Cooling", version: 41 });
      },
    });
    expect(await claim({ workload: WORKLOAD, seedText: "set/db-0" })).toEqual([first]);
    expect(displaced).toEqual([first]);
  });
});

const space = PoolSpace.open(readCoreWasm());

/** 8,192 addresses, of which others have all but those of 10.6.9.0/24. */
const blue = pool("blue", "10.6.0.0/19");
const TAKEN = Array.from({ length: 8_192 }, (_, at) => `10.6.${at >> 8}.${at & 255}`).filter(
  (address) => !address.startsWith("10.6.9."),
);
const FULL = Array.from({ length: 256 }, (_, host) => `10.6.9.${host}`);

/** Returns the usage object of a controller that knows these addresses. */
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

describe("exhaustion: the usage object of a large pool", () => {
  it("is read after two misses, and spares the list", async () => {
    const { cluster, claim } = world(usageOf(blue, TAKEN));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 0,
    });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + 1);
  });

  it("that is not there costs a question, and the list comes after more misses", async () => {
    const { cluster, claim } = world(undefined);
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 1,
    });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES_LARGE + 1);
  });

  it("pool-changes: that was made for other ranges is not believed", async () => {
    const other = usageOf(blue, TAKEN);
    const { cluster, poolCache, claim } = world({ ...other, rangesHash: "0000000000000000" });
    await claim(SEED);
    expect(poolCache.isEstimate("blue")).toBe(false);
    expect(cluster.usageReads).toBe(1);
  });

  it("that is old misleads the search for a while, and then the list is asked for", async () => {
    const { cluster, claim } = world(usageOf(blue, []));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 1,
    });
    expect(cluster.proposed).toHaveLength(LIVE_USAGE_MISSES + LIVE_USAGE_MISSES_LARGE + 1);
  });

  it("that says full refuses no pod: the list decides", async () => {
    const { cluster, claim } = world(usageOf(blue, [...TAKEN, ...FULL]));
    expect((await claim(SEED))[0]).toMatch(/^10\.6\.9\./);
    expect(cluster.usageReads).toBe(1);
  });

  it("that says full of a pool too large for a list refuses no pod either: the search continues by trying", async () => {
    const { cluster, poolCache, claim } = world(usageOf(blue, [...TAKEN, ...FULL]), blue, TAKEN.slice(0, 4_096));
    cluster.knowsUsage = false;
    for (const address of [...TAKEN, ...FULL]) poolCache.mark("", ip(address));
    const [address] = await claim(SEED);
    expect(cluster.objects.get(address ?? "")?.owner).toBe("uid");
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 1,
    });
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
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 0,
    });
  });

  it("of a pool that is full ends in a refusal only after the list", async () => {
    const { cluster, claim } = world(usageOf(blue, [...TAKEN, ...FULL]), blue, [...TAKEN, ...FULL]);
    await expect(claim(SEED)).rejects.toMatchObject({ code: ErrorCode.PoolExhausted });
    expect({ summaryReads: cluster.summaryReads, usageReads: cluster.usageReads }).toEqual({
      summaryReads: 1,
      usageReads: 1,
    });
  });

  it("of a small pool is not asked for: its list is as short", async () => {
    const small = pool("blue", "10.6.0.0/24");
    const taken = TAKEN.filter((address) => address.startsWith("10.6.0.")).slice(0, 250);
    const { cluster, claim } = world(usageOf(small, taken), small, taken);
    await claim(SEED);
    expect(cluster.summaryReads).toBe(0);
  });
});
