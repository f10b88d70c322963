import { beforeEach, describe, expect, it } from "vitest";
import { CoordinatedAttachments } from "../../../../host/agent/coordinator/attachments.ts";
import { Operations } from "../../../../host/agent/operate/operations.ts";
import { createStatusApi, MAX_PAGE } from "../../../../host/agent/operate/status-api.ts";
import type { StatusApi } from "../../../../host/agent/server/answer.ts";
import { STEADY_MS } from "../../../../host/findings/node/find-damage.ts";
import { EMPTY_NAMESPACE } from "../../../../host/plan/state.ts";
import { explanationRecord } from "../../../../host/records/explanation-record.ts";
import { NO_AUDIT } from "../../../world/no-audit.ts";
import { openNode, type TestNode } from "../../../world/node.ts";
import { claim, pool, proposal, snapshotOf } from "../../../world/subjects.ts";
import { ip, mac } from "../../../world/values.ts";

const POOLS = [
  pool("blue", "10.0.0.0/16", { default: true }),
  pool("lab", "10.0.0.0/24", { addressSpace: "lab", disable: true }),
  pool("six", "fd00::/64"),
];

/** As in embedded mode: no pods are known. */
function operationsOf(node: TestNode): Operations {
  return new Operations({
    backend: { ipam: node.ipam() },
    audit: { ...NO_AUDIT, record: ({ audit, rule }) => void recorded.push(`${audit} ${rule}`) },
    nowMs: () => node.clock.nowMs(),
  });
}

const recorded: string[] = [];

/** Each network is named after its main plugin. */
const pluginsOf = (network: string) => [{ entry: { type: network }, place: "plugins[0]" }];

let node: TestNode;
let registry: TestNode["registry"];
let inspect: StatusApi;

beforeEach(async () => {
  node = await openNode({ snapshot: snapshotOf(...POOLS) });
  registry = node.registry;
  const ipam = node.ipam();
  inspect = createStatusApi({
    netnsDirectories: ["/nowhere"],
    operations: operationsOf(node),
    backend: {
      ...{
        mode: "embedded",
        ipam: { ...ipam, networks: { ...ipam.networks, pluginsOf } },
        live: undefined,
        stats: () => ({ calls: 3 }),
      },
      ...{ ready: true, problems: ["a hint"], health: { trouble: undefined } },
    },
    resources: { flush: () => {} },
    spool: { count: () => ({ waiting: 0, rejected: 0 }) },
    metrics: { render: async () => "berth_agent_ready 1\n" },
    history: { find: async () => ({ node: "n1", lines: [], missing: 0 }) },
    coordinator: {
      attachments: new CoordinatedAttachments(),
      nodeRepair: { problems: [], isCutOff: false },
      repair: async () => [],
      compare: async () => ({ operations: [] }),
      observeNode: () => ({ state: EMPTY_NAMESPACE, neighbours: [], closedChains: [] }),
    },
    version: "1.2.3",
    socketRestored: () => 2,
    routes: {},
  });
});

async function bind(first: string, count: number, place: { pool?: string; space?: string } = {}): Promise<void> {
  const proposals = Array.from({ length: count }, (_, index) => ({
    ...proposal(first, place),
    ip: { ...ip(first), value: ip(first).value + BigInt(index) },
  }));
  await registry.claim(claim(`${first}/${place.space}`, proposals, { containerId: first }));
  node.inventory.reread();
}

const get = async (url: string) => JSON.parse((await inspect("GET", url)).body) as unknown;
const post = async (url: string) => JSON.parse((await inspect("POST", url)).body) as unknown;

