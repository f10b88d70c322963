import { expect, it } from "vitest";
import { startFinalizers } from "../../../../host/controller/finalizers/finalizer-controller.ts";
import { IN_USE_FINALIZER } from "../../../../host/controller/finalizers/plan-finalizers.ts";
import { PoolWrites } from "../../../../host/controller/pool-writes.ts";
import type { ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { DELETED, pool } from "../conditions/judged.ts";

const GOES = "info The last address of a deleted pool is free; its finalizer is removed";

const POOL = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", spec: { subnet: "10.6.0.0/24" } };
const METADATA = { name: "blue", uid: "uid-blue", ...DELETED.metadata };
const CHANGED = { ...METADATA, resourceVersion: "2", finalizers: ["other.example/one", IN_USE_FINALIZER] };

/** Starts the controller with these pools in deletion in its cache. */
function startWith(names: readonly string[], call: KubeApi["call"]) {
  const { log, lines } = recordLog();
  const cache = { items: new Map(), problems: [], subscribe: () => () => {} };
  const start = performance.now();
  const metadata = { ...DELETED.metadata, finalizers: [IN_USE_FINALIZER] };
  const leaving = names.map((name) => [name, pool(name, { subnet: "10.6.0.0/24" }, { metadata })] as const);
  const leading = new AbortController();
  const deps = {
    ...{ log, random: Math.random, leading: leading.signal, api: { call } },
    caches: { pools: { ...cache, items: new Map(leaving) }, allocations: cache },
    // An hour for each second: agents have heard of the deletion at once.
    clock: { nowMs: () => 3_600 * (performance.now() - start), now: () => new Date() },
    poolWrites: new PoolWrites({ nodes: () => 1, nowMs: () => performance.now() }),
  } as unknown as ControllerDeps;
  return { part: startFinalizers(deps), lines, leading };
}

/**
 * The finalizer of a pool in deletion, whose addresses are free, is taken away. `version`: of the pool at the API
 * server, the cache has "1"; `found`: the result of a read.
 */
async function lead(version: string, found: typeof CHANGED | ApiError = CHANGED) {
  const answered = Promise.withResolvers<void>();
  const written: unknown[] = [];
  const call: KubeApi["call"] = async ({ method, path, body }) => {
    if (method === "GET" && path.endsWith("/ippools/blue")) {
      answered.resolve();
      if (found instanceof ApiError) throw found;
      return { ...POOL, metadata: found };
    }
    if (method !== "PATCH") return { kind: "List", metadata: { resourceVersion: "1" }, items: [] };
    const { metadata } = body as { metadata: { resourceVersion: string; finalizers: string[] } };
    if (metadata.resourceVersion !== version)
      throw new ApiError({ status: 409, reason: "Conflict", operation: "PATCH", message: "changed" });
    written.push(metadata.finalizers);
    answered.resolve();
    return {};
  };
  const { part, lines } = startWith(["blue"], call);
  await answered.promise;
  await part.close();
  return { isSaid: lines.includes(GOES), written };
}

it("a pool is said to go when its finalizer is away, also one that has changed since, and is read", async () => {
  expect(await lead("1")).toEqual({ isSaid: true, written: [[]] });
  expect(await lead("2")).toEqual({ isSaid: true, written: [["other.example/one"]] });
});

it.each<[what: string, version: string, found?: typeof CHANGED | ApiError]>([
  ["another writer has changed it again", "3"],
  ["it is gone", "2", new ApiError({ status: 404, reason: "NotFound", operation: "GET", message: "gone" })],
  ["it was created again", "2", { ...CHANGED, uid: "other" }],
  ["its finalizer is away", "2", { ...CHANGED, finalizers: [] }],
])("a pool is not reported as deleted when %s", async (_, version, found) =>
  expect(await lead(version, found)).toEqual({ isSaid: false, written: [] }),
);

it("a pool goes although the question about another one has no answer", async () => {
  const written = Promise.withResolvers<string>();
  const call: KubeApi["call"] = ({ method, path, query, signal }) => {
    if (method === "PATCH") written.resolve(path);
    if (query?.fieldSelector !== "spec.pool=blue")
      return Promise.resolve({ kind: "List", metadata: { resourceVersion: "1" }, items: [] });
    return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  };
  const { part, leading } = startWith(["blue", "green"], call);
  expect(await written.promise).toMatch(/\/ippools\/green$/);
  leading.abort(new Error("The test ends"));
  await part.close();
});
