/** The controller's conditions in the status of pools, Subnets and ReservedIPs, on a real API server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { Condition } from "../../host/controller/objects.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import type { KubeCall } from "../../host/kubernetes/kube-api.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { BERTH, POOLS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
const posted: KubeEvent[] = [];

beforeAll(async () => {
  world = await openWorld(borrowPlane);
});
afterEach(async () => {
  await world.depose();
  posted.splice(0);
});
afterAll(() => world?.stop());

const lead = (): Promise<LabController> => world.lead({ conditions: startConditions }, { events: posted });

async function conditionOf(plural: string, name: string, type: string): Promise<Condition | undefined> {
  const conditions: Condition[] = (await world.read(plural, name))?.status?.conditions ?? [];
  return conditions.find((each) => each.type === type);
}

const has = (plural: string, name: string, type: string, status: string) => async () =>
  (await conditionOf(plural, name, type))?.status === status;

const eventsOf = (name: string) =>
  posted.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);

describe("conditions of a pool", () => {
  it("follow a shrink under a pod and its end; the time of the transition stays, and an event reports it once", async () => {
    await world.pool("green", { subnet: "10.21.0.0/24" });
    await world.allocate("10.21.0.99", { pool: "green" });
    await lead();
    await until("it is ready", has("ippools", "green", "Ready", "True"));
    await world.client.patch(`${POOLS}/green`, { spec: { ips: ["10.21.0.1-10.21.0.9"] } });
    await until("the shrink is reported", has("ippools", "green", "InUseOutsideRange", "True"));
    const first = await conditionOf("ippools", "green", "InUseOutsideRange");
    expect(first?.message).toContain("10.21.0.99 (pod shop/web-0)");
    expect(first?.observedGeneration).toBe(2);
    await world.client.patch(`${POOLS}/green`, { spec: { ips: ["10.21.0.1-10.21.0.8"] } });
    const isFollowed = async () =>
      (await conditionOf("ippools", "green", "InUseOutsideRange"))?.observedGeneration === 3;
    await until("the next generation is checked", isFollowed);
    const second = await conditionOf("ippools", "green", "InUseOutsideRange");
    expect(second?.lastTransitionTime).toBe(first?.lastTransitionTime);
    await world.release("10.21.0.99");
    await until("it is over", has("ippools", "green", "InUseOutsideRange", "False"));
    expect(eventsOf("green")).toEqual(["InUseOutsideRange"]);
  });

  it("report a fault that the API server accepted", async () => {
    await world.pool("fault", { subnet: "10.23.0.0/24", ips: ["10.23.0.9-10.23.0.1"] });
    await lead();
    await until("it is reported", has("ippools", "fault", "Ready", "False"));
    expect(await conditionOf("ippools", "fault", "Ready")).toMatchObject({ reason: "InvalidSpecification" });
  });
});

it("conditions of Subnets and reserved addresses", async () => {
  await world.pool("held", { subnet: "10.26.0.0/24" });
  await world.allocate("10.26.0.9", { pool: "held" });
  await world.subnet("narrow", { subnet: "10.26.0.0/24", ips: ["10.26.0.1-10.26.0.100"] });
  await world.subnet("second", { subnet: "10.26.0.0/24", ips: ["10.26.0.90-10.26.0.120"] });
  await world.create("ReservedIP", "nine", { ips: ["10.26.0.9"] });
  await lead();
  await until("the reservation is held", has("reservedips", "nine", "ReservedInUse", "True"));
  expect((await conditionOf("reservedips", "nine", "ReservedInUse"))?.message).toContain("10.26.0.9 (pod shop/web-0)");
  await until("the Subnets overlap", has("subnets", "narrow", "Overlap", "True"));
  await until("the pool is not inside", has("ippools", "held", "OutsideSubnet", "True"));
  expect(await conditionOf("ippools", "held", "OutsideSubnet")).toMatchObject({ reason: "PartlyInside" });
  await world.release("10.26.0.9");
  await until("it is held no more", has("reservedips", "nine", "ReservedInUse", "False"));
});

describe("a second controller", () => {
  it("writes nothing when all is up to date, and repeats no event", async () => {
    await lead();
    // The round that checks the second of them begins when all of the first one's is written.
    for (const [name, subnet] of Object.entries({ first: "10.40.1.0/24", second: "10.40.2.0/24" })) {
      await world.pool(name, { subnet });
      await until(`${name} is checked`, has("ippools", name, "Ready", "True"));
    }
    await world.depose();
    posted.splice(0);
    const { api, caches } = await lead();
    await world.pool("mark", { subnet: "10.40.0.0/24" });
    await until("it has checked", has("ippools", "mark", "Ready", "True"));
    expect(caches.pools.items.size).toBeGreaterThan(1);
    expect(api.takeWrites()).toEqual(["PATCH"]);
    expect(posted).toEqual([]);
  });
});

it("counts, conditions and an agent's mark are written to one status, and none of them is lost", async () => {
  await world.pool("busy", { subnet: "10.42.0.0/24" });
  await world.lead({ usage: startUsage, conditions: startConditions }, { events: posted });
  for (let mark = 0; mark < 20; mark++) {
    const wanted = `2026-11-20T04:00:${String(mark).padStart(2, "0")}Z`;
    await world.client.patch(`${POOLS}/busy/status`, { status: { wanted } });
  }
  await until("all is there", async () => {
    const { status } = await world.read("ippools", "busy");
    return status.total === 254 && status.used === 0 && status.conditions?.length === 1;
  });
  expect((await world.read("ippools", "busy")).status.wanted).toBe("2026-11-20T04:00:19Z");
});

it("what pods wait for is reported well before the next pass over everything else", async () => {
  await world.subnet("soon", { subnet: "10.70.6.0/24", ips: ["10.70.6.1"] });
  const status = { pools: [{ name: "other", ips: ["10.70.6.1"] }] };
  await world.client.patch(`${BERTH}/subnets/soon/status`, { status });
  /** First conditions written of each pool. */
  const firsts = new Map<string, string>();
  const note = async ({ method, path, body }: KubeCall): Promise<void> => {
    if (method !== "PATCH" || firsts.has(path)) return;
    const { conditions } = (body as { status: { conditions: Condition[] } }).status;
    firsts.set(path, conditions.map(({ type }) => type).join());
  };
  const prepare = (api: LabController["api"]): void => {
    api.after = note;
  };
  const { client } = await world.lead({ conditions: startConditions }, { events: posted, prepare });
  const names = ["late-1", "late-2", "late-3"];
  for (const [index, name] of names.entries()) {
    // The other rounds, which write Ready, rest for a second after this.
    await world.pool(`rest-${index}`, { subnet: `10.70.${20 + index}.0/24` });
    await until("all else is checked", has("ippools", `rest-${index}`, "Ready", "True"));
    const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: `uid-${name}` };
    const generated = { subnet: "soon", application, interface: "eth0", reclaim: true, wanted: 1, reason: "1 more" };
    const spec = { subnet: "10.70.6.0/24", ips: [], generated };
    const body = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec };
    await client.call({ method: "POST", path: POOLS, body });
    await until("it is reported", has("ippools", name, "Supplied", "False"));
  }
  // A busy machine may be late once.
  const sooner = names.filter((name) => firsts.get(`${POOLS}/${name}/status`) === "Supplied");
  expect(sooner.length, [...firsts].join("\n")).toBeGreaterThanOrEqual(2);
});

