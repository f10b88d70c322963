/** The usage of pools kept along with thousands of changes, against a recount of everything after each few. */
import { expect, it } from "vitest";
import { UsageCounter } from "../../../host/controller/usage/usage-counter.ts";
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import type { Range } from "../../../host/net/range.ts";
import { allocationName, type IpAllocation } from "../../../host/resources/ip-allocation.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import { formatRangesHash, type PoolUsage } from "../../../host/resources/ip-pool-usage.ts";
import { decodeReservedIp, type ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { costRatio } from "../../world/cpu-time.ts";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";
import { openCore } from "../../world/subjects.ts";

const SEED = Number(process.env.SEED ?? 20_261_120);
const STATES = ["Bound", "Cooling", "Kept", "Quarantined"] as const;

const space = openCore();

const apiVersion = "ipam.vendor.io/v1";

function ranges(chance: Seeded, base: string, size: number): string[] {
  return Array.from({ length: 1 + chance.below(4) }, (_, index) => {
    const from = index * (size / 4) + chance.below(size / 8);
    const to = from + chance.below(size / 8);
    const text = (at: number): string => (size > 256 ? `${base}${at >> 8}.${at & 255}` : `${base}${at.toString(16)}`);
    return `${text(from)}-${text(to)}`;
  });
}

function pool(chance: Seeded, name: string): IpPool {
  const isV6 = chance.chance(0.2);
  const [subnet, base, size] = isV6 ? ["fd00::/120", "fd00::", 256] : ["10.6.0.0/20", "10.6.", 4_096];
  const ips = chance.chance(0.2) ? undefined : ranges(chance, base, size);
  const gateway = !isV6 && chance.chance(0.5) ? `10.6.0.${chance.below(256)}` : undefined;
  const excludeIPs = chance.chance(0.5) ? ranges(chance, base, size) : [];
  const addressSpace = chance.chance(0.2) ? "lab" : "";
  const spec = { subnet, ips, gateway, excludeIPs, addressSpace };
  return decodeIpPool({ apiVersion, kind: "IPPool", metadata: { name }, spec }, "test");
}

function reservation(chance: Seeded): ReservedIp {
  const spec = { ips: ranges(chance, "10.6.", 4_096) };
  return decodeReservedIp({ apiVersion, kind: "ReservedIP", metadata: { name: "kept" }, spec }, "test");
}

function allocation(chance: Seeded): IpAllocation {
  const isV6 = chance.chance(0.2);
  const ip: Ip = isV6
    ? { family: 6, value: (0xfd00n << 112n) + BigInt(chance.below(256)) }
    : { family: 4, value: (10n << 24n) + (6n << 16n) + BigInt(chance.below(4_200)) };
  const addressSpace = chance.chance(0.2) ? "lab" : "";
  const state = STATES[chance.below(4)] ?? "Bound";
  const spec = { ip, addressSpace, prefixLength: 20, pool: `p${chance.below(8)}`, state, node: "n1", holders: [] };
  const name = allocationName(ip, addressSpace);
  return { kind: "IPAllocation", name, uid: "u", resourceVersion: "1", deleting: false, spec };
}

/** The addresses of ranges, in their order. */
function* addressesOf(ranges: readonly Range[]): Generator<Ip> {
  for (const { first, last } of ranges)
    for (let value = first.value; value <= last.value; value++) yield { family: first.family, value };
}

function hashOf(ranges: readonly Range[]): string {
  using fresh = space.createPool({ ranges, masked: [] });
  return formatRangesHash(fresh.counts().digest);
}

/** Slow, and from nothing but the definition. */
function recount(
  one: IpPool,
  { pools, reserved }: { readonly pools: Iterable<IpPool>; readonly reserved: readonly ReservedIp[] },
  allocations: readonly IpAllocation[],
): PoolUsage {
  const { ranges, masked } = poolShape(one, reserved);
  const all = [...addressesOf(ranges)].map(formatIp);
  const isSibling = ({ spec }: IpPool): boolean =>
    spec.addressSpace === one.spec.addressSpace && spec.family === one.spec.family;
  const routers = [...pools].filter(isSibling).flatMap(({ spec: { gateway } }) => gateway ?? []);
  const hidden = new Set([...addressesOf(masked), ...routers].map(formatIp));
  const own = allocations.filter(({ spec }) => spec.pool === one.name);
  const here = allocations.filter(({ spec }) => spec.addressSpace === one.spec.addressSpace);
  const ordinals = new Map(all.map((text, ordinal) => [text, ordinal]));
  const inside = here.filter(({ spec: { ip } }) => ordinals.has(formatIp(ip)));
  const used = new Set(inside.map(({ spec }) => formatIp(spec.ip)));
  const bitmap = new Uint8Array(Math.ceil(all.length / 8));
  for (const text of used) {
    const ordinal = ordinals.get(text) ?? 0;
    bitmap[ordinal >> 3] = (bitmap[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
  }
  const offered = all.filter((text) => !hidden.has(text));
  const count = (state: string): number => own.filter(({ spec }) => spec.state === state).length;
  return {
    ...{ rangesHash: hashOf(ranges), total: offered.length, free: offered.filter((text) => !used.has(text)).length },
    ...{ bound: count("Bound"), cooling: count("Cooling"), kept: count("Kept"), quarantined: count("Quarantined") },
    outside: own.filter((each) => !inside.includes(each)).length,
    others: inside.filter(({ spec }) => spec.pool !== one.name).length,
    ...{ bitmap, freePerBlock: undefined },
  };
}

it(`running counts are those of a recount, seed ${SEED}`, () => {
  const chance = new Seeded(SEED);
  for (let walk = 0; walk < times(2); walk++) {
    const poolCache = new UsageCounter();
    const pools = new Map<string, IpPool>();
    let reserved: ReservedIp[] = [];
    const allocations = new Map<string, IpAllocation>();
    for (let step = 0; step < 60; step++) {
      if (step === 0 || chance.chance(0.2)) {
        const name = `p${chance.below(6)}`;
        if (chance.chance(0.2)) pools.delete(name);
        else pools.set(name, pool(chance, name));
        if (chance.chance(0.3)) reserved = chance.chance(0.5) ? [] : [reservation(chance)];
        poolCache.follow([...pools.values()], reserved, allocations.values());
      }
      for (let change = chance.below(60); change > 0; change--) {
        const value = allocation(chance);
        const { name: key } = value;
        const before = allocations.get(key);
        if (before !== undefined && chance.chance(0.5)) {
          allocations.delete(key);
          poolCache.apply({ kind: "gone", key, before });
        } else {
          allocations.set(key, value);
          poolCache.apply({ kind: "set", key, value, before });
        }
      }
      for (const one of pools.values()) {
        const usage = poolCache.usageOf(one.name);
        expect(usage).toEqual(recount(one, { pools: pools.values(), reserved }, [...allocations.values()]));
        expect(poolCache.countsOf(one.name)?.used).toBe((usage?.total ?? 0) - (usage?.free ?? 0));
      }
    }
  }
});

it("one more reservation costs little more than none, however many pools and reservations there are", () => {
  const nets = Array.from({ length: 1_000 }, (_, at) => `10.${at >> 8}.${at & 255}`);
  const named = (net: string, kind: string, spec: object) => ({ apiVersion, kind, metadata: { name: net }, spec });
  const pools = nets.map((net) => decodeIpPool(named(net, "IPPool", { subnet: `${net}.0/24` }), "test"));
  const keep = (net: string, last = 7) =>
    decodeReservedIp(named(net, "ReservedIP", { ips: [`${net}.${last}`] }), "test");
  const reserved = nets.map((net) => keep(net));
  const counter = new UsageCounter();
  const follow = (more: readonly ReservedIp[]) => counter.follow(pools, [...reserved, ...more], []);
  const few = () => follow([]);
  few();
  expect(costRatio(few, () => follow([keep("10.0.9", 8)]))).toBeLessThan(4);
  expect(["10.0.8", "10.0.9"].map((net) => counter.usageOf(net)?.total)).toEqual([253, 252]);
});

it("a pool that is too large for a bitmap has the number of free addresses in each block of 4,096", () => {
  const chance = new Seeded(SEED);
  const spec = { subnet: "10.0.0.0/10", ips: ["10.0.0.0-10.9.0.77"], excludeIPs: ["10.2.0.100-10.3.1.5"] };
  const large = decodeIpPool({ apiVersion, kind: "IPPool", metadata: { name: "p0" }, spec }, "test");
  const poolCache = new UsageCounter();
  poolCache.follow([large], [], []);
  const { ranges, masked } = poolShape(large, []);
  const isIn = (set: readonly Range[], { value }: Ip) =>
    set.some(({ first, last }) => first.value <= value && value <= last.value);
  const base = ranges[0]?.first.value ?? 0n;
  const [last = base] = [ranges[0]?.last.value];
  const free = Array.from({ length: Math.ceil((Number(last - base) + 1) / 4_096) }, () => 0);
  const blockOf = ({ value }: Ip) => Math.floor(Number(value - base) / 4_096);
  for (const ip of addressesOf(ranges)) if (!isIn(masked, ip)) free[blockOf(ip)] = (free[blockOf(ip)] ?? 0) + 1;
  const used = new Set<bigint>();
  for (let count = 0; count < 5_000; count++) {
    const ip: Ip = { family: 4, value: (10n << 24n) + BigInt(chance.below(2 ** 22)) };
    const value = { ...allocation(chance), spec: { ...allocation(chance).spec, ip, addressSpace: "" } };
    if (used.has(ip.value)) continue;
    used.add(ip.value);
    if (isIn(ranges, ip) && !isIn(masked, ip)) free[blockOf(ip)] = (free[blockOf(ip)] ?? 0) - 1;
    poolCache.apply({ kind: "set", key: `${count}`, value, before: undefined });
  }
  const usage = poolCache.usageOf("p0");
  expect(usage?.bitmap).toBeUndefined();
  expect(usage?.freePerBlock).toEqual(free);
  expect(usage?.free).toBe(free.reduce((sum, each) => sum + each, 0));
});
