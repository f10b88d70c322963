/** Addresses of pods on a fake of Nautobot or NetBox: the writes and their times, and the effects of a bad server. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../../../test/lab/waiting.ts";
import type { RecordsSettings } from "../../../controllers/records-controller.ts";
import { AddressApi } from "../../fakes/address-api.ts";
import { openAddresses } from "../../world/address-suite.ts";
import { CLUSTER_UID, RecordingCluster } from "../../world/recording-cluster.ts";

const ADDRESSES = "/api/ipam/ip-addresses/";

let api: AddressApi;
let cluster: RecordingCluster;
let ends: (() => Promise<void>)[];

beforeEach(async () => {
  api = await AddressApi.start();
  cluster = new RecordingCluster();
  ends = [];
});
afterEach(async () => {
  await cluster[Symbol.asyncDispose]();
  for (const end of ends) await end();
  await api[Symbol.asyncDispose]();
});

const start = (settings: Partial<RecordsSettings> = {}, spaces?: string[]) =>
  cluster.start({
    open: (uid) => {
      const server = openAddresses(api, { cluster: uid, ...(spaces && { spaces }) });
      ends.push(() => server.end());
      return server;
    },
    spaces: new Map([["", "Global"]]),
    ...settings,
  });

/** In place of Nautobot. */
async function useNetbox(): Promise<void> {
  await api[Symbol.asyncDispose]();
  api = await AddressApi.start("netbox");
}

const shown = () => [...api.entries.values()].map(({ ip, dnsName }) => `${ip} ${dnsName}`).sort();

const untilShown = (wanted: readonly string[]) =>
  until(
    () => `${JSON.stringify(wanted)}, found ${JSON.stringify([shown(), cluster.problems])}`,
    () => JSON.stringify(shown()) === JSON.stringify(wanted),
    10_000,
  );

const untilProblem = (wanted: RegExp) =>
  until(
    () => `problem ${wanted}, found ${JSON.stringify(cluster.problems)}`,
    () => cluster.problems.some((problem) => wanted.test(problem)),
    10_000,
  );

/** An entry that others have written. */
const foreign = (address: string) =>
  api.call("POST", ADDRESSES, { address, namespace: "Global", status: "Active", description: "printer" });

it("a pod's address gets an entry with its names and the tag; a new pod's name replaces it, and its end removes it", async () => {
  cluster.give("10.6.0.7", "web-0");
  cluster.give("fd00:6::7", "web-0");
  await start({ domain: "pods.east.example.com" });
  await untilShown(["10.6.0.7 web-0.shop.pods.east.example.com", "fd00:6::7 web-0.shop.pods.east.example.com"]);
  const [entry] = api.entries.values();
  expect(entry).toMatchObject({ length: 16, tags: ["berth"], status: { name: "Active" } });
  expect(entry?.description).toBe(`Pod shop/web-0 eth0, cluster east [berth ${CLUSTER_UID}]`);
  cluster.give("10.6.0.7", "web-1");
  const both = ["10.6.0.7 web-1.shop.pods.east.example.com", "fd00:6::7 web-0.shop.pods.east.example.com"];
  await untilShown(both);
  cluster.setEpoch("");
  cluster.take("10.6.0.7");
  await until("in sync", () => cluster.measured?.entries.pending === 0 && cluster.measured.entries.in_sync === 1);
  await untilShown(both);
  cluster.setEpoch("e1");
  await untilShown(["fd00:6::7 web-0.shop.pods.east.example.com"]);
  await until("in sync", () => cluster.measured?.entries.pending === 0 && cluster.measured.entries.in_sync === 1);
  expect(Object.fromEntries(cluster.measured?.changes ?? [])).toEqual({ create: 2, update: 1, delete: 1 });
  expect(cluster.problems).toEqual([]);
});

it("an entry of others at a pod's address is a finding with an event, is left alone, and gives way when it is gone", async () => {
  await foreign("10.6.0.7/16");
  cluster.give("10.6.0.7", "web-0");
  cluster.give("10.6.0.8", "web-1");
  await start({ checkMs: 100 });
  await untilShown(["10.6.0.7 ", "10.6.0.8 web-1.shop"]);
  expect(cluster.problems).toEqual([
    "Address 10.6.0.7 is not recorded: the server has an entry 10.6.0.7/16 of others (printer)",
  ]);
  await until("the other one is in sync", () => cluster.measured?.entries.in_sync === 1);
  expect(cluster.measured).toMatchObject({ entries: { foreign: 1, refused: 0 } });
  expect(cluster.events[0]).toMatchObject({ reason: "AddressNotRecorded", regarding: { name: "10.6.0.7" } });
  for (const [id, { description }] of api.entries) if (description === "printer") api.entries.delete(id);
  await untilShown(["10.6.0.7 web-0.shop", "10.6.0.8 web-1.shop"]);
  await until("no finding", () => cluster.problems.length === 0 && cluster.measured?.entries.foreign === 0);
});

it("changes that others make to an entry are put back and counted, and entries that they delete are created again", async () => {
  for (const at of [7, 8, 9]) cluster.give(`10.6.0.${at}`, `web-${at}`);
  await start({ checkMs: 100 });
  const all = ["10.6.0.7 web-7.shop", "10.6.0.8 web-8.shop", "10.6.0.9 web-9.shop"];
  await untilShown(all);
  const [first, second] = api.entries.values();
  api.entries.delete(first?.id ?? "");
  if (second !== undefined) second.dnsName = "printer";
  await until("the drift is counted", () => cluster.measured?.drift === 2);
  await untilShown(all);
});

