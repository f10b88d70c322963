/** The obstacles are the division's (test/unit/controller/subnets/shortfalls.txt). */
import { describe, expect, it } from "vitest";
import type { Decision } from "../../../../host/controller/conditions/plan-conditions.ts";
import { planSupplied, type SuppliedView } from "../../../../host/controller/conditions/plan-supplied.ts";
import type { Shortfall } from "../../../../host/controller/division.ts";
import { DELETED, generatedPool, pool, shortfall, subnet } from "./judged.ts";

const BLUE = subnet("blue", { subnet: "10.6.0.0/24" });
const THREE = generatedPool("web", { ips: ["10.6.0.1-10.6.0.3"], wanted: 5 });
const WANTED = "5 addresses wanted (4 replicas and 1 more)";

const plan = (view: Partial<SuppliedView>) => planSupplied({ pools: [], subnets: [BLUE], shortfalls: [], ...view });

function check(name: string, view: Partial<SuppliedView>, wanted: Omit<Decision, "type"> | undefined): void {
  it(name, () => {
    const found = plan(view).pools.get("web");
    expect(found).toEqual(wanted === undefined ? undefined : { type: "Supplied", ...wanted });
  });
}

const no = (reason: string, message: string) => ({ isTrue: false, reason, message });
const yes = (message: string) => ({ isTrue: true, reason: "Supplied", message });

describe("Supplied", () => {
  const made = (ips: string[], wanted = 5) => generatedPool("web", { ips, wanted });
  check("holds when the pool has what is wanted", { pools: [made(["10.6.0.1-10.6.0.4", "10.6.0.9"])] }, yes(`has 5 of ${WANTED}`)); // biome-ignore format: a row
  check("holds with more than that, too", { pools: [made(["10.6.0.1-10.6.0.6"])] }, yes(`has 6 of ${WANTED}`));
  check("holds when nothing is wanted", { pools: [made([], 0)] }, yes("has 0 of 0 addresses wanted (-1 replicas and 1 more)")); // biome-ignore format: a row
  const full = [shortfall("web")];
  check("repeats the division", { pools: [THREE], shortfalls: full }, no("SubnetFull", "has 1 of 4: no room"));
  check("does so also if the Subnet no longer offers some of its addresses", { pools: [made(["10.6.0.1-10.6.0.6"])], shortfalls: full }, no("SubnetFull", "has 1 of 4: no room")); // biome-ignore format: a row
  check("tells first that the API server refuses the write", { pools: [THREE], shortfalls: full, refusalOf: (...of) => of.join() }, no("Refused", `has 3 of ${WANTED}: the API server refuses to write it or its Subnet: web,blue`)); // biome-ignore format: a row
  check("says nothing while the pool has yet to get its addresses from the division", { pools: [made([])], shortfalls: full }, undefined); // biome-ignore format: a row
  check("says nothing while addresses come back", { pools: [THREE], shortfalls: full.map((each) => ({ ...each, isPassing: true })) }, undefined); // biome-ignore format: a row
  const former = shortfall("web", "SubnetRefused", 2);
  check("repeats the division about the current version of the workload", { pools: [THREE], shortfalls: [...full, former] }, no("SubnetFull", "has 1 of 4: no room")); // biome-ignore format: a row
  check("says nothing while nothing is in the way", { pools: [THREE], shortfalls: [shortfall("db")] }, undefined);
  check("holds, whatever is lacking, while generated pools are switched off", { pools: [THREE], isOff: true }, yes(`has 3 of ${WANTED}, and gets no others while enableSubnet is false`)); // biome-ignore format: a row
  check("says nothing before the first division", { pools: [made(["10.6.0.1-10.6.0.6"])], shortfalls: undefined }, undefined); // biome-ignore format: a row
  check("says nothing of a pool made by hand", { pools: [pool("web", { subnet: "10.6.0.0/24", ips: [] })] }, undefined);
  check("says nothing of a pool that is being deleted", { pools: [generatedPool("web", { ips: [], wanted: 5 }, DELETED)], shortfalls: full }, undefined); // biome-ignore format: a row
});

describe("Full of a Subnet", () => {
  const poolOf = ({ pool }: Shortfall) => generatedPool(pool?.name ?? "", { ips: ["10.6.0.1"], wanted: 4 });
  const fullOf = (...shortfalls: Shortfall[]) =>
    plan({ pools: shortfalls.map(poolOf), shortfalls }).subnets.get("blue");
  it("does not hold while no pool waits for its addresses", () => {
    const found = { type: "Full", isTrue: false, reason: "NobodyWaits", message: "" };
    expect(fullOf()).toEqual(found);
    expect(fullOf(shortfall("web", "PoolTooLarge"))).toEqual(found);
    expect(plan({ shortfalls: undefined }).subnets.size).toBe(0);
  });
  it("is left as it is while addresses come back, or are on their way to the pool", () => {
    const web = shortfall("web");
    expect(fullOf({ ...web, isPassing: true })).toBeUndefined();
    expect(plan({ shortfalls: [web] }).subnets.get("blue")).toBeUndefined();
    expect(fullOf({ ...web, isPassing: true }, shortfall("db"))?.isTrue).toBe(true);
  });
  it("names who waits, a few of many, and for how much", () => {
    const numbers = "has 0 free of 20 addresses, and 2 pools";
    expect(fullOf(...["d", "c", "b", "a"].map((name) => shortfall(name)))).toEqual({
      ...{ type: "Full", isTrue: true, reason: "PoolsWait" },
      message: `${numbers}; 4 pools wait for 12 more: "a" (Deployment shop/a, 1 of 4), "b" (Deployment shop/b, 1 of 4), "c" (Deployment shop/c, 1 of 4) and 1 more`,
    });
    const one = `${numbers}; 1 pool waits for 3 more: "d" (Deployment shop/d, 1 of 4)`;
    expect(fullOf(shortfall("d"))?.message).toBe(one);
    // A former version of its workload is short as well.
    expect(fullOf(shortfall("d"), shortfall("d", "SubnetFull", 2))?.message).toBe(one);
  });
});
