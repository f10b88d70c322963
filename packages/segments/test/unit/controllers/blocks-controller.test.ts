/** Blocks of pools, leased from a hub in memory, on real caches of a server in memory. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type OpenCaches, openCaches } from "../../../../../host/controller/caches.ts";
import { PoolWrites } from "../../../../../host/controller/pool-writes.ts";
import type { Controller } from "../../../../../host/controller/types.ts";
import { ApiError, ApiUnavailable } from "../../../../../host/kubernetes/kube-api.ts";
import { UNHEARD_MS } from "../../../../../host/resources/pool-source.ts";
import { EPOCH_MAP } from "../../../../../host/resources/registry-epoch.ts";
import { ADMITS_ALL } from "../../../../../test/fakes/admission/admission.ts";
import { MemoryApiServer } from "../../../../../test/fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../../../../test/lab/cluster/objects.ts";
import { SERVES } from "../../../../../test/simulation/collections.ts";
import { recordLog } from "../../../../../test/world/recorded-log.ts";
import { RANGES_MAP } from "../../../blocks/own-ranges.ts";
import { startBlocks } from "../../../controllers/blocks-controller.ts";
import { NEW_MS, REST_MS, SURPLUS_MS } from "../../../controllers/plan-blocks.ts";
import type { BlocksDeps } from "../../../types.ts";

const BERTH = "/apis/ipam.vendor.io/v1";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
const CHECK_MS = 20_000;
const MEMBERS = `${BERTH}/rangemembers`;
const RANGES = {
  [`${BERTH}/addressranges`]: { apiVersion: "ipam.vendor.io/v1", kind: "AddressRange" },
  [MEMBERS]: { apiVersion: "ipam.vendor.io/v1", kind: "RangeMember" },
};

let home: MemoryApiServer;
let hub: MemoryApiServer;
let caches: OpenCaches;
let part: Controller;
let isHubAway: boolean;
let leading: AbortController;

type ApiFaults = Parameters<MemoryApiServer["client"]>[0];

const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  const admission = { ...ADMITS_ALL, hasStatus: () => true };
  [home, hub] = [0, 1].map(
    () => new MemoryApiServer({ serves: { ...SERVES, ...RANGES }, isOpen: true, admission, nowMs: () => Date.now() }),
  ) as [MemoryApiServer, MemoryApiServer];
  isHubAway = false;
  hub.put(`${BERTH}/addressranges`, "lan", {
    spec: { subnet: "10.6.0.0/24", blockSize: 28, gateway: "10.6.0.254", nodeIPs: ["10.6.0.250-10.6.0.253"] },
  });
  for (const member of ["east", "west"])
    hub.put(MEMBERS, `lan.${member}`, { spec: { range: "lan", member, user: member, maxBlocks: 3 } });
  home.put("/api/v1/namespaces", "kube-system", {});
  home.put(MAPS, RANGES_MAP, { metadata: { namespace: "kube-system" } });
  epoch("e1");
  home.put(`${BERTH}/ippools`, "lan", { spec: { subnet: "10.6.0.0/24", source: { range: "lan" } } });
  const { log } = recordLog();
  caches = openCaches({ api: home.client(), configNamespace: "kube-system", log, random: () => 0 });
  const synced = caches.synced();
  await pass(100);
  await synced;
  part = startPart();
  await pass(CHECK_MS);
});
afterEach(async () => {
  leading.abort(new Error("The test ends"));
  await part.close();
  await caches.close();
  vi.useRealTimers();
});

/** A controller that has just begun to lead. `intercept`: its calls of the cluster's API server. */
function startPart(intercept: ApiFaults = async (_, commit) => commit()): Controller {
  leading = new AbortController();
  const nowMs = () => performance.now();
  const hubApi = hub.client(async (_, commit) => {
    if (!isHubAway) return commit();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    throw new ApiUnavailable("GET /", "no route to host");
  });
  return startBlocks({
    ...{ api: home.client(intercept), caches, log: recordLog().log, random: () => 0, leading: leading.signal },
    ...{ clock: { nowMs, now: () => new Date() }, poolWrites: new PoolWrites({ nodes: () => 1, nowMs }) },
    hub: { api: hubApi, member: "east", namespace: "kube-system" },
  } as unknown as BlocksDeps);
}

