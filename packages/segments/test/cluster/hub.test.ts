/**
 * Three clusters lease blocks of one AddressRange from a real API server: each with an account of its own, under the
 * policy of deploy/hub.yaml. Their own memories are in another API server, a namespace each.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KubeClient as ProductClient } from "../../../../host/kubernetes/client.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { outcomeOf } from "../../../../test/cluster/rights-objects.ts";
import { connectClient } from "../../../../test/lab/cluster/in-process.ts";
import { NAMESPACES, namespaceObject } from "../../../../test/lab/cluster/objects.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";
import { openHub } from "../../blocks/hub.ts";
import { RANGES_MAP } from "../../blocks/own-ranges.ts";
import type { BlockDemand } from "../../blocks/plan-leases.ts";
import { addMember, createRange, MEMBERS, memberObject, RANGES } from "../lab/hub.ts";

const CLUSTERS = ["east", "west", "north"];
const SHARES = Object.fromEntries(CLUSTERS.map((name) => [name, 12]));
const SPEC = { subnet: "10.6.0.0/24", blockSize: 28 };
const NOTHING: BlockDemand = { lease: {}, giveBack: [] };

let hub: ControlPlane;
let home: ControlPlane;
let homeApi: ProductClient;
const apis = new Map<string, ProductClient>();
const tokens = new Map<string, string>();

beforeAll(async () => {
  [hub, home] = await Promise.all([borrowPlane(), borrowPlane()]);
  homeApi = await connectClient(home.kubeconfig);
  for (const name of CLUSTERS) {
    const account = `range-${name}`;
    const token = await addMember(hub.client, name);
    tokens.set(name, token);
    apis.set(name, await connectClient(await hub.writeKubeconfig(account, { token })));
    await home.client.apply(`${NAMESPACES}/${name}`, namespaceObject(name));
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: RANGES_MAP } };
    await home.client.apply(`${NAMESPACES}/${name}/configmaps/${RANGES_MAP}`, map);
  }
});
afterAll(async () => {
  for (const api of [homeApi, ...apis.values()]) await api?.close();
  await hub?.stop();
  await home?.stop();
});

let range: string;
let tries = 0;

beforeEach(async () => {
  range = `lan-${++tries}`;
  await createRange(hub.client, range, SPEC, SHARES);
});
afterEach(() => removeRange(range));

async function removeRange(name: string): Promise<void> {
  for (const each of CLUSTERS) await hub.client.delete(`${MEMBERS}/${name}.${each}`).catch(() => undefined);
  await hub.client.delete(`${RANGES}/${name}`).catch(() => undefined);
}

/** The cluster's own view; `memory`: the namespace where it keeps it. */
function openCluster(name: string, { memory = name, of = range } = {}) {
  const member = { range: of, member: name, cluster: `uid-${name}` };
  const clock = { now: () => new Date(), nowMs: () => performance.now() };
  return openHub({ hub: apis.get(name) as ProductClient, home: homeApi, namespace: memory, member, clock });
}

type Opened = ReturnType<typeof openCluster>;

const update = (cluster: Opened, demand: Partial<BlockDemand> = {}) =>
  cluster.update({ ...NOTHING, ...demand }, AbortSignal.timeout(30_000));
const ask = (name: string, demand: Partial<BlockDemand> = {}, options = {}) =>
  update(openCluster(name, options), demand);

const statusOf = async (member: string): Promise<KubeObject> =>
  (await hub.client.get(`${MEMBERS}/${range}.${member}`)).status;

it("three clusters that lease at once get all blocks, each once, and then none is left", async () => {
  const clusters = CLUSTERS.map((name) => openCluster(name));
  // A cluster that meets another gives way, or waits a pass.
  for (let pass = 0; pass < 3; pass++)
    await Promise.all(clusters.map((cluster) => update(cluster, { lease: { lan: 6 } })));
  const views = await Promise.all(clusters.map((cluster) => update(cluster, { lease: { lan: 6 } })));
  const leased = views.flatMap(({ blocks }) => Object.keys(blocks));
  expect(leased).toHaveLength(16);
  expect(new Set(leased)).toHaveLength(16);
  expect(views.map(({ short }) => short).filter((short) => short !== undefined)).toContain("range");
  const statuses = await Promise.all(CLUSTERS.map(statusOf));
  expect(statuses.flatMap(({ blocks }) => Object.keys(blocks)).sort()).toEqual(leased.toSorted());
});

it("a cluster under another name leases nothing, and is told its own", async () => {
  const { blocks } = await ask("east", { lease: { lan: 1 } });
  const renamed = ask("north", { lease: { lan: 1 } }, { memory: "east" });
  await expect(renamed).rejects.toMatchObject({ reason: "NotMember", message: expect.stringContaining('"east"') });
  expect((await ask("east")).blocks).toEqual(blocks);
});

