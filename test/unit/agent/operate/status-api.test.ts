import { describe, expect, it } from "vitest";
import { CoordinatedAttachments } from "../../../../host/agent/coordinator/attachments.ts";
import { Operations } from "../../../../host/agent/operate/operations.ts";
import { createStatusApi, MAX_PAGE } from "../../../../host/agent/operate/status-api.ts";
import type { StatusApi } from "../../../../host/agent/server/answer.ts";
import { EMPTY_NAMESPACE } from "../../../../host/plan/state.ts";
import { explanationRecord } from "../../../../host/records/explanation-record.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { NO_AUDIT } from "../../../world/no-audit.ts";
import { openNode, type TestNode } from "../../../world/node.ts";
import { claim, pool, proposal, snapshotOf } from "../../../world/subjects.ts";
import { ip, mac } from "../../../world/values.ts";

interface World extends Pick<TestNode, "registry"> {
  readonly inspect: StatusApi;
  readonly get: (url: string) => Promise<unknown>;
  pass(milliseconds: number): void;
  bind(first: string, count: number, options?: { pool?: string; space?: string }): Promise<void>;
}

const POOLS = [
  pool("blue", "10.0.0.0/16", { default: true }),
  pool("lab", "10.0.0.0/24", { addressSpace: "lab", disable: true }),
  pool("six", "fd00::/64"),
];

/** As in embedded mode: no pods are known, and a NIC is released as a whole. */
function operationsOf(node: TestNode): Operations {
  const releaseRow = ({ containerId, ifName }: Allocation) => node.registry.release({ containerId, ifName });
  return new Operations({
    backend: { ipam: node.ipam(), releaseRow },
    audit: { ...NO_AUDIT, record: ({ audit, rule }) => void recorded.push(`${audit} ${rule}`) },
    nowMs: () => node.clock.nowMs(),
  });
}

const recorded: string[] = [];

async function withStatusApi(test: (world: World) => Promise<void>): Promise<void> {
  const node = await openNode({ snapshot: snapshotOf(...POOLS) });
  const { registry } = node;
  const inspect = createStatusApi({
    netnsDirectories: ["/nowhere"],
    operations: operationsOf(node),
    backend: {
      ...{ mode: "embedded", ipam: node.ipam(), live: undefined, stats: () => ({ calls: 3 }) },
      readiness: () => ({ ready: true, problems: ["a hint"] }),
    },
    spool: { count: () => ({ waiting: 0, rejected: 0 }) },
    metrics: { render: async () => "berth_agent_ready 1\n" },
    history: { find: async () => ({ node: "n1", lines: [], missing: 0 }) },
    coordinator: {
      attachments: new CoordinatedAttachments(),
      nodeRepair: { problems: [], isCutOff: false },
      repair: async () => [],
      compare: async () => ({ operations: [] }),
      observeNode: () => ({ state: EMPTY_NAMESPACE, neighbours: [] }),
    },
    version: "1.2.3",
    socketRestored: () => 2,
  });
  const bind: World["bind"] = async (first, count, place = {}) => {
    const proposals = Array.from({ length: count }, (_, index) => ({
      ...proposal(first, place),
      ip: { ...ip(first), value: ip(first).value + BigInt(index) },
    }));
    await registry.claim(claim(`${first}/${place.space}`, proposals, { containerId: first }));
    node.inventory.reread();
  };
  const get = async (url: string) => JSON.parse((await inspect("GET", url)).body) as unknown;
  await test({ pass: (milliseconds) => node.clock.jump(milliseconds), registry, inspect, get, bind });
}

it.each<[query: string, wanted: RegExp]>([
  ["", /subnet: found "?null"?, want a network/],
  ["subnet=10.0.0.0/16&range=10.0.1.0-10.0.2.0", /at most 256 addresses of the subnet/],
  ["subnet=10.0.0.0/16&range=10.1.0.1", /at most 256 addresses of the subnet/],
  ["subnet=10.0.0.0/16&range=all", /at most 256 addresses of the subnet/],
])("a probe of %j is refused", (query, wanted) =>
  withStatusApi(async ({ inspect }) => {
    const { status, body } = await inspect("POST", `/v1/probe?${query}`);
    expect([status, JSON.parse(body)]).toEqual([400, { error: expect.stringMatching(wanted) }]);
  }),
);

