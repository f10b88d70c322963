import { expect, it } from "vitest";
import { startFinalizers } from "../../../../host/controller/finalizers/finalizer-controller.ts";
import { IN_USE_FINALIZER } from "../../../../host/controller/finalizers/plan-finalizers.ts";
import { PoolWrites } from "../../../../host/controller/pool-writes.ts";
import type { ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { DELETED, pool } from "../conditions/judged.ts";

const GOES = "info The last address of a deleted pool is free; its finalizer is removed";

/** The finalizer of a pool in deletion, whose addresses are free, is taken away; `patched` is the answer. */
async function lead(patched: () => void): Promise<string[]> {
  const leaving = pool(
    "blue",
    { subnet: "10.6.0.0/24" },
    { metadata: { ...DELETED.metadata, finalizers: [IN_USE_FINALIZER] } },
  );
  const answered = Promise.withResolvers<void>();
  const call: KubeApi["call"] = async ({ method }) => {
    if (method !== "PATCH") return { kind: "List", metadata: { resourceVersion: "1" }, items: [] };
    answered.resolve();
    patched();
    return {};
  };
  const { log, lines } = recordLog();
  const cache = { items: new Map(), problems: [], subscribe: () => () => {} };
  const start = performance.now();
  const deps = {
    ...{ log, random: Math.random, leading: new AbortController().signal, api: { call } },
    caches: { pools: { ...cache, items: new Map([["blue", leaving]]) }, allocations: cache },
    // An hour for each second: agents have heard of the deletion at once.
    clock: { nowMs: () => 3_600 * (performance.now() - start), now: () => new Date() },
    poolWrites: new PoolWrites({ nodes: () => 1, nowMs: () => performance.now() }),
  } as unknown as ControllerDeps;
  const part = startFinalizers(deps);
  await answered.promise;
  await part.close();
  return lines;
}

it("a pool is said to go when its finalizer is away", async () => {
  expect(await lead(() => {})).toContain(GOES);
});

it("a pool is not reported as deleted when another writer has changed it", async () => {
  const said = await lead(() => {
    throw new ApiError({ status: 409, reason: "Conflict", operation: "PATCH", message: "changed" });
  });
  expect(said).not.toContain(GOES);
});
