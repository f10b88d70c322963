/** What the controller says in the status of pools, Subnets and ReservedIPs, on a real API server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { Condition } from "../../host/controller/objects.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { POOLS } from "../lab/cluster/objects.ts";
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
  it("say that it is ready, and nothing more of one in order", async () => {
    await world.pool("blue", { subnet: "10.20.0.0/24" });
    await lead();
    await until("it is ready", has("ippools", "blue", "Ready", "True"));
    const { status, metadata } = await world.read("ippools", "blue");
    expect(status.conditions).toHaveLength(1);
    expect(status.conditions[0]).toMatchObject({ observedGeneration: metadata.generation, reason: "Ready" });
    expect(eventsOf("blue")).toEqual([]);
  });

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

  it("say why a pool is refused, in the words of the agents", async () => {
    await world.pool("part", { subnet: "10.22.3.0/24" });
    await world.pool("wide", { subnet: "10.22.0.0/16" });
    await lead();
    await until("it is reported", has("ippools", "wide", "Overlap", "True"));
    expect((await conditionOf("ippools", "wide", "Ready"))?.message).toBe(
      'IPPool "wide" is refused: its subnet 10.22.0.0/16 partly overlaps 10.22.3.0/24 of IPPool "part"; make them equal or disjoint',
    );
    expect(eventsOf("wide").sort()).toEqual(["Overlap", "Refused"]);
    await until("the other is ready", has("ippools", "part", "Ready", "True"));
  });

  it("report a fault that the API server accepted", async () => {
    await world.pool("fault", { subnet: "10.23.0.0/24", ips: ["10.23.0.9-10.23.0.1"] });
    await lead();
    await until("it is reported", has("ippools", "fault", "Ready", "False"));
    expect(await conditionOf("ippools", "fault", "Ready")).toMatchObject({ reason: "InvalidSpecification" });
  });

  it("name who keeps a deleted pool", async () => {
    await world.pool("gone", { subnet: "10.24.0.0/24" }, { finalizers: ["other.example/one"] });
    await world.allocate("10.24.0.9", { pool: "gone" });
    await world.client.delete(`${POOLS}/gone`);
    await lead();
    await until("it is reported", has("ippools", "gone", "DeletedWithHolders", "True"));
    expect((await conditionOf("ippools", "gone", "DeletedWithHolders"))?.message).toBe(
      "The pool goes when its last address is free: 10.24.0.9 (pod shop/web-0)",
    );
    await world.release("10.24.0.9");
    await until("no pod holds an address", has("ippools", "gone", "DeletedWithHolders", "False"));
    await world.client.patch(`${POOLS}/gone`, { metadata: { finalizers: null } });
  });

  it("conflict: report a machine that answers for three addresses", async () => {
    await world.pool("proxy", { subnet: "10.25.0.0/24" });
    const quarantine = { reason: "Conflict", mac: "02:00:00:00:00:01", parent: "eth0" } as const;
    for (const last of [1, 2, 3])
      await world.allocate(`10.25.0.${last}`, { pool: "proxy", state: "Quarantined", holders: [], quarantine });
    await lead();
    await until("it is reported", has("ippools", "proxy", "ProxyArpSuspected", "True"));
    expect(eventsOf("proxy")).toEqual(["ProxyArpSuspected"]);
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

  it("continues where the first one died between two writes", async () => {
    for (const name of ["one", "two"]) await world.pool(name, { subnet: "10.41.0.0/24" });
    let writes = 0;
    await world.lead(
      { conditions: startConditions },
      {
        events: posted,
        prepare: (api) => {
          api.before = async ({ method }) => {
            if (method === "PATCH" && writes++ > 0) throw new Error("It died here");
          };
        },
      },
    );
    await until("it died", () => writes > 1);
    await world.depose();
    const overlaps = await Promise.all(["one", "two"].map((name) => conditionOf("ippools", name, "Overlap")));
    expect(overlaps.filter((each) => each === undefined)).toHaveLength(1);
    await lead();
    for (const name of ["one", "two"]) await until(`${name} is checked`, has("ippools", name, "Overlap", "True"));
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