function epoch(name: string): void {
  const data = { epoch: name, settled: name, cause: "first", definition: "d", waitsFor: "" };
  home.put(MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" }, data });
}

interface Source {
  readonly epoch: string;
  readonly asOf: string;
  readonly blocks: readonly { block: string; state: string }[];
  readonly others?: readonly { member: string; blocks: number; ips: readonly string[] }[];
  readonly [key: string]: unknown;
}

/** The pool `lan`, or a member of the range. */
interface Lan {
  readonly spec: object;
  readonly status: {
    readonly source?: Source;
    readonly writes: number;
    readonly blocks: Readonly<Record<string, { readonly pool: string; readonly again?: true }>>;
    readonly [key: string]: unknown;
  };
}

const objectOf = (server: MemoryApiServer, plural: string, name = "lan") =>
  server.client().call({ method: "GET", path: `${BERTH}/${plural}/${name}` }) as unknown as Promise<Lan>;
const memberOf = (member = "east") => objectOf(hub, "rangemembers", `lan.${member}`);
/** Something of the pool's status is other than it was. */
async function changePool(change: object): Promise<void> {
  const { spec, status } = await objectOf(home, "ippools");
  home.put(`${BERTH}/ippools`, "lan", { spec, status: { ...status, ...change } });
}

const sourceOf = async () => (await objectOf(home, "ippools")).status.source;
const statesOf = async () => (await sourceOf())?.blocks.map(({ state }) => state);
async function expectStates(afterMs: number, ...states: readonly string[]): Promise<void> {
  await pass(afterMs);
  expect(await statesOf()).toEqual(states);
}
async function expectBlocks(afterMs: number, count: number): Promise<void> {
  await pass(afterMs);
  expect(await statesOf()).toHaveLength(count);
}

/** Pods of the cluster have the first so many addresses of its first block, or of another one. */
async function use(count: number, index = 0): Promise<void> {
  const { block = "" } = (await sourceOf())?.blocks[index] ?? {};
  const [first = ""] = block.split("/");
  const [net, last] = [first.replace(/\d+$/, ""), Number(first.split(".").at(-1))];
  for (let at = 0; at < count; at++) {
    const address = `${net}${last + at}`;
    const { metadata, ...rest } = allocationObject(allocationSpec(address, { pool: "lan" })) as { metadata: object };
    home.put(`${BERTH}/ipallocations`, address, { ...rest, metadata });
  }
}

it("a pool without a block gets one, which rests for a minute and is then given with detection", async () => {
  expect(await sourceOf()).toMatchObject({ epoch: "e1", blocks: [{ state: "Resting" }] });
  expect(Object.values((await memberOf()).status.blocks)).toMatchObject([{ pool: "lan" }]);
  await expectStates(REST_MS - 2 * CHECK_MS, "Resting");
  await expectStates(2 * CHECK_MS, "New");
  await expectStates(3_600_000 + CHECK_MS, "Active");
});

it("a block is leased ahead, once, when less than a block is free; the share ends it, and the problem says so", async () => {
  await pass(REST_MS + CHECK_MS);
  await use(1);
  await expectStates(2 * CHECK_MS, "New", "Resting");
  const { writes } = (await memberOf()).status;
  await pass(10 * CHECK_MS);
  expect((await memberOf()).status.writes).toBe(writes);
  await pass(REST_MS);
  for (const at of [0, 1]) await use(16, at);
  await pass(2 * CHECK_MS);
  await use(1, 2);
  await expectStates(REST_MS + 2 * CHECK_MS, "New", "New", "New");
  expect(part.problems).toEqual(['AddressRange "lan": this cluster has as many blocks as it may have (maxBlocks)']);
});

it("while the hub is away everything stays, and the problem says so; a new epoch is not confirmed", async () => {
  await pass(REST_MS + CHECK_MS);
  isHubAway = true;
  epoch("e2");
  await use(16);
  await pass(3_600_000);
  const away = { reason: "HubAway", heard: expect.stringMatching(/^20.*Z$/), member: "east", maxBlocks: 3 };
  expect(await sourceOf()).toMatchObject({ epoch: "e1", blocks: [{ state: "New" }], ...away });
  expect(part.measurements?.ranges?.()).toMatchObject([{ reason: "HubAway", answeredMs: expect.any(Number) }]);
  expect(Date.now() - (part.measurements?.ranges?.()[0]?.answeredMs ?? 0)).toBeGreaterThan(3_600_000);
  const problem = 'AddressRange "lan": the hub cannot be asked, pods get what is leased already: no route to host';
  for (let step = 0; step < CHECK_MS; step += 1_000) {
    expect(part.problems).toEqual([problem]);
    await pass(1_000);
  }
  isHubAway = false;
  await pass(2 * CHECK_MS);
  expect(await sourceOf()).toMatchObject({ epoch: "e2", blocks: [{}, { state: "Resting" }] });
  for (const key of ["reason", "heard", "problem"]) expect(await sourceOf()).not.toHaveProperty(key);
  expect(part.problems).toEqual([]);
});

it("a cluster that was off, or was restored, waits for the hub, which confirms its blocks", async () => {
  const asOf = "2026-01-01T00:00:00.000Z";
  isHubAway = true;
  await pass(CHECK_MS);
  await changePool({ source: { ...(await sourceOf()), asOf } });
  await pass(1_800_000);
  expect(await sourceOf()).toMatchObject({ asOf, blocks: [{}] });
  isHubAway = false;
  await pass(CHECK_MS);
  expect(Date.now() - Date.parse((await sourceOf())?.asOf ?? "")).toBeLessThan(CHECK_MS);
  expect(await statesOf()).toHaveLength(1);
});

it("without the right to read its memory of leases everything stays, and pools and the problem say so", async () => {
  await pass(REST_MS + CHECK_MS);
  home.put(`${BERTH}/ippools`, "more", { spec: { subnet: "10.7.0.0/24", source: { range: "held" } } });
  await part.close();
  const message = `GET ${MAPS}/${RANGES_MAP} was answered with 403`;
  part = startPart(async ({ path }, commit) => {
    if (!path.endsWith(RANGES_MAP)) return commit();
    throw new ApiError({ status: 403, reason: "Forbidden", operation: "GET", message });
  });
  await pass(3_600_000);
  const problem = `the hub cannot be asked, pods get what is leased already: ${message}`;
  expect(await sourceOf()).toMatchObject({ blocks: [{ state: "New" }], reason: "Failed", problem });
  expect(Date.now() - Date.parse((await sourceOf())?.asOf ?? "")).toBeLessThan(UNHEARD_MS);
  const others = `Blocks of pools that are gone are not returned: ${message}`;
  const missing = expect.stringContaining('AddressRange "held": the hub has no such range');
  expect(part.problems).toEqual([others, missing, `AddressRange "lan": ${problem}`]);
});

it("records that the hub has lost are written again", async () => {
  hub.put(MEMBERS, "lan.east", { spec: (await memberOf()).spec });
  await expectStates(CHECK_MS, "Resting");
  expect(Object.values((await memberOf()).status.blocks)).toMatchObject([{ pool: "lan", again: true }]);
  await expectStates(REST_MS, "New");
});

it("blocks of another size than a range that was made anew go back, and are replaced by one of its own", async () => {
  await pass(REST_MS + CHECK_MS);
  await use(1);
  hub.put(`${BERTH}/addressranges`, "lan", { spec: { subnet: "10.6.0.0/24", blockSize: 27 } });
  await pass(CHECK_MS);
  expect((await statesOf())?.toSorted()).toEqual(["Disputed", "Resting"]);
  for (const { name } of caches.allocations.items.values()) home.remove(name);
  await expectStates(REST_MS + 4 * CHECK_MS, "New");
  const { writes, blocks } = (await memberOf()).status;
  expect([writes, Object.keys(blocks)]).toEqual([3, [expect.stringMatching("/27$")]]);
});

async function mark(wanted: string, waiting?: number): Promise<void> {
  await changePool({ wanted, waiting });
  await pass(CHECK_MS);
}

it("blocks that are leased rest for a minute from then on, whenever the hub is asked next", async () => {
  await mark(new Date().toISOString(), 17);
  await pass(REST_MS - CHECK_MS - 1_000);
  expect((await statesOf())?.toSorted()).toEqual(["New", "Resting", "Resting"]);
  await expectStates(2_000, "New", "New", "New");
});

it("pods that wait on several nodes have blocks on their way at once, and no more an hour later", async () => {
  await mark("2026-01-01T00:00:00Z", 17);
  expect(await statesOf()).toHaveLength(3);
  await part.close();
  part = startPart();
  await expectBlocks(5 * CHECK_MS, 3);
});

it("a pool of another subnet leases nothing, and says why", async () => {
  home.put(`${BERTH}/ippools`, "other", { spec: { subnet: "10.7.0.0/24", source: { range: "lan" } } });
  await pass(2 * CHECK_MS);
  const problem = "its subnet 10.7.0.0/24 is not that of the range, 10.6.0.0/24";
  expect(part.problems).toEqual([`IPPool "other" leases nothing: ${problem}`]);
  expect(caches.pools.items.get("other")?.value?.source).toMatchObject({ blocks: [], problem });
  expect(await leasesOf()).toHaveLength(1);
});

const leasesOf = async () => Object.keys((await memberOf()).status.blocks).sort();

/** The pool has five blocks, all free, for longer than they are new. */
async function leaseTooMany(): Promise<readonly string[]> {
  const { spec, status } = await memberOf();
  hub.put(MEMBERS, "lan.east", { spec: { ...spec, maxBlocks: 8 }, status });
  await pass(REST_MS + 2 * CHECK_MS);
  for (let count = 1; count < 4; count++) {
    for (let at = 0; at < count; at++) await use(16, at);
    await pass(REST_MS + 2 * CHECK_MS);
  }
  await pass(NEW_MS + CHECK_MS);
  for (const { name } of caches.allocations.items.values()) home.remove(name);
  await pass(CHECK_MS);
  expect(await statesOf()).toEqual(Array(5).fill("Active"));
  return leasesOf();
}

/** Steps until the pool has a block in the state. */
async function awaitState(state: string): Promise<string> {
  for (let step = 0; step < 2_000; step++) {
    const found = (await sourceOf())?.blocks.find((each) => each.state === state);
    if (found !== undefined) return found.block;
    await pass(CHECK_MS / 5);
  }
  throw new Error(`no block is ${state}`);
}

it("a block that is free for long comes back once its pool says so, and the next one an hour later", async () => {
  const leases = await leaseTooMany();
  const block = await awaitState("Returning");
  expect(await leasesOf()).toEqual(leases);
  await pass(CHECK_MS);
  expect(await leasesOf()).toEqual(leases.filter((each) => each !== block));
  await pass(CHECK_MS);
  expect((await sourceOf())?.blocks.map((each) => each.block)).not.toContain(block);
  expect(await statesOf()).toEqual(Array(4).fill("Active"));
  await expectBlocks(SURPLUS_MS + REST_MS, 3);
  await expectBlocks(2 * SURPLUS_MS, 3);
});

it("with an address that a pod claims meanwhile the block stays", async () => {
  const leases = await leaseTooMany();
  const block = await awaitState("Returning");
  const at = (await sourceOf())?.blocks.findIndex((each) => each.block === block);
  await use(1, at);
  await pass(CHECK_MS);
  expect(await statesOf()).toContain("Draining");
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual(leases);
  expect((await memberOf()).status.writes).toBe(5);
});

it("an address that only the API server knows of keeps its block, and one of another space does not", async () => {
  const leases = await leaseTooMany();
  await part.close();
  let space = "";
  const asked: unknown[] = [];
  part = startPart(async ({ path, query }, commit) => {
    if (!path.endsWith("/ipallocations")) return commit();
    asked.push(query?.fieldSelector);
    const items = leases.map((block) => ({ metadata: { name: `${block.split("/")[0]}${space}` } }));
    return { metadata: { resourceVersion: "1" }, items } as never;
  });
  await awaitState("Returning");
  await pass(2 * CHECK_MS);
  expect([await leasesOf(), asked[0]]).toEqual([leases, "spec.pool=lan"]);
  space = ".blue";
  await pass(10 * CHECK_MS);
  expect(await leasesOf()).toHaveLength(4);
});

it("goes on returning a block where an earlier controller has stopped", async () => {
  const leases = await leaseTooMany();
  const block = await awaitState("Returning");
  await part.close();
  part = startPart();
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual(leases.filter((each) => each !== block));
});

it("the blocks of a pool that is gone come back when no pod has an address of them", async () => {
  await leaseTooMany();
  await use(1, 0);
  home.remove("lan", `${BERTH}/ippools`);
  await pass(3 * CHECK_MS);
  expect(await leasesOf()).toHaveLength(1);
  for (const { name, spec } of caches.allocations.items.values()) if (spec.state === "Bound") home.remove(name);
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual([]);
});

it("while the record of the registry's epoch is missing the pool's stays in force, and no block goes back", async () => {
  home.remove(EPOCH_MAP, MAPS);
  await expectStates(REST_MS + CHECK_MS, "New");
  expect(await sourceOf()).toMatchObject({ epoch: "e1" });
  home.remove("lan", `${BERTH}/ippools`);
  await pass(3 * CHECK_MS);
  expect(await leasesOf()).toHaveLength(1);
  epoch("e1");
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual([]);
});

it("the blocks of a pool that has no source, or not yet, stay: berthctl blocks changes it", async () => {
  await leaseTooMany();
  const before = await leasesOf();
  home.put(`${BERTH}/ippools`, "lan", { spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.16-10.6.0.31"] } });
  await pass(3 * CHECK_MS);
  expect(await leasesOf()).toEqual(before);
});

it("other clusters' blocks are told at once with another change, else every ten minutes", async () => {
  const leased = new Map<string, object>();
  const lease = async (...blocks: readonly string[]) => {
    for (const block of blocks)
      leased.set(`10.6.0.${block}/28`, { pool: "lan", request: block, since: "2026-01-01T00:00:00Z" });
    const status = { cluster: "w", token: "t", writes: leased.size, blocks: Object.fromEntries(leased) };
    hub.put(MEMBERS, "lan.west", { spec: (await memberOf("west")).spec, status });
    await pass(CHECK_MS);
  };
  const [{ block: own = "" } = {}] = (await sourceOf())?.blocks ?? [];
  const [first = "", second = "", third = ""] = ["16", "32", "64", "80", "96"].filter((at) => !own.includes(`.${at}/`));
  await lease(first);
  expect(await sourceOf()).not.toHaveProperty("others");
  await pass(REST_MS);
  expect((await sourceOf())?.others).toMatchObject([{ member: "west", blocks: 1 }]);
  await lease(second, third);
  expect((await sourceOf())?.others).toMatchObject([{ blocks: 1 }]);
  await pass(600_000);
  expect((await sourceOf())?.others).toMatchObject([{ blocks: 3 }]);
});

const reserve = (address: string, more: object = { owner: { namespace: "shop", name: "db-0" } }) =>
  home.put(`${BERTH}/reservedips`, address, { spec: { ips: [address], ...more } });

it("the block of an address that is reserved for an owner is leased, unless another cluster has it", async () => {
  const before = await leasesOf();
  const [wanted = 0, others = 0] = [64, 96, 128].filter((first) => !before.includes(`10.6.0.${first}/28`));
  const block = { pool: "lan", request: "r", since: "2026-01-01T00:00:00Z" };
  const status = { cluster: "w", token: "t", writes: 1, blocks: { [`10.6.0.${others}/28`]: block } };
  hub.put(MEMBERS, "lan.west", { spec: (await memberOf("west")).spec, status });
  // Of another cluster; of a machine; of nodes; of no range.
  reserve(`10.6.0.${others + 1}`);
  reserve(`10.6.0.${wanted + 1}`, {});
  for (const address of ["10.6.0.251", "10.7.0.1"]) reserve(address);
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual(before);
  reserve(`10.6.0.${wanted + 2}`);
  await pass(2 * CHECK_MS);
  expect(await leasesOf()).toEqual([...before, `10.6.0.${wanted}/28`].sort());
});

it("a block stays as long as an address of it is reserved for an owner", async () => {
  const leases = await leaseTooMany();
  const block = await awaitState("Draining");
  const address = `${block.replace(/\d+\/28$/, "")}${Number(block.split(/[./]/).at(-2)) + 2}`;
  reserve(address);
  await pass(4 * CHECK_MS);
  expect(await leasesOf()).toEqual(leases);
  home.remove(address, `${BERTH}/reservedips`);
  await pass(4 * CHECK_MS);
  expect(await leasesOf()).toEqual(leases.filter((each) => each !== block));
});

it("measures blocks by state, and the pins of a draining one; counts those leased since it leads", async () => {
  await pass(REST_MS + CHECK_MS);
  await use(3);
  await pass(2 * CHECK_MS);
  const states = { resting: 1, new: 1, active: 0, draining: 0, returning: 0, disputed: 0 };
  const measured = { name: "lan", share: 3, held: 2, leased: 2, returned: 0, pools: [{ pool: "lan", states }] };
  expect(part.measurements?.ranges?.()).toMatchObject([{ ...measured, reason: undefined, pinned: [] }]);
  const [block, ...rest] = (await sourceOf())?.blocks ?? [];
  await changePool({ source: { ...(await sourceOf()), blocks: [{ ...block, state: "Draining" }, ...rest] } });
  await pass(100);
  expect(part.measurements?.ranges?.()[0]?.pinned).toEqual([{ block: block?.block, addresses: 3 }]);
});
