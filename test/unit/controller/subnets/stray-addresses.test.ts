/** Addresses in use that have left the pool that gave them, as the watches report it in any order. */
import { beforeEach, expect, test } from "vitest";
import type { CachedAllocation } from "../../../../host/controller/cached-allocation.ts";
import { type ControlledPool, decodeControlledPool } from "../../../../host/controller/objects.ts";
import { StrayAddresses } from "../../../../host/controller/subnets/stray-addresses.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { ip } from "../../../world/values.ts";

const pools = new Map<string, ControlledPool>();
const allocations = new Map<string, CachedAllocation>();
let strays: StrayAddresses;

const cacheOf = <T>(items: ReadonlyMap<string, T>) => ({ items, subscribe: () => () => {}, problems: [] });

beforeEach(() => {
  pools.clear();
  allocations.clear();
  setPool("a", ["10.9.0.1-10.9.0.3"]);
  setAllocation("10.9.0.2", "a");
  strays = open();
});

function open(): StrayAddresses {
  return new StrayAddresses({ pools: cacheOf(pools), allocations: cacheOf(allocations) });
}

const decode = (name: string, spec: object) =>
  decodeControlledPool({ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec });

function setPool(name: string, ips: readonly string[], isByHand = false): void {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: "u1" };
  const generated = { subnet: "blue", application, interface: "eth0", reclaim: true, wanted: 1, reason: "" };
  const spec = { subnet: "10.9.0.0/24", ips, ...(isByHand ? {} : { generated }) };
  const before = pools.get(name);
  const value = decode(name, spec);
  expect(value.fault).toBeUndefined();
  pools.set(name, value);
  strays?.poolChanged({ kind: "set", key: name, value, before });
}

function removePool(name: string): void {
  const before = pools.get(name) as ControlledPool;
  pools.delete(name);
  strays.poolChanged({ kind: "gone", key: name, before });
}

function setAllocation(name: string, pool: string): boolean | undefined {
  const spec = { addressSpace: "", ip: ip(name), pool } as CachedAllocation["spec"];
  const value: CachedAllocation = { name, deleting: false, spec };
  const before = allocations.get(name);
  allocations.set(name, value);
  return strays?.allocationChanged({ kind: "set", key: name, value, before });
}

function removeAllocation(name: string): boolean {
  const before = allocations.get(name) as CachedAllocation;
  allocations.delete(name);
  return strays.allocationChanged({ kind: "gone", key: name, before });
}

const found = () => strays.all.map(({ family, address }) => formatIp({ family, value: address }));

test("an address in its pool is none", () => {
  expect(found()).toEqual([]);
  expect(setAllocation("10.9.0.3", "a")).toBe(false);
  expect(removeAllocation("10.9.0.3")).toBe(false);
});

test.each([
  ["loses it", () => setPool("a", ["10.9.0.3"])],
  ["goes", () => removePool("a")],
])("one becomes a stray when its pool %s, and is none when the pool has it again", (_, act) => {
  act();
  expect(found()).toEqual(["10.9.0.2"]);
  setPool("a", ["10.9.0.2-10.9.0.3"]);
  expect(found()).toEqual([]);
});

test("one that was claimed out of a pool that no longer had it is a stray, until it is free or another pool gives it", () => {
  expect(setAllocation("10.9.0.9", "a")).toBe(true);
  expect(found()).toEqual(["10.9.0.9"]);
  setPool("b", ["10.9.0.9"]);
  expect(found()).toEqual(["10.9.0.9"]);
  expect(setAllocation("10.9.0.9", "b")).toBe(true);
  expect(found()).toEqual([]);
  expect(setAllocation("10.9.0.8", "a")).toBe(true);
  expect(removeAllocation("10.9.0.8")).toBe(true);
  expect(found()).toEqual([]);
});

test("those that were there before are found", () => {
  setAllocation("10.9.0.9", "a");
  setAllocation("10.9.0.7", "gone");
  strays = open();
  expect(found()).toEqual(["10.9.0.9", "10.9.0.7"]);
});

test("an address that a pool made by hand no longer has is none: it was edited", () => {
  setPool("hand", ["10.9.0.20"], true);
  setAllocation("10.9.0.21", "hand");
  setPool("hand", [], true);
  expect(found()).toEqual([]);
});

test("an address in any of its pool's ranges is none", () => {
  setPool("a", ["10.9.0.1", "10.9.0.5-10.9.0.7", "10.9.0.20"]);
  for (const address of ["10.9.0.1", "10.9.0.6", "10.9.0.20"]) expect(setAllocation(address, "a")).toBe(false);
  expect(setAllocation("10.9.0.8", "a")).toBe(true);
});

test("a stray stays one while its pool cannot be read", () => {
  setPool("a", ["10.9.0.3"]);
  const before = pools.get("a");
  const value = decode("a", { subnet: "10.9.0.0/99" });
  expect(value.fault).toBeDefined();
  pools.set("a", value);
  strays.poolChanged({ kind: "set", key: "a", value, before });
  expect(found()).toEqual(["10.9.0.2"]);
  setPool("a", ["10.9.0.2-10.9.0.3"]);
  expect(found()).toEqual([]);
});
