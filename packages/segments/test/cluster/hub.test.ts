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
import { Hub } from "../../blocks/hub.ts";
import { OwnRanges, RANGES_MAP } from "../../blocks/own-ranges.ts";
import type { BlockDemand } from "../../blocks/plan-range.ts";
import { addMember } from "../lab/hub.ts";

const RANGES = "/apis/ipam.vendor.io/v1/addressranges";
const CLUSTERS = ["east", "west", "north"];
const NOTHING: BlockDemand = { lease: {}, giveBack: [] };

let hub: ControlPlane;
let home: ControlPlane;
let homeApi: ProductClient;
const apis = new Map<string, ProductClient>();
const tokens = new Map<string, string>();

const userOf = (name: string) => `system:serviceaccount:kube-system:range-${name}`;

beforeAll(async () => {
  [hub, home] = await Promise.all([borrowPlane(), borrowPlane()]);
  homeApi = await connectClient(home.kubeconfig);
  for (const name of CLUSTERS) {
    const account = `range-${name}`;
    const token = await addMember(hub.client, name);
    tokens.set(name, token);
    apis.set(name, await connectClient(await hub.writeKubeconfig(account, { token })));
    await home.client.apply(`${NAMESPACES}/${name}`, namespaceObject(name));
    await home.client.apply(`${NAMESPACES}/${name}/configmaps/${RANGES_MAP}`, mapObject());
  }
});
afterAll(async () => {
  for (const api of [homeApi, ...apis.values()]) await api?.close();
  await hub?.stop();
  await home?.stop();
});

function mapObject(data?: object): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: RANGES_MAP }, ...(data && { data }) };
}

let range: string;
let tries = 0;

beforeEach(async () => {
  range = `lan-${++tries}`;
  await hub.client.create(RANGES, rangeObject(range));
});
afterEach(async () => {
  await hub.client.delete(`${RANGES}/${range}`);
});

function rangeObject(name: string, spec: object = {}): KubeObject {
  const members = CLUSTERS.map((each) => ({ name: each, user: userOf(each), maxBlocks: 12 }));
  return {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata: { name } },
    spec: { subnet: "10.6.0.0/24", blockSize: 28, members, ...spec },
  };
}

/** The cluster's own view; `memory`: the namespace where it keeps it. */
function openCluster(name: string, memory = name, renews = false): Hub {
  const own = new OwnRanges(homeApi, memory);
  const identity = { name, cluster: `uid-${name}`, newId: randomUUID };
  return new Hub({ hub: apis.get(name) as ProductClient, own, ...identity, renews });
}

const ask = (name: string, demand: Partial<BlockDemand> = {}, memory = name) =>
  openCluster(name, memory).update(range, { ...NOTHING, ...demand }, AbortSignal.timeout(30_000));

const statusOf = async (): Promise<KubeObject> => (await hub.client.get(`${RANGES}/${range}`)).status;

it("three clusters that lease at once get all blocks, each once, and the next one is told that none is left", async () => {
  const views = await Promise.all(CLUSTERS.map((name) => ask(name, { lease: { lan: 6 } })));
  const leased = views.flatMap(({ blocks }) => Object.keys(blocks));
  expect(leased).toHaveLength(16);
  expect(new Set(leased)).toHaveLength(16);
  expect(views.map(({ short }) => short).filter((short) => short !== undefined)).toEqual(["range"]);
  const { leases, members, sequence } = await statusOf();
  expect(Object.keys(leases)).toHaveLength(16);
  expect(Object.keys(members).sort()).toEqual(CLUSTERS.toSorted());
  expect(sequence).toBe(3);
});