it("beside the part that divides the Subnets: one write for a pool that gets all, a lack while there is one, and its end", async () => {
  await world.subnet("shared", { subnet: "10.70.8.0/29", gateway: "10.70.8.1" });
  const poolOwners = new ScriptedPoolOwners();
  const parts = { subnets: startSubnets, conditions: startConditions };
  await world.lead(parts, { events: posted, poolOwners });
  const poolOf = async (name: string) => {
    const { items } = await world.client.get(POOLS);
    return items.find(
      ({ spec }: { spec: { generated?: { application: { name: string } } } }) =>
        spec.generated?.application.name === name,
    );
  };
  const conditionsOf = async (name: string): Promise<Condition[]> => (await poolOf(name))?.status?.conditions ?? [];
  const says = (name: string, type: string, reason: string) => async () =>
    (await conditionsOf(name)).some((each) => each.type === type && each.reason === reason);
  poolOwners.want("first", "u-first", { count: 3, subnets: ["shared"] });
  await until("it is ready", says("first", "Ready", "Ready"));
  expect(await conditionsOf("first")).toHaveLength(1);
  poolOwners.want("second", "u-second", { count: 4, reason: "3 replicas and 1 more", subnets: ["shared"] });
  await until("the other one lacks some", says("second", "Supplied", "SubnetFull"));
  expect((await conditionsOf("second")).find(({ type }) => type === "Supplied")?.message).toBe(
    'has 2 of 4 addresses wanted (3 replicas and 1 more): Subnet "shared" has 0 free of 5, 5 assigned to 2 pools',
  );
  await until("the Subnet says who waits", has("subnets", "shared", "Full", "True"));
  expect((await conditionOf("subnets", "shared", "Full"))?.message).toContain("1 pool waits for 2 more");
  poolOwners.want("first", "u-first", { count: 1, reason: "0 replicas and 1 more", subnets: ["shared"] });
  await until("it has all", says("second", "Supplied", "Supplied"));
  await until("no pool waits", has("subnets", "shared", "Full", "False"));
  const { name: first } = (await poolOf("first")).metadata;
  expect(eventsOf(first)).toEqual([]);
  expect(eventsOf((await poolOf("second")).metadata.name)).toEqual(["Supplied"]);
});
