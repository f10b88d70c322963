/**
 * What the controller says about generated pools that have less than is wanted, and about the Subnet that they wait for, on a real API server. The pools
 * and the status of the Subnet are written here, so that each moment between two writes can be tested.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { Condition } from "../../host/controller/objects.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import type { KubeCall } from "../../host/kubernetes/kube-api.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { BERTH, POOLS, SETTINGS } from "../lab/cluster/objects.ts";
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

const lead = () => world.lead({ conditions: startConditions }, { events: posted });

function generatedSpec(name: string, subnet: string, { ips, wanted }: { ips: string[]; wanted: number }) {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: `uid-${name}` };
  const reason = `${wanted - 1} replicas and 1 more`;
  return { ips, generated: { subnet, application, interface: "eth0", reclaim: true, wanted, reason } };
}

/** As the controller does it, who alone may: without addresses first. */
async function generate(
  { client }: LabController,
  name: string,
  subnet: string,
  { ips, wanted, network }: { ips: string[]; wanted: number; network: string },
): Promise<void> {
  const spec = { subnet: network, ...generatedSpec(name, subnet, { ips: [], wanted }) };
  const body = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec };
  await client.call({ method: "POST", path: POOLS, body });
  if (ips.length > 0) await fill({ client }, name, ips);
}

async function fill({ client }: Pick<LabController, "client">, name: string, ips: string[]): Promise<void> {
  await client.call({ method: "PATCH", path: `${POOLS}/${name}`, body: { spec: { ips } } });
}

/** A Subnet with the addresses 1 to 6 of 10.70.`third`.0/24, of which its status gives these away. */
async function subnet(name: string, third: number, pools: { name: string; ips: string[] }[]): Promise<void> {
  await world.subnet(name, {
    subnet: `10.70.${third}.0/24`,
    ips: [`10.70.${third}.1-10.70.${third}.6`],
  });
  await assign(name, pools);
}

const assign = (name: string, pools: { name: string; ips: string[] }[]) =>
  world.client.patch(`${BERTH}/subnets/${name}/status`, { status: { pools } });

async function conditionOf(plural: string, name: string, type: string): Promise<Condition | undefined> {
  const conditions: Condition[] = (await world.read(plural, name))?.status?.conditions ?? [];
  return conditions.find((each) => each.type === type);
}

const is = (plural: string, name: string, type: string, wanted: Partial<Condition>) => async () => {
  const found = await conditionOf(plural, name, type);
  return found !== undefined && Object.entries(wanted).every(([key, value]) => found[key as keyof Condition] === value);
};

const eventsOf = (name: string) =>
  posted.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);

describe("a generated pool", () => {
  it("that lacks addresses of a full Subnet says so, the Subnet says who waits, and both say when it is over", async () => {
    const others = { name: "other", ips: ["10.70.1.3-10.70.1.6"] };
    await subnet("full", 1, [{ name: "web", ips: ["10.70.1.1-10.70.1.2"] }, others]);
    const controller = await lead();
    await generate(controller, "web", "full", { network: "10.70.1.0/24", ips: ["10.70.1.1-10.70.1.2"], wanted: 4 });
    await until("it says what it lacks", is("ippools", "web", "Supplied", { status: "False", reason: "SubnetFull" }));
    expect((await conditionOf("ippools", "web", "Supplied"))?.message).toBe(
      'has 2 of 4 addresses wanted (3 replicas and 1 more): Subnet "full" has 0 free of 6, 6 assigned to 2 pools',
    );
    await until("the Subnet says so", is("subnets", "full", "Full", { status: "True", reason: "PoolsWait" }));
    expect((await conditionOf("subnets", "full", "Full"))?.message).toBe(
      'has 0 free of 6, 6 assigned to 2 pools; 1 pool waits for 2 more: "web" (Deployment shop/web, 2 of 4)',
    );
    await until("it is ready all the same", is("ippools", "web", "Ready", { status: "True" }));
    await assign("full", [{ name: "web", ips: ["10.70.1.1-10.70.1.4"] }]);
    await until("no pool waits", is("subnets", "full", "Full", { status: "False" }));
    expect(await conditionOf("ippools", "web", "Supplied")).toMatchObject({ status: "False" });
    await fill(controller, "web", ["10.70.1.1-10.70.1.4"]);
    await until("it has all", is("ippools", "web", "Supplied", { status: "True" }));
    expect((await conditionOf("ippools", "web", "Supplied"))?.message).toBe(
      "has the 4 addresses wanted (3 replicas and 1 more)",
    );
    expect(eventsOf("web")).toEqual(["Supplied"]);
    expect(eventsOf("full")).toEqual(["Full"]);
  });

  it("in its making is not written to, whatever happens between; when it has its addresses, once", async () => {
    await subnet("room", 2, []);
    const controller = await lead();
    const { api } = controller;
    await until("the Subnet is ready", is("subnets", "room", "Ready", { status: "True" }));
    await world.pool("mark0", { subnet: "10.70.12.0/24" });
    await until("all else is written", is("ippools", "mark0", "Ready", { status: "True" }));
    api.takeWrites();
    await generate(controller, "fresh", "room", { network: "10.70.2.0/24", ips: [], wanted: 4 });
    await world.pool("mark", { subnet: "10.70.3.0/24" });
    await until("all was checked", is("ippools", "mark", "Ready", { status: "True" }));
    await assign("room", [{ name: "fresh", ips: ["10.70.2.1-10.70.2.4"] }]);
    await world.pool("mark2", { subnet: "10.70.4.0/24" });
    await until("all was checked again", is("ippools", "mark2", "Ready", { status: "True" }));
    expect((await world.read("ippools", "fresh")).status?.conditions).toBeUndefined();
    expect(api.takeWrites()).toEqual(["PATCH", "PATCH"]);
    await fill(controller, "fresh", ["10.70.2.1-10.70.2.4"]);
    await until("it is ready", is("ippools", "fresh", "Ready", { status: "True" }));
    const { status } = await world.read("ippools", "fresh");
    expect(status.conditions.map(({ type }: Condition) => type)).toEqual(["Ready"]);
    expect(api.takeWrites()).toEqual(["PATCH"]);
    expect(posted).toEqual([]);
  });

  it("says which limit is in the way, at once when a setting becomes one, and when it is one no more", async () => {
    const ips = ["10.70.5.1-10.70.5.2"];
    await subnet("wide", 5, [{ name: "big", ips }]);
    await world.settings({ maxGeneratedPoolSize: 2 });
    await generate(await lead(), "big", "wide", { network: "10.70.5.0/24", ips, wanted: 4 });
    await until("it is reported", is("ippools", "big", "Supplied", { reason: "PoolTooLarge" }));
    await world.settings({ maxGeneratedAddressesPerNamespace: 2 });
    await until("the other is reported", is("ippools", "big", "Supplied", { reason: "NamespaceLimit" }));
    expect(eventsOf("big")).toEqual(["Supplied"]);
    await world.client.delete(SETTINGS);
    await world.client.delete(`${BERTH}/subnets/wide`);
    await until("the Subnet is missed", is("ippools", "big", "Supplied", { reason: "SubnetGone" }));
  });
});

