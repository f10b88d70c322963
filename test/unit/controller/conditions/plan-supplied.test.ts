import { describe, expect, it } from "vitest";
import type { Decision } from "../../../../host/controller/conditions/plan-conditions.ts";
import { planSupplied, type SuppliedView } from "../../../../host/controller/conditions/plan-supplied.ts";
import type { ControlledSubnet } from "../../../../host/controller/objects.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../../host/resources/status.ts";
import { DELETED, generatedPool, pool, reserved, subnet } from "./judged.ts";

const SETTINGS = { maxGeneratedPoolSize: 1_024, maxGeneratedAddressesPerNamespace: 0 };

/** A Subnet with the lowest so many addresses of 10.6.0.0/24, whose status says what pools have. */
function blue(total: number, pools: object[] = []) {
  return subnet("blue", { subnet: "10.6.0.0/24", ips: [`10.6.0.1-10.6.0.${total}`] }, { status: { pools } });
}

/** The pools are new objects: what was found of one is kept with it. */
function plan({ pools = [], ...view }: Partial<SuppliedView>) {
  return planSupplied({ pools: structuredClone(pools), subnets: [], reserved: [], settings: SETTINGS, ...view });
}

const THREE = generatedPool("web", { ips: ["10.6.0.1-10.6.0.3"], wanted: 5 });
const OWN = { name: "web", ips: ["10.6.0.1-10.6.0.3"] };
const DB = { name: "db", ips: ["10.6.0.4-10.6.0.20"] };
const FULL = blue(20, [OWN, DB]);
const MANY = Array.from({ length: MAX_POOLS_OF_SUBNET }, (_, index) => ({ name: `p${index}` }));

function check(name: string, view: Partial<SuppliedView>, wanted: Omit<Decision, "type"> | undefined): void {
  it(name, () => {
    const found = plan(view).pools.get("web");
    expect(found).toEqual(wanted === undefined ? undefined : { type: "Supplied", ...wanted });
  });
}

const no = (reason: string, why: string, has = 3) => ({
  ...{ isTrue: false, reason },
  message: `has ${has} of 5 addresses wanted (4 replicas and 1 more): ${why}`,
});
const yes = (message: string) => ({ isTrue: true, reason: "Supplied", message });

describe("Supplied holds", () => {
  const five = generatedPool("web", { ips: ["10.6.0.1-10.6.0.4", "10.6.0.9"], wanted: 5 });
  const wanted = yes("has the 5 addresses wanted (4 replicas and 1 more)");
  check("when the pool has what is wanted", { pools: [five], subnets: [FULL] }, wanted);
  check("whatever has become of the Subnet", { pools: [five] }, wanted);
  const six = generatedPool("web", { ips: ["10.6.0.1-10.6.0.6"], wanted: 5 });
  check("with more than that, too", { pools: [six] }, yes("has 6 addresses, 5 wanted (4 replicas and 1 more)"));
  const none = generatedPool("web", { ips: [], wanted: 0 });
  check("when nothing is wanted", { pools: [none] }, yes("has the 0 addresses wanted (-1 replicas and 1 more)"));
});

