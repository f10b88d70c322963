import { expect, test } from "vitest";
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { KnownEpoch } from "../../../../host/registry/epoch/known-epoch.ts";
import {
  createAllocation,
  LIST_ATTEMPTS,
  listAllocations,
} from "../../../../host/registry/kubernetes/allocation-objects.ts";
import {
  allocationName,
  decodeIpAllocation,
  encodeIpAllocation,
  type IpAllocationSpec,
} from "../../../../host/resources/ip-allocation.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { ip } from "../../../world/values.ts";

const SPEC: IpAllocationSpec = {
  ...{ ip: { family: 4, value: 0x0a_06_00_15n }, addressSpace: "blue", prefixLength: 24, pool: "lan", state: "Bound" },
  ...{ node: "n1", since: "2026-11-20T04:00:00Z" },
  holders: [{ namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" }],
};
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };
const STORED = { uid: "o1", resourceVersion: "7", creationTimestamp: "2026-11-20T04:00:01Z" };

type Change = (object: KubeObject) => KubeObject;

/** Returns the object made of the answer, and that of a full decoding. */
async function create(spec: IpAllocationSpec, change: Change) {
  const answers: KubeObject[] = [];
  const store = ({ body }: KubeCall): KubeObject => {
    const sent = JSON.parse(JSON.stringify(body)) as KubeObject & { metadata: object };
    const answer = change({ ...sent, metadata: { ...sent.metadata, ...STORED } });
    answers.push(answer);
    return answer;
  };
  const api = { call: async (call: KubeCall) => store(call) } as KubeApi;
  const created = await createAllocation(api, spec, { lane: "pod" });
  return { created, decoded: decodeIpAllocation(answers[0], "API server") };
}

const withSpec =
  (other: object): Change =>
  (object) => ({ ...object, spec: { ...(object.spec as object), ...other } });
const withMetadata =
  (other: object): Change =>
  (object) => ({ ...object, metadata: { ...(object.metadata as object), ...other } });

const same: Change = (object) => object;
const quarantine = { reason: "Conflict", mac: "", parent: "" } as const;
const ELSEWHERE = { namespace: "a", pod: "b", podUID: "u2", interface: "e", node: "n2" };
test.each<[string, IpAllocationSpec, Change]>([
  ["what was sent", SPEC, same],
  ["what was sent, in another order", SPEC, ({ spec, metadata, ...rest }) => ({ metadata, spec, ...rest })],
  ["IPv6", { ...SPEC, ip: ip("fd00::"), addressSpace: "", prefixLength: 64 }, same],
  ["a workload", { ...SPEC, workload: WORKLOAD }, same],
  ["a quarantine", { ...SPEC, state: "Quarantined", holders: [], quarantine }, same],
  ["another node", SPEC, withSpec({ node: "n2", holders: [ELSEWHERE] })],
  ["another state", SPEC, withSpec({ state: "Cooling", holders: [] })],
  ["one more key", SPEC, withSpec({ later: "key" })],
  ["an object that is being deleted", SPEC, withMetadata({ deletionTimestamp: "2026-11-20T04:00:02Z" })],
  ["no times", SPEC, withMetadata({ creationTimestamp: null })],
])("the answer to a create is what a full decoding makes of it: %s", async (_, spec, change) => {
  const { created, decoded } = await create(spec, change);
  expect(created).toEqual(decoded);
});

test.each<[string, Change]>([
  ["another name", withMetadata({ name: "10.6.0.22.blue" })],
  ["no spec", ({ spec: _, ...object }) => object],
  ["another address", withSpec({ address: "10.6.0.22" })],
])(
  "an answer that is no such object is refused: %s",
  async (_, change) => await expect(create(SPEC, change)).rejects.toThrow("API server"),
);

/** Returns the names of a list in pages of one; the second page of the first `failures` lists is gone. */
async function listByOne(failures: number, change: (server: MemoryApiServer) => void = () => {}): Promise<string[]> {
  const server = new MemoryApiServer();
  for (const address of ["10.6.0.1", "10.6.0.2"]) {
    const name = allocationName(ip(address), "blue");
    server.put(ALLOCATIONS, name, encodeIpAllocation({ ...SPEC, ip: ip(address) }));
  }
  change(server);
  server.maxPage = 1;
  let left = failures;
  const api = server.client(async ({ method, query }, commit) => {
    if (query?.continue === undefined || left-- <= 0) return commit();
    const message = "The continue parameter is too old";
    throw new ApiError({ status: 410, reason: "Expired", operation: method, message });
  });
  return (await listAllocations(api, {}, { lane: "pod" })).map(({ name }) => name);
}

test("a list begins again when its later pages are compacted away, and has each object once", async () =>
  expect(await listByOne(1)).toEqual(["10.6.0.1.blue", "10.6.0.2.blue"]));

test("it gives up after LIST_ATTEMPTS", async () => await expect(listByOne(LIST_ATTEMPTS)).rejects.toThrow("too old"));

test("it leaves out objects that cannot be understood", async () => {
  const spoil = (server: MemoryApiServer) => server.edit("10.6.0.1.blue", (spec) => ({ ...spec, address: "odd" }));
  expect(await listByOne(0, spoil)).toEqual(["10.6.0.2.blue"]);
});

const listAll = (api: KubeApi) => listAllocations(api, {}, { lane: "pod" });

test.each<[string, (api: KubeApi) => Promise<unknown>]>([
  ["a create", (api) => createAllocation(api, SPEC, { lane: "pod" })],
  ["two lists at once", (api) => Promise.all([listAll(api), listAll(api)])],
])("the first answer of a server that went back tells, before it is passed on: %s", async (_, ask) => {
  const server = new MemoryApiServer();
  let told = 0;
  const history = new KnownEpoch({ read: () => undefined, write: () => {} }, () => told++);
  const client = server.client(async (_call, commit) => {
    const answer = await commit();
    // A watch tells of a later write before the answer, or the next page, comes.
    history.answered(server.put(ALLOCATIONS, "10.6.2.1", { spec: {} }).metadata.resourceVersion);
    return answer;
  });
  const api = { ...client, history };
  const copy = server.snapshot();
  for (let index = 1; index < 99; index++) server.put(ALLOCATIONS, `10.6.1.${index}`, { spec: {} });
  server.maxPage = 90;
  await listAll(api);
  // An event may be older than another one.
  for (const version of ["3", "no number", undefined]) history.answered(version);
  server.restore(copy);
  expect([history.version, told]).toEqual([100n, 0]);
  await ask(api);
  expect(told).toBe(1);
  await listAll(api);
  expect(told).toBe(1);
});
