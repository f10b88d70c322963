/** A pool whose blocks are prefixes of the IPAM of record, on a server in memory and over HTTP with the fake. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { type OpenCaches, openCaches } from "../../../../../host/controller/caches.ts";
import { PoolWrites } from "../../../../../host/controller/pool-writes.ts";
import type { Controller } from "../../../../../host/controller/types.ts";
import { EPOCH_MAP } from "../../../../../host/resources/registry-epoch.ts";
import { ADMITS_ALL } from "../../../../../test/fakes/admission/admission.ts";
import { MemoryApiServer } from "../../../../../test/fakes/memory-api-server.ts";
import { SERVES } from "../../../../../test/simulation/collections.ts";
import { recordLog } from "../../../../../test/world/recorded-log.ts";
import { OwnRanges, RANGES_MAP } from "../../../blocks/own-ranges.ts";
import { startBlocks } from "../../../controllers/blocks-controller.ts";
import { HttpClient } from "../../../record-server/http-client.ts";
import type { BlocksDeps, RecordServerAccess } from "../../../types.ts";
import { FakeRecordServer } from "../../fakes/record-server.ts";

const BERTH = "/apis/ipam.vendor.io/v1";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
const { signal } = new AbortController();
const ABSENT = { prefix: "10.6.0.0/25", blockSize: 28 };
const SOON = { timeout: 15_000 };

let home: MemoryApiServer;
let record: FakeRecordServer;
let client: HttpClient;
let caches: OpenCaches;
let part: Controller | undefined;
let leading: AbortController;

beforeEach(async () => {
  home = new MemoryApiServer({ serves: SERVES, isOpen: true, admission: { ...ADMITS_ALL, hasStatus: () => true } });
  record = await FakeRecordServer.start();
  client = new HttpClient({ url: record.url, tokenFile: record.tokenFile, userAgent: "test" });
  const body = { prefix: "10.6.0.128/25", status: "Active" };
  await client.request({ method: "POST", path: "/api/ipam/prefixes/", body, signal });
  home.put("/api/v1/namespaces", "kube-system", {});
  home.put(MAPS, RANGES_MAP, { metadata: { namespace: "kube-system" } });
  const data = { epoch: "e1", settled: "e1", cause: "first", definition: "d", waitsFor: "" };
  home.put(MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" }, data });
});
afterEach(async () => {
  leading.abort(new Error("The test ends"));
  await part?.close();
  await caches.close();
  await client.close();
  await record[Symbol.asyncDispose]();
});

async function start(recordServer: RecordServerAccess | undefined): Promise<void> {
  const { log } = recordLog();
  caches = openCaches({ api: home.client(), configNamespace: "kube-system", log, random: () => 0 });
  await caches.synced();
  leading = new AbortController();
  const nowMs = () => performance.now();
  part = startBlocks({
    ...{ api: home.client(), caches, log, random: () => 0, leading: leading.signal, recordServer },
    ...{ clock: { nowMs, now: () => new Date() }, poolWrites: new PoolWrites({ nodes: () => 1, nowMs }) },
  } as unknown as BlocksDeps);
}

function access(): RecordServerAccess {
  const spaces = new Map([["", "Global"]]);
  return { product: "nautobot", client, cluster: "east", spaces, namespace: "kube-system" };
}
const pool = (name: string, source: object, more: object = {}) =>
  home.put(`${BERTH}/ippools`, name, { spec: { subnet: "10.6.0.0/24", source, ...more } });
interface Status {
  readonly source: { readonly blocks: readonly object[] };
}
const statusOf = async (name: string): Promise<Status | undefined> =>
  (await home.client().call({ method: "GET", path: `${BERTH}/ippools/${name}` })).status as Status | undefined;

it("a pool gets a block of a part of its subnet, and the server says whose it is", async () => {
  pool("lan", { prefix: "10.6.0.128/25", blockSize: 28 });
  await start(access());
  const source = { epoch: "e1", blocks: [{ block: "10.6.0.128/28", state: "Resting" }] };
  await expect.poll(() => statusOf("lan"), SOON).toMatchObject({ source });
  expect(record.content.prefixes[1]?.description).toMatch(/^Pods of east\/lan \[berth /);
  expect(part?.problems).toEqual([]);
});

it.for([
  ["without a server", false, {}, "cannot be asked", "no IPAM of record (--records-server)", "Failed"],
  ["in a space without a place", true, { addressSpace: "b" }, "cannot be asked", 'address space "b" has no', "Failed"],
  ["of a prefix that is not there", true, { source: ABSENT }, "has no such prefix", "has no prefix", "NoRange"],
] as const)("a pool %s says so", async ([, isThere, more, problem, cause, reason]) => {
  pool("lan", { prefix: "10.6.0.128/25", blockSize: 28 }, more);
  await start(isThere ? access() : undefined);
  await expect.poll(() => part?.problems, SOON).toEqual([expect.stringContaining(cause)]);
  const [text] = part?.problems ?? [];
  expect(text).toMatch(/^prefix 10\.6\.0\.[0-9/]+: the IPAM of record /);
  expect(text).toContain(` ${problem}, pods get what is leased already: `);
  const told = expect.stringContaining(reason === "Failed" ? cause : problem);
  expect((await statusOf("lan"))?.source).toMatchObject({ reason, problem: told, blocks: [] });
});

it("a second pool of the same prefix has blocks of the same size", async () => {
  pool("a", { prefix: "10.6.0.128/25", blockSize: 28 });
  pool("b", { prefix: "10.6.0.128/25", blockSize: 29 });
  await start(access());
  const problem = expect.stringContaining("another pool takes blocks of another size");
  await expect.poll(() => part?.problems, SOON).toEqual([problem]);
  expect((await statusOf("b"))?.source.blocks).toEqual([]);
});

it("memory of a prefix is not taken for a range of a hub", async () => {
  pool("lan", { prefix: "10.6.0.128/25", blockSize: 28 });
  await start(access());
  await expect.poll(() => record.content.prefixes.length, SOON).toBe(2);
  const map = await home.client().call({ method: "GET", path: `${MAPS}/${RANGES_MAP}` });
  expect(Object.keys(map.data ?? {})).toEqual(["prefix_10.6.0.128-25_"]);
  expect(await new OwnRanges(home.client(), "kube-system").held(signal)).toEqual([]);
});

it("a server that does not answer about one prefix keeps no other from blocks", async () => {
  const body = { prefix: "10.7.0.0/25", status: "Active" };
  await client.request({ method: "POST", path: "/api/ipam/prefixes/", body, signal });
  let asked = 0;
  record.before = () => (asked++ === 0 ? new Promise(() => {}) : undefined);
  pool("lan", { prefix: "10.6.0.128/25", blockSize: 28 });
  pool("other", { prefix: "10.7.0.0/25", blockSize: 28 }, { subnet: "10.7.0.0/24" });
  await start(access());
  const blocks = async () =>
    [await statusOf("lan"), await statusOf("other")].flatMap((each) => each?.source.blocks ?? []);
  await expect.poll(blocks, SOON).toHaveLength(1);
});

it("memories of two sources are written beside each other, and those of one by one process", async () => {
  const own = new OwnRanges(home.client(), "kube-system");
  const [lan, other] = [await own.read("lan", signal), await own.read("other", signal)];
  const write = (range: string, id: string, known: typeof lan) =>
    own.write(range, { ...known, own: { ...known.own, past: [id] } }, signal);
  await write("other", "2", other);
  await write("lan", "1", lan);
  await expect(write("lan", "3", lan)).rejects.toMatchObject({ status: 409 });
  expect([(await own.read("lan", signal)).own.past, (await own.read("other", signal)).own.past]).toEqual([
    ["1"],
    ["2"],
  ]);
});

it("a block whose mark people have taken away is given of no more, and is named", async () => {
  pool("lan", { prefix: "10.6.0.128/25", blockSize: 28 });
  await start(access());
  await expect.poll(() => record.content.prefixes.length, SOON).toBe(2);
  await part?.close();
  const [all, made] = record.content.prefixes;
  record.content = { ...record.content, prefixes: [all ?? { id: 0 }, { ...made, id: 9, description: "printers" }] };
  await start(access());
  await expect.poll(() => part?.problems, SOON).toEqual([expect.stringMatching(/bear this one's mark no more: 10\.6/)]);
  expect(record.content.prefixes[1]).toMatchObject({ id: 9, description: "printers" });
});