it.each([
  ["errors", { status: 500, text: "<html>oops</html>" }, /was answered with 500: <html>/],
  ["a page of a proxy", { status: 200, text: "<html>log in</html>" }, /a text that is no JSON/],
  ["another JSON", { status: 200, json: { hello: "world" } }, /not what its documentation describes/],
  ["a wish to wait", { status: 429, json: {}, headers: { "retry-after": "0" } }, /was answered with 429/],
  ["a refused token", { status: 403, json: { detail: "Invalid token" } }, /403/],
  ["a list that is cut", { status: 200, json: { count: 3, results: [] } }, /has no tag|lists 0 of 3/],
] as const)(
  "after an answer with %s nothing changes, it is a problem, and all comes later",
  async (_, answer, problem) => {
    cluster.give("10.6.0.7", "web-0");
    await start({ checkMs: 50 });
    await untilShown(["10.6.0.7 web-0.shop"]);
    api.misbehave = () => answer;
    cluster.give("10.6.0.8", "web-1");
    await untilProblem(problem);
    expect(shown()).toEqual(["10.6.0.7 web-0.shop"]);
    api.misbehave = () => undefined;
    await untilShown(["10.6.0.7 web-0.shop", "10.6.0.8 web-1.shop"]);
    await until("no problem", () => cluster.problems.length === 0);
    expect(cluster.log.lines.join()).not.toContain("0123456789abcdef");
  },
);

it("an answer that is lost makes no second entry, on a server that takes two for one address", async () => {
  await useNetbox();
  let lost = 0;
  api.misbehave = (method) => (method === "POST" && lost++ < 2 ? "lost" : undefined);
  cluster.give("10.6.0.7", "web-0");
  cluster.give("10.6.0.8", "web-1");
  await start({ spaces: new Map([["", ""]]) });
  await until("in sync", () => cluster.measured?.entries.in_sync === 2);
  expect(shown()).toEqual(["10.6.0.7 web-0.shop", "10.6.0.8 web-1.shop"]);
  expect(lost).toBe(1);
});

it("two own entries of one address become one", async () => {
  await useNetbox();
  cluster.give("10.6.0.7", "web-0");
  await start({ spaces: new Map([["", ""]]), checkMs: 50 });
  await untilShown(["10.6.0.7 web-0.shop"]);
  const [entry] = api.entries.values();
  if (entry !== undefined) api.entries.set("900", { ...entry, id: "900" });
  await untilShown(["10.6.0.7 web-0.shop"]);
  expect([...api.entries.keys()]).toEqual([entry?.id]);
});

it("objects missing on the server are named, and refused entries keep no other one away", async () => {
  api.tags.delete("berth");
  cluster.give("10.6.0.7", "web-0");
  cluster.give("10.99.0.1", "web-1");
  await start({ checkMs: 50 });
  await untilProblem(/Nautobot has no tag "berth"; create it/);
  api.tags.set("berth", "1");
  await untilShown(["10.6.0.7 web-0.shop"]);
  await untilProblem(/^Address 10\.99\.0\.1 is not recorded: the server refuses it: namespace: No suitable parent/);
  expect(cluster.measured).toMatchObject({ entries: { refused: 1, foreign: 0 } });
  api.prefixes = [...api.prefixes, "10.99.0.0/16"];
  await untilShown(["10.6.0.7 web-0.shop", "10.99.0.1 web-1.shop"]);
});

it("an entry that the server does not delete keeps no other one away, and is deleted when it does", async () => {
  for (const at of [7, 8]) cluster.give(`10.6.0.${at}`, `web-${at}`);
  await start({ checkMs: 100 });
  await untilShown(["10.6.0.7 web-7.shop", "10.6.0.8 web-8.shop"]);
  for (const [id, { ip }] of api.entries) if (ip === "10.6.0.7") api.needed.add(id);
  for (const at of [7, 8]) cluster.take(`10.6.0.${at}`);
  cluster.give("10.6.0.9", "web-9");
  await untilShown(["10.6.0.7 web-7.shop", "10.6.0.9 web-9.shop"]);
  await untilProblem(/^Address 10\.6\.0\.7 has an entry too many: the server does not delete it: detail: Unable to/);
  api.needed.clear();
  await untilShown(["10.6.0.9 web-9.shop"]);
  await until("no problem", () => cluster.problems.length === 0);
});

it("each address space has its namespace or VRF, and a space without one is a problem", async () => {
  await useNetbox();
  cluster.give("10.6.0.7", "web-0");
  cluster.give("10.6.0.7", "web-1", { addressSpace: "blue" });
  cluster.give("10.6.0.7", "web-2", { addressSpace: "red" });
  await start({ spaces: new Map(["", "blue"].map((space) => [space, space])) }, ["", "blue"]);
  await untilShown(["10.6.0.7 web-0.shop", "10.6.0.7 web-1.shop"]);
  expect([...api.entries.values()].map(({ space }) => space).sort()).toEqual(["", "blue"]);
  expect(cluster.problems).toEqual([
    '1 addresses of address space "red" are not recorded: want --records-space red=NAME',
  ]);
});

it("much is written by few calls, in smaller ones where the server gives up, and entries of others are not listed", async () => {
  for (let at = 0; at < 1_200; at++) cluster.give(`10.6.${at >> 8}.${at & 255}`, `web-${at}`);
  api.misbehave = (_method, _path, entries) => (entries > 60 ? { status: 504, text: "" } : undefined);
  await start();
  await until("in sync", () => cluster.measured?.entries.in_sync === 1_200);
  expect(api.entries.size).toBeLessThanOrEqual(1_200);
  expect(api.requests.length).toBeLessThan(120);
  const lists = api.requests.filter((request) => request.startsWith(`GET ${ADDRESSES}`));
  for (const list of lists) expect(list).toMatch(/description__ic=|address=/);
});
