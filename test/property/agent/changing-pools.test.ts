/** Pools that come, change and go one by one, against the same pools composed from nothing after each change. */

import { expect, it } from "vitest";
import { PoolInventory } from "../../../host/agent/ipam/pool-inventory.ts";
import { readCoreWasm } from "../../../host/core/instance.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import type { Ip } from "../../../host/net/ip.ts";
import { rangeContains } from "../../../host/net/range.ts";
import type { Cooldowns, Registry } from "../../../host/registry/registry.ts";
import { checkPools } from "../../../host/resources/check-pools.ts";
import { CheckedPools } from "../../../host/resources/checked-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { OccupiedIps } from "../../../host/resources/occupied-ips.ts";
import { tableOfPools } from "../../../host/resources/pools-by-name.ts";
import { decodeReservedIp, type ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { assembleSnapshot, type Snapshot } from "../../../host/resources/snapshot.ts";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 20_261_122);

const apiVersion = "ipam.vendor.io/v1";

/** Equal, nested and disjoint networks of both families. */
const SUBNETS = [
  ...["10.0.0.0/26", "10.0.0.0/27", "10.0.0.32/27", "10.0.0.32/28", "10.0.0.48/28", "10.0.0.64/27"],
  ...["fd00::/123", "fd00::/124", "fd00::10/124"],
];

function rangeIn(chance: Seeded, subnet: string): string {
  const [, base = "", start = "", length = ""] = /^(.*[.:])([0-9a-f]*)\/([0-9]+)$/.exec(subnet) ?? [];
  const isV6 = base.includes(":");
  const size = 2 ** ((isV6 ? 128 : 32) - Number(length));
  const text = (at: number): string => {
    const value = Number.parseInt(start === "" ? "0" : start, isV6 ? 16 : 10) + at;
    return `${base}${value.toString(isV6 ? 16 : 10)}`;
  };
  const first = chance.below(size);
  return `${text(first)}-${text(Math.min(size - 1, first + chance.below(size)))}`;
}

const addressIn = (chance: Seeded, subnet: string): string => rangeIn(chance, subnet).split("-")[0] ?? "";

const OWNERS = ["u1", "u2", "u3"];

function generatedFor(uid: string): object {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: `web-${uid}`, uid };
  return { subnet: "lan", application, interface: "eth0", reclaim: true, wanted: 3, reason: "2 replicas and 1 more" };
}

function poolOf(chance: Seeded, name: string): IpPool {
  const subnet = chance.pick(SUBNETS);
  const spec = {
    subnet,
    ...(chance.chance(0.3) ? {} : { ips: chance.chance(0.1) ? [] : [rangeIn(chance, subnet)] }),
    ...(chance.chance(0.4) ? { gateway: addressIn(chance, subnet) } : {}),
    routes: chance.chance(0.3)
      ? [{ dst: subnet.includes(":") ? "2001:db8::/48" : "172.20.0.0/16", gw: addressIn(chance, subnet) }]
      : [],
    excludeIPs: chance.chance(0.3) ? [rangeIn(chance, subnet)] : [],
    addressSpace: chance.chance(0.2) ? "lab" : "",
    default: chance.chance(0.3),
    ...(chance.chance(0.4) ? { generated: generatedFor(chance.pick(OWNERS)) } : {}),
    ...(chance.chance(0.2) ? { cooldown: `${1 + chance.below(3)}s` } : {}),
  };
  const creationTimestamp = `2026-01-01T00:00:0${chance.below(4)}Z`;
  return decodeIpPool({ apiVersion, kind: "IPPool", metadata: { name, creationTimestamp }, spec }, "test");
}

function reservationOf(chance: Seeded): ReservedIp {
  const range = rangeIn(chance, chance.pick(SUBNETS.slice(0, 6)));
  const [first = range] = range.split("-");
  const owned = { ips: [first], owner: { namespace: "shop", name: "db-0" } };
  const spec = chance.chance(0.5) ? owned : { ips: [range] };
  return decodeReservedIp({ apiVersion, kind: "ReservedIP", metadata: { name: "kept" }, spec }, "test");
}

const ADDRESSES: readonly Ip[] = [
  ...Array.from({ length: 96 }, (_, at): Ip => ({ family: 4, value: (10n << 24n) + BigInt(at) })),
  ...Array.from({ length: 32 }, (_, at): Ip => ({ family: 6, value: (0xfd00n << 112n) + BigInt(at) })),
];

/** In their order. */
const namesOf = (pools: Iterable<IpPool>): string[] => [...pools].map(({ name }) => name).sort();

/** The registry's answers to an agent about its pools. */
class UsedAddresses {
  readonly used = new Set<Ip>();
  cooldowns: Cooldowns | undefined;

  readonly registry = {
    setCooldowns: (cooldowns: Cooldowns) => {
      this.cooldowns = cooldowns;
    },
    readUsed: async ({ family, space }: { family: number; space: string }) =>
      packed(space === "" ? [...this.used].filter((ip) => ip.family === family) : []),
  } as unknown as Registry;
}

