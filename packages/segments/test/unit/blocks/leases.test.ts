/** Leases of blocks of a prefix, over HTTP with the fake of Nautobot, whose answers may be lost. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatRange } from "../../../../../host/net/range.ts";
import { Leases } from "../../../blocks/leases.ts";
import { HttpClient } from "../../../record-server/http-client.ts";
import { PrefixServer } from "../../../record-server/prefix-server.ts";
import { FakeRecordServer } from "../../fakes/record-server.ts";
import { Memory, prefix } from "../../world/prefix-suite.ts";

const EAST = "11111111-1111-4111-8111-111111111111";
const WEST = "22222222-2222-4222-8222-222222222222";
const PARENT = "10.6.0.0/26";
const BLOCKS = [0, 16, 32, 48].map((last) => `10.6.0.${last}/28`) as [string, string, string, string];
const { signal } = new AbortController();

let server: FakeRecordServer;
let client: HttpClient;
let nowMs: number;

beforeEach(async () => {
  server = await FakeRecordServer.start();
  const { url, tokenFile } = server;
  client = new HttpClient({ url, tokenFile, userAgent: "test" });
  nowMs = 0;
  await post("prefixes", { prefix: PARENT });
});
afterEach(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

const post = (collection: string, body: object) =>
  client.request({ method: "POST", path: `/api/ipam/${collection}/`, body: { status: "Active", ...body }, signal });

/** One controller of a cluster. */
function open(cluster = EAST, memory = new Memory()) {
  const prefixes = new PrefixServer({
    ...{ client, product: "nautobot", space: "Global" },
    source: { addressSpace: "", prefix: prefix(PARENT), blockSize: 28 },
  });
  const options = { server: prefixes, own: memory.port, cluster, name: cluster === EAST ? "east" : "west" };
  const source = new Leases({ ...options, key: "x", newId: randomUUID, nowMs: () => nowMs });
  const update = (count: number, giveBack: readonly string[] = []) =>
    source.update({ lease: { lan: count }, giveBack }, signal);
  return { memory, update };
}

const children = () => server.content.prefixes.filter((each) => each.prefix !== PARENT);
const texts = () => children().map((each) => String(each.prefix));

/** The next request of the method has no answer; the server carries it out if it is `late`. */
function lose(method: string, isCarriedOut: boolean): void {
  server[isCarriedOut ? "after" : "before"] = (each) => {
    if (each !== method) return;
    server.before = () => {};
    server.after = () => {};
    throw new Error("lost");
  };
}

describe.for([true, false])("a lost answer, carried out: %s", (isCarriedOut) => {
  it("of a request is looked for before it is asked again", async () => {
    const east = open();
    lose("POST", isCarriedOut);
    await expect(east.update(1)).rejects.toThrow("failed");
    expect((await east.update(1)).blocks).toEqual({ [BLOCKS[0]]: "lan" });
    expect(texts()).toEqual([BLOCKS[0]]);
    expect(server.requests.filter((each) => each.includes("available"))).toHaveLength(isCarriedOut ? 1 : 2);
  });

  it("of a return is found out, also by the next process", async () => {
    const east = open();
    await east.update(1);
    lose("DELETE", isCarriedOut);
    await expect(east.update(0, [BLOCKS[0]])).rejects.toThrow("failed");
    expect((await open(EAST, east.memory).update(0)).blocks).toEqual({});
    expect(texts()).toEqual([]);
  });
});

it("a late answer to a request that was carried out already, or was given back, is deleted", async () => {
  const east = open();
  await east.update(1);
  const description = children()[0]?.description;
  await post("prefixes", { prefix: BLOCKS[2], description });
  expect((await east.update(1)).blocks).toEqual({ [BLOCKS[0]]: "lan" });
  expect(texts()).toEqual([BLOCKS[0]]);
  await east.update(0, [BLOCKS[0]]);
  await post("prefixes", { prefix: BLOCKS[1], description });
  expect(await east.update(0)).toMatchObject({ blocks: {}, bar: undefined });
  expect(texts()).toEqual([]);
});

it("addresses that others have written down in a block, and prefixes of people, are excluded; its own are not", async () => {
  const east = open();
  const excluded = async () => (await east.update(1)).excluded.map(formatRange);
  await post("ip-addresses", { address: "10.6.0.5/26", description: "router" });
  await post("ip-addresses", { address: "10.6.0.6/26", description: `Pod shop/a [berth ${EAST}]` });
  await post("ip-addresses", { address: "10.6.0.20/26" });
  expect(await excluded()).toEqual(["10.6.0.5"]);
  await post("prefixes", { prefix: "10.6.0.8/31", description: "point to point" });
  expect(await excluded()).toEqual(["10.6.0.8-10.6.0.9", "10.6.0.5"]);
  await post("ip-addresses", { address: "10.6.0.7/26", description: `Pod shop/a [berth ${WEST}]` });
  expect(await excluded()).toHaveLength(2);
  nowMs += 600_000;
  expect(await excluded()).toEqual(["10.6.0.8-10.6.0.9", "10.6.0.5", "10.6.0.7"]);
});

it("a cluster that meets unknown blocks of its own neither leases nor returns, until it is told to go on", async () => {
  const east = open();
  await east.update(1);
  const past = new Memory();
  past.own = east.memory.own;
  await east.update(2);
  const copy = open(EAST, past);
  const view = await copy.update(3, [BLOCKS[0]]);
  expect(view).toMatchObject({ bar: { kind: "contested" }, blocks: { [BLOCKS[0]]: "lan" } });
  expect(texts()).toEqual(BLOCKS.slice(0, 2));
  past.own = { ...past.own, isRejoining: true };
  expect(Object.keys((await copy.update(3)).blocks)).toEqual(BLOCKS.slice(0, 3));
});

it("a refusal that does not end has the server's words", async () => {
  const east = open();
  await east.update(1);
  server.content = { ...server.content, prefixes: server.content.prefixes.filter((each) => each.prefix === PARENT) };
  server.refusal = { status: 400, json: { status: ["Select a valid choice."] } };
  await expect(east.update(1)).rejects.toThrow('was answered with 400: {"status":["Select a valid choice."]}');
  expect(server.requests.filter((each) => each === "POST /api/ipam/prefixes/")).toHaveLength(3);
  server.refusal = undefined;
  expect((await east.update(1)).blocks).toEqual({ [BLOCKS[0]]: "lan" });
});

it("a server that changes descriptions is left as it was, and asked no more in this pass", async () => {
  server.describes = () => "ALLOCATED";
  await expect(open().update(2)).rejects.toThrow("The server changes the description of 10.6.0.0/28");
  expect(texts()).toEqual([]);
});