describe("the inspector", () => {
  it("health has readiness, version and spool", async () => {
    expect(await get("/v1/health")).toEqual({
      ...{ status: "ready", version: "1.2.3", mode: "embedded", node: "n1", problems: ["a hint"] },
      ...{ spool: { waiting: 0, rejected: 0 }, socketRestored: 2 },
    });
  });

  it("pools have counts as text and states, those that are gone too", async () => {
    await bind("10.0.0.7", 2);
    await bind("10.0.0.7", 1, { pool: "lab", space: "lab" });
    await bind("10.9.0.1", 1, { pool: "old", space: "" });
    await registry.release({ containerId: "10.9.0.1", ifName: "eth0" });
    const flags = { default: false, disabled: false, addressSpace: "" };
    const free64 = { total: "18446744073709551616", used: "0", free: "18446744073709551616" };
    expect(await get("/v1/pools")).toEqual([
      {
        ...{ ...flags, name: "blue", subnet: "10.0.0.0/16", default: true, states: { Bound: 2 } },
        ...{ total: "65534", used: "2", free: "65532" },
      },
      {
        ...{ ...flags, name: "lab", subnet: "10.0.0.0/24", addressSpace: "lab", disabled: true },
        ...{ total: "254", used: "1", free: "253", states: { Bound: 1 } },
      },
      { ...flags, name: "six", subnet: "fd00::/64", ...free64, states: {} },
      { name: "old", gone: true, states: { Cooling: 1 } },
    ]);
  });

  it("allocations come in pages; following the cursor shows each once", async () => {
    await bind("10.0.0.1", MAX_PAGE - 1);
    await bind("10.0.0.1", 2, { pool: "lab", space: "lab" });
    await bind("fd00::1", 1, { pool: "six" });
    const seen: string[] = [];
    let pages = 0;
    for (let after = ""; ; pages++) {
      const page = (await get(`/v1/allocations${after}`)) as Record<"address" | "cursor" | "addressSpace", string>[];
      const last = page.at(-1);
      if (last === undefined) break;
      seen.push(...page.map(({ address, addressSpace }) => `${address} ${addressSpace}`));
      after = `?after=${encodeURIComponent(last.cursor)}`;
    }
    expect([pages, seen.length, new Set(seen).size]).toEqual([2, MAX_PAGE + 2, MAX_PAGE + 2]);
    expect(seen.slice(-3)).toEqual(["fd00::1 ", "10.0.0.1 lab", "10.0.0.2 lab"]);
  });

  it("an allocation has the MAC address of its NIC if the registry knows it", async () => {
    await bind("10.0.0.1", 1);
    const known = { containerId: "c2", mac: mac("0a:00:00:00:00:02") };
    await registry.claim(claim("seen", [proposal("10.0.0.2")], known));
    const records = (await get("/v1/allocations")) as { mac?: string }[];
    expect(records.map((record) => record.mac)).toEqual([undefined, "0a:00:00:00:00:02"]);
  });

  it("address has its record and the pools that have it in their subnet", async () => {
    await bind("10.0.0.7", 1, { pool: "lab", space: "lab" });
    expect(await get("/v1/address?address=10.0.0.7")).toMatchObject({
      address: "10.0.0.7",
      places: [
        { pool: "blue", addressSpace: "", subnet: "10.0.0.0/16" },
        { pool: "lab", addressSpace: "lab", subnet: "10.0.0.0/24" },
      ],
      allocations: [{ address: "10.0.0.7", addressSpace: "lab", pool: "lab", state: "Bound" }],
    });
    expect(await get("/v1/address?address=10.0.0.0")).toMatchObject({
      places: [{ excluded: "it is the network address of the subnet" }, { excluded: expect.anything() }],
    });
    expect(await get("/v1/address?address=192.0.2.1")).toEqual({ address: "192.0.2.1", places: [], allocations: [] });
  });

  it("check does not miss the address of a device that a driver of the pod has", async () => {
    // In a file that is no namespace, no link has it.
    await registry.claim(claim("dpdk", [proposal("10.0.0.9")], { netns: import.meta.filename, network: "sriov" }));
    node.clock.advance(STEADY_MS);
    expect(await get("/v1/check")).toMatchObject({ records: 1, findings: [] });
  });

  it.each<[method: string, url: string, status: number, text: string]>([
    ["GET", "/v1/allocations?after=10.0.0", 400, 'after: found "10.0.0", want the "cursor" of an allocation'],
    ["GET", "/v1/allocations?after=", 400, "after: found"],
    ["GET", "/v1/address", 400, 'address: found "", want an address'],
    ["POST", "/v1/pools", 404, 'POST "/v1/pools" is not served; served are GET /v1/health'],
    ["GET", "/v1/nothing", 404, 'GET "/v1/nothing" is not served'],
    ["GET", "http://[", 404, "is not served"],
    ["GET", "/constructor", 404, "is not served"],
    ["GET", "__proto__", 404, "is not served"],
  ])("%s %s is answered with an error", async (method, url, status, text) => {
    const answer = await inspect(method, url);
    expect(answer.status).toBe(status);
    expect((JSON.parse(answer.body) as { error: string }).error).toContain(text);
  });

  it("explains a pod that is not known, by its defaults", async () => {
    const explained = await get("/v1/explain?pod=web-0");
    expect(explained).toMatchObject({
      succeeds: true,
      nics: [{ outcome: "allocated", addresses: [{ pool: "blue" }] }],
    });
    // The last one has the time.
    expect(explanationRecord.parse(explained).lines.slice(0, -1)).toEqual([
      'an ADD of eth0 now would get 10.0.201.89 of pool "blue", which is free, by pools with spec.default: true',
      "eth0: by pools with spec.default: true",
      'eth0 IPv4 pool "blue": fits, 65534 of 65534 addresses are free',
      "warning: pools with spec.default: true names no IPv6 pool: the NIC gets no IPv6 address",
      "note: pod default/web-0 has no manifest here: only its runtime knows its annotations",
      "note: no definition of the network of eth0 is known here: its default pools are not considered",
    ]);
  });
});