function packed(ips: readonly Ip[]): Uint8Array {
  return Uint8Array.from(
    ips.flatMap(({ family, value }) =>
      Array.from({ length: family === 4 ? 4 : 16 }, (_, at) =>
        Number((value >> BigInt(8 * ((family === 4 ? 3 : 15) - at))) & 255n),
      ),
    ),
  );
}

/** All that the inventory of a snapshot's pools says. */
function describeInventory({ poolCache, problems }: PoolInventory, { pools }: Pick<Snapshot, "pools">) {
  return {
    problems,
    pools: [...pools.values()].map((pool) => ({
      name: pool.name,
      counts: countsOf(poolCache, pool),
      offered: ADDRESSES.filter((ip) => poolCache.contains(pool.name, ip)),
      held: ADDRESSES.filter((ip) => poolCache.contains(pool.name, ip, true)),
      explained: ADDRESSES.filter((ip) => poolCache.findExclusion(pool.name, ip) === undefined),
      neighbours: poolCache
        .neighboursOf(pool)
        .map(({ name }) => name)
        .sort(),
    })),
  };
}

/** The digest of no addresses depends on the family that the pool had first. */
function countsOf(poolCache: PoolCache, { name }: IpPool) {
  const { digest, ...counts } = poolCache.counts(name) ?? expect.fail(name);
  return { ...counts, digest: counts.total === 0n ? undefined : digest };
}

it(`pools taken one by one are the same as all of them, seed ${SEED}`, async () => {
  const chance = new Seeded(SEED);
  let refusals = 0;
  for (let walk = 0; walk < times(3); walk++) {
    const known = new Map<string, IpPool>();
    const checked = new CheckedPools();
    const empty = assembleSnapshot([]);
    const lasting = new UsedAddresses();
    const inventory = new PoolInventory(new PoolCache(PoolSpace.open(readCoreWasm())), lasting.registry, empty);
    let reserved: readonly ReservedIp[] = [];
    let occupied = new OccupiedIps([]);
    inventory.followOccupied(() => occupied);
    for (let step = 0; step < 60; step++) {
      const changes = new Map<string, IpPool | undefined>();
      for (let count = chance.below(4); count >= 0; count--) {
        const name = `p${chance.below(9)}`;
        changes.set(name, chance.chance(0.3) ? undefined : poolOf(chance, name));
      }
      for (const [name, pool] of changes)
        if (pool === undefined) known.delete(name);
        else known.set(name, pool);
      if (chance.chance(0.15)) reserved = chance.chance(0.5) ? [] : [reservationOf(chance)];

      if (chance.chance(0.3)) {
        const ips = Array.from({ length: chance.below(6) }, () => chance.pick(ADDRESSES));
        occupied = new OccupiedIps(ips.map((ip) => ({ ip, why: "the node has it" })));
      }

      const changed = checked.apply(changes);
      const fresh = checkPools([...known.values()].sort((a, b) => (a.name < b.name ? -1 : 1)));
      refusals += fresh.refused.size;
      expect([...checked.accepted]).toEqual(fresh.accepted.map((pool) => [pool.name, pool]));
      for (const uid of OWNERS) {
        const own = fresh.accepted.filter(({ spec }) => spec.generated?.application.uid === uid);
        expect(namesOf(checked.accepted.ofOwner({ namespace: "shop", uid }))).toEqual(namesOf(own));
      }
      const defaults = fresh.accepted.filter(({ spec }) => spec.default);
      expect(namesOf(checked.accepted.defaults)).toEqual(namesOf(defaults));
      expect(new Map(checked.refused)).toEqual(fresh.refused);

      const snapshot = { ...empty, pools: checked.accepted, reserved };
      inventory.follow(snapshot, changed);
      await inventory.loaded();
      for (let count = chance.below(6); count > 0; count--) {
        const ip = chance.pick(ADDRESSES);
        if (chance.chance(0.6)) {
          lasting.used.add(ip);
          inventory.poolCache.mark("", ip);
        } else if (lasting.used.delete(ip)) inventory.poolCache.unmark("", ip);
      }
      const other = new UsedAddresses();
      for (const ip of lasting.used) other.used.add(ip);
      const anew = new PoolInventory(new PoolCache(PoolSpace.open(readCoreWasm())), other.registry, empty);
      anew.followOccupied(() => occupied);
      anew.follow({ ...snapshot, pools: tableOfPools(fresh.accepted) });
      await anew.loaded();
      const described = describeInventory(inventory, snapshot);
      expect(described).toEqual(describeInventory(anew, snapshot));
      for (const { name, explained, offered, held } of described.pools) {
        expect(explained).toEqual(offered);
        const { ranges = [] } = known.get(name)?.spec ?? {};
        // Other exclusions exclude it from its owner, too.
        const isKept = (ip: Ip) =>
          inventory.poolCache.findExclusion(name, ip) === 'ReservedIP "kept" has it for shop/db-0' &&
          ranges.some((range) => rangeContains(range, ip));
        expect(held).toEqual(ADDRESSES.filter((ip) => offered.includes(ip) || (isKept(ip) && held.includes(ip))));
      }
      expect(new Map([...(lasting.cooldowns?.byPool ?? [])].sort())).toEqual(
        new Map([...(other.cooldowns?.byPool ?? [])].sort()),
      );
    }
  }
  expect(refusals).toBeGreaterThan(times(75));
});