describe("a stolen token", () => {
  let thief: KubeClient;

  beforeEach(async () => {
    await ask("east", { lease: { lan: 2 } });
    await ask("west", { lease: { lan: 1 } });
    thief = await hub.openClient({ token: tokens.get("west") as string });
  });
  afterEach(() => thief.close());

  const block = (again = false) => ({
    ...{ pool: "lan", request: randomUUID(), since: new Date().toISOString() },
    ...(again && { again }),
  });
  const write = (member: string, status: object) =>
    outcomeOf(thief.patch(`${MEMBERS}/${range}.${member}/status`, { status }));
  const many = (count: number, again = false) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`10.6.0.${16 * at}/28`, block(again)]));

  it("writes nothing of another member, and has no more blocks than its share", async () => {
    expect(await write("east", { contested: true })).toMatch(/is not its user/);
    expect(await write("east", { blocks: { "10.6.0.0/28": null } })).toMatch(/is not its user/);
    expect(await write("west", { blocks: many(13) })).toMatch(/more than its 12 blocks/);
    expect(await write("west", { blocks: { everything: block() } })).toMatch(/want each of status.blocks as a prefix/);
    await hub.client.patch(`${MEMBERS}/${range}.west`, { spec: { maxBlocks: 0 } });
    expect(await write("west", { blocks: many(13) })).toMatch(/more than its 0 blocks/);
  });

  it("disputes no more blocks than its share, and stops no other cluster", async () => {
    await hub.client.patch(`${MEMBERS}/${range}.west`, { spec: { maxBlocks: 3 } });
    const [first = "", second = ""] = Object.keys((await ask("east")).blocks);
    const stolen = { "10.6.0.0/8": block(true), "0.0.0.0/0": block(true), [first]: block(true) };
    const { blocks } = await statusOf("west");
    const none = Object.fromEntries(Object.keys(blocks).map((each) => [each, null]));
    expect(await write("west", { blocks: { ...none, ...stolen } })).toBe("done");
    const east = await ask("east", { lease: { lan: 4 } });
    expect([Object.keys(east.disputed), Object.keys(east.blocks).length, east.bar]).toEqual([[first], 3, undefined]);
    expect(Object.keys(east.blocks)).toContain(second);
  });

  it("changes nothing but its own status", async () => {
    const own = `${MEMBERS}/${range}.west`;
    const outcomes = await Promise.all([
      outcomeOf(thief.patch(own, { spec: { maxBlocks: 2_000 } })),
      outcomeOf(thief.delete(own)),
      outcomeOf(thief.delete(`${MEMBERS}/${range}.east`)),
      outcomeOf(thief.create(MEMBERS, memberObject(range, "other", 5))),
      outcomeOf(thief.patch(`${RANGES}/${range}`, { spec: { blockSize: 27 } })),
      outcomeOf(thief.put(`${own}/status`, await hub.client.get(own))),
      outcomeOf(thief.get("/api/v1/namespaces/kube-system/secrets")),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatch(/^403 /);
  });

  it("of an account that is no member any more writes nothing, and its blocks are left to its cluster", async () => {
    await hub.client.delete(`${MEMBERS}/${range}.west`);
    expect(await write("west", { blocks: many(1) })).toMatch(/^404 /);
    await expect(ask("west")).rejects.toMatchObject({ reason: "NotMember" });
  });
});

it("ranges with the same addresses lease no block twice, but in other address spaces", async () => {
  const specs: readonly [name: string, spec: object][] = [
    ["inner", { subnet: "10.6.0.128/25", blockSize: 29 }],
    ["tenant", { ...SPEC, addressSpace: "tenant" }],
  ];
  for (const [name, spec] of specs) await createRange(hub.client, name, spec, { east: 16, west: 16 });
  try {
    const inner = Object.keys((await ask("west", { lease: { lan: 16 } }, { of: "inner" })).blocks);
    expect(inner).toHaveLength(16);
    const east = await ask("east", { lease: { lan: 12 } });
    expect([east.short, Object.keys(east.blocks).length]).toEqual(["range", 8]);
    expect(Object.keys((await ask("east", { lease: { lan: 16 } }, { of: "tenant" })).blocks)).toHaveLength(16);
  } finally {
    for (const [name] of specs) await removeRange(name);
  }
});

describe("the API server refuses a range", () => {
  it.each<[what: string, spec: object, wanted: RegExp]>([
    ["of blocks with more than 256 addresses", { subnet: "10.6.0.0/16", blockSize: 23 }, /24/],
    ["of blocks beyond the family", { blockSize: 64 }, /24 to 32 for IPv4/],
    ["with a block larger than the subnet", { subnet: "10.6.0.0/25", blockSize: 24 }, /cuts the subnet/],
  ])("%s", async (_, spec, wanted) => {
    expect(await outcomeOf(createRange(hub.client, "bad", { ...SPEC, ...spec }, {}))).toMatch(wanted);
  });

  it("whose member has another object's name, or becomes another cluster's", async () => {
    const named = { ...memberObject(range, "south", 1), metadata: { name: "lan.south" } };
    expect(await outcomeOf(hub.client.create(MEMBERS, named))).toMatch(/metadata.name.*spec.range, a dot/);
    const change = { spec: { member: "other" } };
    expect(await outcomeOf(hub.client.patch(`${MEMBERS}/${range}.east`, change))).toMatch(/immutable/);
  });

  it("whose blocks change their size", async () => {
    expect(await outcomeOf(hub.client.patch(`${RANGES}/${range}`, { spec: { blockSize: 27 } }))).toMatch(/immutable/);
  });
});