describe("Supplied does not hold", () => {
  check("because the Subnet is full", { pools: [THREE], subnets: [FULL] },
    no("SubnetFull", 'Subnet "blue" has 0 free of 20, 20 assigned to 2 pools')); // biome-ignore format: a row
  check("because the API server refuses the write, whatever else is the matter", { pools: [THREE], subnets: [FULL], refusalOf: () => "no label" },
    no("Refused", "the API server refuses to write it: no label")); // biome-ignore format: a row
  const empty = generatedPool("web", { ips: [], wanted: 5 });
  check("nor for a pool that has got nothing yet", { pools: [empty], subnets: [blue(20, [{ ...DB, ips: ["10.6.0.1-10.6.0.20"] }])] },
    no("SubnetFull", 'Subnet "blue" has 0 free of 20, 20 assigned to 1 pool', 0)); // biome-ignore format: a row
  const byHand = pool("hand", { subnet: "10.6.0.0/24", ips: ["10.6.0.4-10.6.0.9"] });
  const nine = reserved("nine", { ips: ["10.6.0.9-10.6.0.12"] });
  check("because what is left of it is others'", { pools: [THREE, byHand], reserved: [nine], subnets: [blue(12, [OWN])] },
    no("SubnetFull", 'Subnet "blue" has 0 free of 12, 3 assigned to 1 pool, 9 reserved or in pools made by hand')); // biome-ignore format: a row
  check("unless those are of another address space", { pools: [THREE, pool("hand", { ...{ subnet: "10.6.0.0/24", ips: ["10.6.0.4-10.6.0.9"] }, addressSpace: "lab" })],
    subnets: [blue(9, [OWN])],
  }, undefined); // biome-ignore format: a row
  const overlapping = subnet("overlapping", { subnet: "10.6.0.0/24" }, { status: { pools: [DB] } });
  check("because another Subnet of the network has given it away", { pools: [THREE], subnets: [blue(20, [OWN]), overlapping] },
    no("SubnetFull", 'Subnet "blue" has 0 free of 20, 3 assigned to 1 pool')); // biome-ignore format: a row
  check("when an edited Subnet offers less than the pool has: that is not what was wanted", { pools: [generatedPool("web", { ips: ["10.6.0.1-10.6.0.5"], wanted: 5 })], subnets: [blue(3, [{ ...OWN, ips: ["10.6.0.1-10.6.0.3"] }])] },
    no("SubnetFull", 'Subnet "blue" has 0 free of 3, 3 assigned to 1 pool')); // biome-ignore format: a row
  check("because the Subnet has so many pools", { pools: [empty], subnets: [blue(20, MANY)] },
    no("SubnetFull", `Subnet "blue" has ${MAX_POOLS_OF_SUBNET} pools, as many as it can have`, 0)); // biome-ignore format: a row
  check("because there is no Subnet", { pools: [THREE] }, no("SubnetGone", 'there is no Subnet "blue"'));
  check("because it is being deleted", { pools: [THREE], subnets: [subnet("blue", { subnet: "10.6.0.0/24" }, DELETED)] },
    no("SubnetTerminating", 'Subnet "blue" is being deleted')); // biome-ignore format: a row
  const bad = subnet("blue", { subnet: "10.6.0.0/24", ips: ["10.6.0.9-10.6.0.1"] });
  it("because it cannot be used: in its words", () => {
    const found = plan({ pools: [THREE], subnets: [bad] }).pools.get("web");
    expect(found).toMatchObject({ isTrue: false, reason: "SubnetInvalid" });
    expect(found?.message).toContain('Subnet "blue" cannot be used: field "spec.ips[0]": found "10.6.0.9-10.6.0.1"');
  });
  it("because the assignments are unreadable", () => {
    const unread = subnet("blue", { subnet: "10.6.0.0/24" }, { status: { pools: [{ name: 7 }] } });
    const found = plan({ pools: [THREE], subnets: [unread] }).pools.get("web");
    expect(found).toMatchObject({ isTrue: false, reason: "SubnetInvalid" });
    expect(found?.message).toContain("pools[0].name");
  });
  const settings = { maxGeneratedPoolSize: 3, maxGeneratedAddressesPerNamespace: 0 };
  check("because the pool may not be larger", { pools: [THREE], subnets: [blue(20, [OWN])], settings },
    no("PoolTooLarge", "maxGeneratedPoolSize of vendor-conf is 3")); // biome-ignore format: a row
  const other = generatedPool("db", { ips: ["10.6.0.4-10.6.0.5"], wanted: 2 });
  const elsewhere = generatedPool("far", { ips: ["10.6.0.6-10.6.0.9"], wanted: 4, namespace: "lab" });
  const perNamespace = (limit: number) => ({
    ...{ pools: [THREE, other, elsewhere], subnets: [blue(20, [OWN])] },
    settings: { ...SETTINGS, maxGeneratedAddressesPerNamespace: limit },
  });
  check("because the namespace may have no more", perNamespace(5),
    no("NamespaceLimit", 'generated pools of namespace "shop" have 5 addresses, maxGeneratedAddressesPerNamespace of vendor-conf is 5')); // biome-ignore format: a row
  check("but others' namespaces do not count", perNamespace(6), undefined);
});