describe("operations of an administrator", () => {
  const step = (refusal: unknown, more: object = {}) => ({ steps: [{ refusal, ...more }], isDone: false });

  it("release by a report: only the record of the report, of this node, and a record that is gone is no failure", async () => {
    await bind("10.0.0.7", 1, { pool: "blue", space: "" });
    const reported = "/v1/release?address=10.0.0.7&force&node=n1&dryRun&owner=10.0.0.7/";
    const other = "another pod or container has it since the report";
    for (const stale of [`${reported}x&container=10.0.0.7`, `${reported}&container=c9`])
      expect(await post(stale)).toMatchObject(step(other, { isForceable: false, isOver: true }));
    expect(await post(`${reported}&container=10.0.0.7`)).not.toHaveProperty("steps.0.refusal");
    expect(await post("/v1/release?address=10.0.0.9&owner=u1&container=c1")).toMatchObject(
      step("this node has no record of it", { isOver: true }),
    );
    expect(await post(`${reported.replace("n1", "n2")}&container=10.0.0.7`)).toEqual({
      error: 'The report is of node "n2", this is n1',
    });
    expect(await post(`${reported}&container=10.0.0.7&cluster=c1`)).toEqual({
      error: "The report is of a cluster, and this node is in none",
    });
  });

  it("release the one address that is named, although its NIC has another, and none that was attached again", async () => {
    const both = [proposal("10.0.0.7"), proposal("fd00::7", { pool: "six" })];
    await registry.claim(claim("dual", both, { containerId: "c1" }));
    expect(await post("/v1/release?address=10.0.0.7&force")).toMatchObject({ steps: [{}], isDone: true });
    expect(await node.states()).toEqual({ Cooling: ["10.0.0.7"], Bound: ["fd00::7"] });
    node.around = async (method, _, run) => {
      if (method === "collect") await registry.claim(claim("dual", [], { containerId: "c2", skipOwnCooling: true }));
      return run();
    };
    expect(await post("/v1/release?address=fd00::7&force")).toMatchObject(step(expect.stringContaining("changed")));
  });

  it("quarantine several addresses at once, and end none that has changed", async () => {
    const all = ["10.0.0.20", "10.0.0.21", "fd00::20"];
    await Promise.all(all.map((each) => post(`/v1/quarantine?address=${each}`)));
    const { version } = (await registry.findAddress("", ip("10.0.0.20"))) ?? expect.unreachable();
    node.around = async (method, _, run) => {
      if (method === "endQuarantine") await registry.claim(claim("u1", [proposal("10.0.0.20", { replaces: version })]));
      return run();
    };
    const ended = await post("/v1/quarantine?address=10.0.0.20&remove");
    expect(ended).toMatchObject(step(expect.stringContaining("changed")));
  });

  it("release records what it released before the registry failed", async () => {
    await registry.claim(claim("u1", [proposal("10.0.0.7"), proposal("fd00::7", { pool: "six" })]));
    recorded.splice(0);
    let calls = 0;
    node.around = async (method, _, run) => {
      if (method === "collect" && ++calls === 2) throw new Error("The disk is full");
      return run();
    };
    expect(await post("/v1/release?pod=shop/u1&force")).toMatchObject({ msg: "Internal error: The disk is full" });
    expect(await node.states()).toEqual({ Cooling: ["10.0.0.7"], Bound: ["fd00::7"] });
    expect(recorded).toEqual(["RELEASE ordered with berthctl --force"]);
  });

  it.each([
    ["release?address=10.0.0.9&force", step("this node has no record of it")],
    ["release?pod=shop/none&force", { steps: [], isDone: true }],
    ["release?address=blue", { error: expect.stringContaining("want ADDRESS") }],
    ["quarantine?address=192.0.2.1&force", step("no pool allocates it")],
    ["quarantine?address=10.0.0.9&seconds=x", { error: expect.stringContaining("seconds") }],
    ["quarantine?address=10.0.0.8&seconds=20&dryRun", { steps: [{ what: expect.stringMatching(/after 20s$/) }] }],
    ["quarantine?address=10.0.0.7", { steps: [{ isForceable: true }], isDone: false }],
    ["quarantine?address=10.0.0.7&force", { isDone: true }],
  ])("%s is answered with what it is", async (url, wanted) => {
    await bind("10.0.0.7", 1);
    expect(await post(`/v1/${url}`)).toMatchObject(wanted);
  });
});
