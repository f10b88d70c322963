import { expect, test } from "vitest";
import { LivenessCache } from "../../../../host/controller/subnets/liveness-cache.ts";
import type { Liveness, Succession } from "../../../../host/controller/types.ts";

const web = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };
const next = { ...web, uid: "u2" };

async function readOnce(liveness: Liveness, succession: Succession = "ended", bound: readonly string[] = ["10.6.0.2"]) {
  let nowMs = 0;
  const cache = new LivenessCache(() => nowMs);
  const reads = { readLiveness: async () => liveness, readSuccession: async () => succession, boundOf: () => bound };
  await cache.read([web], reads, new AbortController().signal);
  /** Time passes; these workloads have demands. */
  const pass = (milliseconds: number, ...demanded: (typeof web)[]) => {
    nowMs += milliseconds;
    cache.expire(demanded);
    return cache.all.get("shop/u1");
  };
  return { cache, pass };
}

test("a workload that is gone is gone for good, and nothing is due", async () => {
  const { cache, pass } = await readOnce("gone");
  expect(cache.dueMs).toBeUndefined();
  expect(pass(60_000)).toBe("gone");
});

test.each(["alive", "unknown"] as const)("who was %s is read again after five seconds", async (state) => {
  const { cache, pass } = await readOnce(state);
  expect([pass(4_999), cache.dueMs]).toEqual([state, 5_000]);
  expect([pass(1), cache.dueMs]).toEqual([undefined, undefined]);
});

test("a workload that wants something is not read", async () => {
  const { pass } = await readOnce("gone");
  expect(pass(0, web)).toBeUndefined();
});

test("pods of a workload that is gone are read when they have its addresses; its successor is final", async () => {
  const [taken, none, alive, unread] = await Promise.all([
    readOnce("gone", next),
    readOnce("gone", next, []),
    readOnce("alive", next),
    readOnce("gone", "unknown"),
  ]);
  expect([taken, none, alive, unread].map(({ pass }) => pass(0))).toEqual(["gone", "gone", "alive", "unknown"]);
  expect([taken, none, alive].map(({ cache }) => cache.successorOf(web)?.uid)).toEqual(["u2", undefined, undefined]);
  expect(taken.pass(60_000)).toBe("gone");
});

test("orphaned pods are read again: each second while a workload of the name waits for them, else after five", async () => {
  const { cache, pass } = await readOnce("gone", "orphaned");
  expect([pass(1_000, { ...next, name: "db" }), cache.dueMs]).toEqual(["orphaned", 1_000]);
  expect(pass(0, next)).toBeUndefined();
});