describe("the inspector", () => {
  it("stats has what the mode counts", () =>
    withStatusApi(async ({ get }) => expect(await get("/v1/stats")).toEqual({ calls: 3 })));

  it("health has readiness, version and spool", () =>
    withStatusApi(async ({ get }) =>
      expect(await get("/v1/health")).toEqual({
        ...{
          status: "ready",
          version: "1.2.3",
          mode: "embedded",
          node: "n1",
          problems: ["a hint"],
          spool: { waiting: 0, rejected: 0 },
          socketRestored: 2,
        },
      }),
    ));

  it("pools have counts as text and states, those that are gone too", () =>
    withStatusApi(async ({ get, bind, registry }) => {
      await bind("10.0.0.7", 2);
      await bind("10.0.0.7", 1, { pool: "lab", space: "lab" });
      await bind("10.9.0.1", 1, { pool: "old", space: "" });
      await registry.release({ containerId: "10.9.0.1", ifName: "eth0" });
      const flags = { default: false, disabled: false, addressSpace: "" };
      expect(await get("/v1/pools")).toEqual([
        {
          ...flags,
          name: "blue",
          subnet: "10.0.0.0/16",
          default: true,
          total: "65534",
          used: "2",
          free: "65532",
          states: { Bound: 2 },
        },
        {
          ...flags,
          name: "lab",
          subnet: "10.0.0.0/24",
          addressSpace: "lab",
          disabled: true,
          total: "254",
          used: "1",
          free: "253",
          states: { Bound: 1 },
        },
        {
          ...flags,
          name: "six",
          subnet: "fd00::/64",
          total: "18446744073709551616",
          used: "0",
          free: "18446744073709551616",
          states: {},
        },
        { name: "old", gone: true, states: { Cooling: 1 } },
      ]);
    }));

  it("allocations come in pages; following the cursor shows each once", () =>
    withStatusApi(async ({ get, bind }) => {
      await bind("10.0.0.1", MAX_PAGE - 1);
      await bind("10.0.0.1", 2, { pool: "lab", space: "lab" });
      await bind("fd00::1", 1, { pool: "six" });
      const seen: string[] = [];
      let pages = 0;
      for (let after = ""; ; pages++) {
        const page = (await get(`/v1/allocations${after}`)) as {
          address: string;
          cursor: string;
          addressSpace: string;
        }[];
        const last = page.at(-1);
        if (last === undefined) break;
        seen.push(...page.map(({ address, addressSpace }) => `${address} ${addressSpace}`));
        after = `?after=${encodeURIComponent(last.cursor)}`;
      }
      expect([pages, seen.length, new Set(seen).size]).toEqual([2, MAX_PAGE + 2, MAX_PAGE + 2]);
      expect(seen.slice(-3)).toEqual(["fd00::1 ", "10.0.0.1 lab", "10.0.0.2 lab"]);
    }));

  it("an allocation has the MAC address of its NIC if the registry knows it", () =>
    withStatusApi(async ({ get, bind, registry }) => {
      await bind("10.0.0.1", 1);
      const known = { containerId: "c2", mac: mac("0a:00:00:00:00:02") };
      await registry.claim(claim("seen", [proposal("10.0.0.2")], known));
      const records = (await get("/v1/allocations")) as { mac?: string }[];
      expect(records.map((record) => record.mac)).toEqual([undefined, "0a:00:00:00:00:02"]);
    }));

  it("address has its record and the pools that have it in their subnet", () =>
    withStatusApi(async ({ get, bind }) => {
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
    }));

  const refused: [method: string, url: string, status: number, text: string][] = [
    ["GET", "/v1/allocations?after=10.0.0", 400, 'after: found "10.0.0", want the "cursor" of an allocation'],
    ["GET", "/v1/allocations?after=", 400, "after: found"],
    ["GET", "/v1/address", 400, 'address: found "", want an address'],
    ["POST", "/v1/pools", 404, 'POST "/v1/pools" is not served; served are GET /v1/health'],
    ["GET", "/v1/nothing", 404, 'GET "/v1/nothing" is not served'],
    ["GET", "//", 404, 'GET "//" is not served'],
    ["GET", "http://[", 404, "is not served"],
    ["GET", "/constructor", 404, "is not served"],
    ["GET", "__proto__", 404, "is not served"],
  ];
  it.each(refused)("%s %s is answered with an error", (method, url, status, text) =>
    withStatusApi(async ({ inspect }) => {
      const answer = await inspect(method, url);
      expect(answer.status).toBe(status);
      expect((JSON.parse(answer.body) as { error: string }).error).toContain(text);
    }),
  );

  it("explains a pool, and says that there is none", () =>
    withStatusApi(async ({ get, bind }) => {
      await bind("10.0.0.7", 2);
      const { lines } = (await get("/v1/explain?pool=blue")) as { lines: string[] };
      expect(lines).toEqual([
        'pool "blue": created by hand; its size is fixed',
        "has: 65536 addresses of IPv4 network 10.0.0.0/16: 10.0.0.0-10.0.255.255",
        "in use: 2; 65532 of 65534 are free, as far as this node knows",
      ]);
      expect(await get("/v1/explain?pool=old")).toMatchObject({ code: 100, msg: 'There is no IPPool "old"' });
    }));

  it("explains a pod that is not known, by its defaults", () =>
    withStatusApi(async ({ get }) => {
      const explained = await get("/v1/explain?pod=web-0");
      expect(explained).toMatchObject({
        succeeds: true,
        nics: [{ outcome: "allocated", addresses: [{ pool: "blue" }] }],
      });
      expect(explanationRecord.parse(explained).lines).toEqual([
        'an ADD of eth0 now would get 10.0.201.89 of pool "blue", which is free, by pools with spec.default: true',
        "eth0: by pools with spec.default: true",
        'eth0 IPv4 pool "blue": fits, 65534 of 65534 addresses are free',
        "warning: pools with spec.default: true names no IPv6 pool: the NIC gets no IPv6 address",
        "note: pod default/web-0 has no manifest here: what its runtime says of its annotations is unknown",
        "note: no definition of the network of eth0 is known here: its default pools are not considered",
      ]);
    }));

  it("a registry that is gone is a CNI error", () =>
    withStatusApi(async ({ inspect, registry }) => {
      await registry.close();
      const answer = await inspect("GET", "/v1/allocations");
      expect(answer.status).toBe(422);
      expect(JSON.parse(answer.body)).toMatchObject({ code: 107 });
    }));
});