it("what pods wait for is reported well before the next pass over everything else", async () => {
  await subnet("soon", 6, [{ name: "other", ips: ["10.70.6.1-10.70.6.6"] }]);
  /** What was written of each pool first. */
  const firsts = new Map<string, string>();
  const note = async ({ method, path, body }: KubeCall): Promise<void> => {
    if (method !== "PATCH" || firsts.has(path)) return;
    const { conditions } = (body as { status: { conditions: Condition[] } }).status;
    firsts.set(path, conditions.map(({ type }) => type).join());
  };
  const prepare = (api: LabController["api"]): void => {
    api.after = note;
  };
  const controller = await world.lead({ conditions: startConditions }, { events: posted, prepare });
  const names = ["late-1", "late-2", "late-3"];
  for (const [index, name] of names.entries()) {
    // The other rounds, which write Ready, rest for a second after this.
    await world.pool(`rest-${index}`, { subnet: `10.70.${20 + index}.0/24` });
    await until("all else is checked", is("ippools", `rest-${index}`, "Ready", { status: "True" }));
    await generate(controller, name, "soon", { network: "10.70.6.0/24", ips: [], wanted: 1 });
    await until("it is reported", is("ippools", name, "Supplied", { reason: "SubnetFull" }));
  }
  // A busy machine may be late once.
  const sooner = names.filter((name) => firsts.get(`${POOLS}/${name}/status`) === "Supplied");
  expect(sooner.length, [...firsts].join("\n")).toBeGreaterThanOrEqual(2);
});

it("a second controller writes nothing when all is said", async () => {
  await lead();
  // The round that checks the second of them begins when all of the first one's is written.
  for (const [name, subnet] of Object.entries({ "second-last": "10.70.10.0/24", "third-last": "10.70.11.0/24" })) {
    await world.pool(name, { subnet });
    await until(`${name} is checked`, is("ippools", name, "Ready", { status: "True" }));
  }
  await world.depose();
  posted.splice(0);
  const { api } = await lead();
  await world.pool("last", { subnet: "10.70.9.0/24" });
  await until("it has checked", is("ippools", "last", "Ready", { status: "True" }));
  expect(api.takeWrites()).toEqual(["PATCH"]);
  expect(posted).toEqual([]);
});

it("beside the part that divides the Subnets: one write for a pool that gets all, a lack while there is one, and its end", async () => {
  await world.subnet("shared", { subnet: "10.70.8.0/29", gateway: "10.70.8.1" });
  const poolOwners = new ScriptedPoolOwners();
  const parts = { subnets: startSubnets, conditions: startConditions };
  await world.lead(parts, { events: posted, poolOwners: poolOwners });
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
  await until("the Subnet says who waits", is("subnets", "shared", "Full", { status: "True" }));
  poolOwners.want("first", "u-first", { count: 1, reason: "0 replicas and 1 more", subnets: ["shared"] });
  await until("it has all", says("second", "Supplied", "Supplied"));
  await until("no pool waits", is("subnets", "shared", "Full", { status: "False" }));
  const { name: first } = (await poolOf("first")).metadata;
  expect(eventsOf(first)).toEqual([]);
  expect(eventsOf((await poolOf("second")).metadata.name)).toEqual(["Supplied"]);
});