describe("a stolen token", () => {
  let thief: KubeClient;
  let version: string;

  beforeEach(async () => {
    await ask("east", { lease: { lan: 2 } });
    await ask("west", { lease: { lan: 1 } });
    thief = await hub.openClient({ token: tokens.get("west") as string });
    version = (await hub.client.get(`${RANGES}/${range}`)).metadata.resourceVersion;
  });
  afterEach(() => thief.close());

  /** What a member writes; `change` is the attack. */
  async function attempt(change: (status: KubeObject, before: KubeObject) => void): Promise<string> {
    const before = await statusOf();
    const { epoch, sequence, members } = before;
    const { west } = members;
    const status = {
      ...{ sequence: sequence + 1, epoch, leases: {} },
      members: { west: { ...west, token: randomUUID(), writes: west.writes + 1 } },
    };
    change(status, before);
    const body = { metadata: { resourceVersion: version }, status };
    const outcome = await outcomeOf(thief.patch(`${RANGES}/${range}/status`, body));
    if (outcome !== "done") expect(await statusOf()).toEqual(before);
    return outcome;
  }

  const lease =
    (block: string, member = "west") =>
    (status: KubeObject) => {
      status.leases[block] = { member, pool: "lan" };
    };
  /** The member's entry with other fields. */
  const entry =
    (member: string, fields: object) =>
    ({ members }: KubeObject) => {
      members[member] = { ...members[member], ...fields };
    };
  const freeOf = ({ leases }: KubeObject) =>
    Array.from({ length: 16 }, (_, at) => `10.6.0.${at * 16}/28`).filter((block) => !(block in leases));
  const ofEast = ({ leases }: KubeObject) => Object.keys(leases).find((block) => leases[block].member === "east") ?? "";

  it("leases what its share allows", async () => {
    expect(await attempt((status, before) => lease(freeOf(before)[0] ?? "")(status))).toBe("done");
  });

  it.each<[what: string, attack: (status: KubeObject, before: KubeObject) => void, wanted: RegExp]>([
    ["takes a block of another member", (status, before) => lease(ofEast(before))(status), /it changes no lease/],
    ["leases half a block", lease("10.6.0.240/29"), /has no block 10.6.0.240\/29/],
    ["leases a block of another subnet", lease("10.7.0.0/28"), /has no block 10.7.0.0\/28/],
    [
      "leases beyond its share",
      (status, before) => {
        for (const block of freeOf(before).slice(0, 12)) lease(block)(status);
      },
      /more than its 12 blocks/,
    ],
    ["changes another member's entry", entry("east", { token: "x" }), /its own entry/],
    ["declares itself gone", entry("west", { gone: true }), /only an administrator/],
    ["takes another cluster's name", entry("west", { cluster: "uid-east" }), /must keep its cluster/],
    [
      "keeps its token",
      (status, { members }) => Object.assign(status.members.west, { token: members.west.token }),
      /replace its token/,
    ],
    ["leaves the sequence", (status, { sequence }) => Object.assign(status, { sequence }), /would not be the next one/],
    [
      "begins an epoch that waits for nobody",
      (status) => entry("west", { epoch: "mine" })(Object.assign(status, { epoch: "mine" })),
      /waits for all members/,
    ],
    [
      "writes nothing of itself",
      ({ members }) => Reflect.deleteProperty(members, "west"),
      /must keep its cluster|its own entry/,
    ],
  ])("never %s", async (_, attack, wanted) => {
    expect(await attempt(attack)).toMatch(wanted);
  });

  it("changes nothing but a status", async () => {
    const outcomes = await Promise.all([
      outcomeOf(thief.patch(`${RANGES}/${range}`, { spec: { blockSize: 27 } })),
      outcomeOf(thief.delete(`${RANGES}/${range}`)),
      outcomeOf(thief.create(RANGES, rangeObject("other"))),
      outcomeOf(thief.put(`${RANGES}/${range}/status`, await hub.client.get(`${RANGES}/${range}`))),
      outcomeOf(thief.get("/api/v1/namespaces/kube-system/secrets")),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatch(/^403 /);
  });

  it("of an account that is no member leases nothing", async () => {
    const members = [{ name: "east", user: userOf("east"), maxBlocks: 12 }];
    await hub.client.patch(`${RANGES}/${range}`, { spec: { members } });
    version = (await hub.client.get(`${RANGES}/${range}`)).metadata.resourceVersion;
    expect(await attempt((status, before) => lease(freeOf(before)[0] ?? "")(status))).toMatch(/the user of no member/);
    expect((await ask("west")).bar).toEqual({ kind: "notMember" });
  });
});

it("of two ranges with the same addresses no block is leased, returned ones are, and other address spaces do not matter", async () => {
  await ask("east", { lease: { lan: 2 } });
  const others: [name: string, spec: object][] = [
    ["inner", { subnet: "10.6.0.128/25" }],
    ["spare", { subnet: "10.6.0.0/24", addressSpace: "tenant" }],
    ["beside", { subnet: "10.6.1.0/24" }],
  ];
  for (const [name, spec] of others) await hub.client.create(RANGES, rangeObject(name, spec));
  try {
    const bar = { kind: "overlaps", ranges: ["inner"] };
    const before = await ask("east", { lease: { lan: 3 } });
    expect([before.bar, Object.keys(before.blocks).length]).toEqual([bar, 2]);
    const inner = openCluster("west").update("inner", { lease: { lan: 1 }, giveBack: [] }, AbortSignal.timeout(30_000));
    expect(await inner).toMatchObject({ bar: { kind: "overlaps", ranges: [range] }, blocks: {} });
    const after = await ask("east", { lease: { lan: 3 }, giveBack: Object.keys(before.blocks).slice(0, 1) });
    expect([after.bar, Object.keys(after.blocks).length]).toEqual([bar, 1]);
    expect((await ask("east")).bar).toBeUndefined();
    await hub.client.delete(`${RANGES}/inner`);
    expect(Object.keys((await ask("east", { lease: { lan: 3 } })).blocks)).toHaveLength(3);
  } finally {
    for (const [name] of others) await hub.client.delete(`${RANGES}/${name}`).catch(() => undefined);
  }
});

describe("the API server refuses a range", () => {
  it.each<[what: string, spec: object, wanted: RegExp]>([
    ["of blocks with more than 256 addresses", { subnet: "10.6.0.0/16", blockSize: 23 }, /24/],
    ["of blocks beyond the family", { blockSize: 64 }, /24 to 32 for IPv4/],
    ["with a block larger than the subnet", { subnet: "10.6.0.0/25", blockSize: 24 }, /cuts the subnet/],
    [
      "whose members share a user",
      { members: CLUSTERS.map((name) => ({ name, user: "one", maxBlocks: 1 })) },
      /of their own/,
    ],
  ])("%s", async (_, spec, wanted) => {
    expect(await outcomeOf(hub.client.create(RANGES, rangeObject("bad", spec)))).toMatch(wanted);
  });

  it("whose blocks change their size", async () => {
    expect(await outcomeOf(hub.client.patch(`${RANGES}/${range}`, { spec: { blockSize: 27 } }))).toMatch(/immutable/);
  });
});