describe("operations of an administrator", () => {
  const post = async (inspect: StatusApi, url: string) => JSON.parse((await inspect("POST", url)).body) as unknown;
  const stateOf = async (get: (url: string) => Promise<unknown>, address: string) =>
    ((await get(`/v1/address?address=${address}`)) as { allocations: { state: string }[] }).allocations.map(
      ({ state }) => state,
    );

  it("release: a NIC that may still have the address is refused, and forced", () =>
    withStatusApi(async ({ inspect, get, bind }) => {
      await bind("10.0.0.7", 1);
      const why = "it is unknown whether the NIC eth0 still has it";
      const step = { address: "10.0.0.7", refusal: why, isForceable: true };
      expect(await post(inspect, "/v1/release?address=10.0.0.7")).toMatchObject({ steps: [step], isDone: false });
      expect(await stateOf(get, "10.0.0.7")).toEqual(["Bound"]);
      expect(await post(inspect, "/v1/release?address=10.0.0.7&force&dryRun")).toMatchObject({ isDone: false });
      expect(await stateOf(get, "10.0.0.7")).toEqual(["Bound"]);
      recorded.length = 0;
      expect(await post(inspect, "/v1/release?address=10.0.0.7&force")).toMatchObject({ isDone: true });
      expect(await stateOf(get, "10.0.0.7")).toEqual(["Cooling"]);
      expect(recorded).toEqual(["RELEASE ordered with berthctl --force"]);
      expect(await post(inspect, "/v1/release?address=10.0.0.7&force")).toMatchObject({
        steps: [{ refusal: "it is released already, and becomes free by itself", isForceable: false }],
        isDone: false,
      });
    }));

  it("release by a report: only the record of the report, of this node, and what is over is no failure", () =>
    withStatusApi(async ({ inspect, bind }) => {
      await bind("10.0.0.7", 1, { pool: "blue", space: "" });
      const reported = "/v1/release?address=10.0.0.7&force&node=n1&dryRun&owner=10.0.0.7/";
      const other = "another pod or container has it since the report";
      expect(await post(inspect, `${reported}x&container=10.0.0.7`)).toMatchObject({
        steps: [{ refusal: other, isForceable: false, isOver: true }],
      });
      expect(await post(inspect, `${reported}&container=c9`)).toMatchObject({
        steps: [{ refusal: other, isOver: true }],
      });
      expect(await post(inspect, `${reported}&container=10.0.0.7`)).not.toHaveProperty("steps.0.refusal");
      expect(await post(inspect, "/v1/release?address=10.0.0.9&owner=u1&container=c1")).toMatchObject({
        steps: [{ refusal: "this node has no record of it", isOver: true }],
      });
      expect(await post(inspect, `${reported.replace("n1", "n2")}&container=10.0.0.7`)).toEqual({
        error: 'The report is of node "n2", this is n1',
      });
      expect(await post(inspect, `${reported}&container=10.0.0.7&cluster=c1`)).toEqual({
        error: "The report is of a cluster, and this node is in none",
      });
    }));

  it("release: what this node does not know, and what is no address", () =>
    withStatusApi(async ({ inspect }) => {
      expect(await post(inspect, "/v1/release?address=10.0.0.9&force")).toMatchObject({
        steps: [{ refusal: "this node has no record of it" }],
        isDone: false,
      });
      expect(await post(inspect, "/v1/release?pod=shop/none&force")).toEqual({ steps: [], isDone: true });
      expect(await post(inspect, "/v1/release?address=blue")).toMatchObject({
        error: expect.stringContaining("want ADDRESS"),
      });
    }));

  it("quarantine: a free address, a released one, and the end of both", () =>
    withStatusApi(async ({ inspect, get, bind }) => {
      await bind("10.0.0.8", 1);
      await post(inspect, "/v1/release?address=10.0.0.8&force");
      for (const address of ["10.0.0.7", "10.0.0.8"]) {
        const url = `/v1/quarantine?address=${address}`;
        expect(await post(inspect, `${url}&seconds=60&dryRun`)).toMatchObject({ isDone: false });
        expect(await post(inspect, `${url}&seconds=60`)).toMatchObject({ isDone: true });
        expect(await stateOf(get, address)).toEqual(["Quarantined"]);
        expect(await post(inspect, url)).toMatchObject({ steps: [{ refusal: "it is in quarantine already" }] });
        expect(await post(inspect, `/v1/release?address=${address}`)).toMatchObject({
          steps: [{ refusal: expect.stringContaining("--remove") }],
        });
        expect(await post(inspect, `${url}&remove`)).toMatchObject({ isDone: true });
        expect(await stateOf(get, address)).toEqual([]);
      }
    }));

  it("quarantine: a pod's address is refused, and one of no pool", () =>
    withStatusApi(async ({ inspect, get, bind }) => {
      await bind("10.0.0.7", 1);
      expect(await post(inspect, "/v1/quarantine?address=10.0.0.7")).toMatchObject({ steps: [{ isForceable: true }] });
      expect(await post(inspect, "/v1/quarantine?address=10.0.0.7&force")).toMatchObject({ isDone: true });
      expect(await stateOf(get, "10.0.0.7")).toEqual(["Quarantined"]);
      expect(await post(inspect, "/v1/quarantine?address=192.0.2.1&force")).toMatchObject({
        steps: [{ refusal: "no pool allocates it" }],
      });
      expect(await post(inspect, "/v1/quarantine?address=10.0.0.9&seconds=x")).toMatchObject({
        error: expect.stringContaining("seconds"),
      });
    }));

  it("repair restores before it checks, and is no GET", () =>
    withStatusApi(async ({ inspect }) => {
      const { body } = await inspect("POST", "/v1/repair");
      expect(JSON.parse(body)).toMatchObject({ repaired: [], unrepaired: [], findings: [] });
      expect((await inspect("GET", "/v1/repair")).status).toBe(404);
    }));

  it("check finds records whose pools are gone", () =>
    withStatusApi(async ({ get, bind, pass }) => {
      await bind("10.9.0.1", 1, { pool: "old", space: "" });
      expect(await get("/v1/check")).toMatchObject({ records: 1, nics: 0, findings: [] });
      pass(60_000);
      expect(await get("/v1/check")).toMatchObject({ findings: [{ kind: "wrong-pool", address: "10.9.0.1" }] });
    }));
});
