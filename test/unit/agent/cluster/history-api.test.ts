/** A server whose history goes back, as its clients see it. */
import { beforeEach, expect, it } from "vitest";
import { HistoryApi } from "../../../../host/agent/cluster/history-api.ts";
import type { KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../../fakes/memory-api-server.ts";

const PODS = "/api/v1/pods";

let server: MemoryApiServer;
let known: { version: bigint };
let backs: number;
/** Answers to lists of pods are so old. */
let staleVersion: string | undefined;
let api: HistoryApi;

beforeEach(() => {
  server = new MemoryApiServer({ serves: { [PODS]: { apiVersion: "v1", kind: "Pod" } } });
  known = { version: 0n };
  backs = 0;
  staleVersion = undefined;
  const client = server.client();
  const stale: KubeApi = {
    ...client,
    call: async (call) => {
      const answer = await client.call(call);
      const isStale = call.path === PODS && staleVersion !== undefined;
      return isStale ? { ...answer, metadata: { resourceVersion: staleVersion } } : answer;
    },
  };
  api = new HistoryApi(stale, { trusted: ALLOCATIONS, known, onWentBack: () => backs++ });
  for (const name of ["10.6.0.1", "10.6.0.2", "10.6.0.3"]) server.put(ALLOCATIONS, name, { spec: {} });
});

const list = (path: string) => api.call({ method: "GET", path, query: { limit: 1 } });
const create = (name: string) =>
  api.call({ method: "POST", path: ALLOCATIONS, body: { metadata: { name }, spec: {} } });

it("tells of a create in another history before it is answered, and once", async () => {
  const copy = server.snapshot();
  for (let index = 0; index < 40; index++) server.put(ALLOCATIONS, `10.6.1.${index}`, { spec: {} });
  await list(ALLOCATIONS);
  server.restore(copy);
  await create("10.6.0.9").then(() => expect(backs).toBe(1));
  await list(ALLOCATIONS);
  await list(PODS);
  expect(backs).toBe(1);
});

it("asks a source that cannot be stale before it believes a list that may be", async () => {
  await list(PODS);
  staleVersion = "1";
  await list(PODS);
  await api.confirming;
  expect([backs, known.version]).toEqual([0, 3n]);
  known.version = 99n;
  await list(PODS);
  expect(api.confirming).not.toBe(undefined);
  await api.confirming;
  expect([backs, api.confirming]).toEqual([1, undefined]);
});