describe("nothing is said about a pool", () => {
  check("that is about to get what the Subnet has", { pools: [THREE], subnets: [blue(20, [OWN])] }, undefined);
  const assigned = [{ name: "web", ips: ["10.6.0.1-10.6.0.5"] }];
  check("to which its addresses are assigned already", { pools: [THREE], subnets: [blue(5, assigned)] }, undefined);
  check("while the Subnet's numbers are not known", { pools: [THREE], subnets: [subnet("blue", { subnet: "10.6.0.0/24" })] }, undefined); // biome-ignore format: a row
  check("made by hand", { pools: [pool("web", { subnet: "10.6.0.0/24", ips: [] })], subnets: [FULL] }, undefined); // biome-ignore format: a row
  const dying = generatedPool("web", { ips: [], wanted: 5 }, DELETED);
  const others = blue(20, [{ ...DB, ips: ["10.6.0.1-10.6.0.20"] }]);
  check("that is being deleted", { pools: [dying], subnets: [others] }, undefined);
  check("that is one of the most that the Subnet can have", { pools: [THREE], subnets: [blue(20, [OWN, ...MANY.slice(1)])] }, undefined); // biome-ignore format: a row
});

describe("Full of a Subnet", () => {
  const fullOf = (view: Partial<SuppliedView>) => plan(view).subnets.get("blue");
  it("does not hold while no pool waits, however full it is", () => {
    const supplied = generatedPool("web", { ips: ["10.6.0.1-10.6.0.5"], wanted: 5 });
    const found = { type: "Full", isTrue: false, reason: "NobodyWaits", message: "" };
    expect(fullOf({ pools: [supplied], subnets: [FULL] })).toEqual(found);
    expect(fullOf({ pools: [THREE], subnets: [blue(20, [OWN])] })).toEqual(found);
  });
  it("is not for what a limit keeps back", () => {
    const settings = { ...SETTINGS, maxGeneratedPoolSize: 3 };
    expect(fullOf({ pools: [THREE], subnets: [FULL], settings })?.isTrue).toBe(false);
  });
  it("names who waits, a few of many, and for how much", () => {
    const pools = ["d", "c", "b", "a"].map((name) => generatedPool(name, { ips: ["10.6.0.1"], wanted: 4 }));
    const numbers = "has 0 free of 20, 20 assigned to 2 pools";
    expect(fullOf({ pools, subnets: [FULL] })).toEqual({
      ...{ type: "Full", isTrue: true, reason: "PoolsWait" },
      message: `${numbers}; 4 pools wait for 12 more: "a" (Deployment shop/a, 1 of 4), "b" (Deployment shop/b, 1 of 4), "c" (Deployment shop/c, 1 of 4) and 1 more`,
    });
    expect(fullOf({ pools: pools.slice(0, 1), subnets: [FULL] })?.message).toBe(
      `${numbers}; 1 pool waits for 3 more: "d" (Deployment shop/d, 1 of 4)`,
    );
  });
});

it("1,000 pools that wait for one Subnet are checked by one read of its status", () => {
  let reads = 0;
  const pools = Array.from({ length: 1_000 }, (_, index) => generatedPool(`p${index}`, { ips: [], wanted: 5 }));
  const { status, ...rest } = blue(9, [{ name: "db", ips: ["10.6.0.1-10.6.0.9"] }]);
  const counted: ControlledSubnet = {
    ...rest,
    get status() {
      reads++;
      return status;
    },
  };
  const found = plan({ pools, subnets: [counted] });
  expect([...found.pools.values()].filter(({ isTrue }) => !isTrue)).toHaveLength(1_000);
  expect(reads).toBe(1);
});
