import { expect, test } from "vitest";
import { LivenessCache } from "../../../../host/controller/subnets/liveness-cache.ts";
import type { Liveness, Succession } from "../../../../host/controller/types.ts";

const web = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };
const next = { ...web, uid: "u2" };

function requested(liveness: Liveness, succession: Succession = "ended", bound: readonly string[] = ["10.6.0.2"]) {
  let nowMs = 0;
  const cache = new LivenessCache(() => nowMs);
  const reads = { readLiveness: async () => liveness, readSuccession: async () => succession, boundOf: () => bound };
  const ask = () => cache.read([web], reads, new AbortController().signal);
  const pass = (milliseconds: number) => {
    nowMs += milliseconds;
    return cache.all.get("shop/u1");
  };
  return { cache, ask, pass };
}

test("who is gone is gone for good, and nothing is due", async () => {
  const { cache, ask, pass } = requested("gone");
  await ask();
  cache.changed();
  expect(cache.dueMs).toBeUndefined();
  expect(pass(60_000)).toBe("gone");
});

test("who lives is asked for again when workloads have changed, not sooner than after five seconds", async () => {
  const { cache, ask, pass } = requested("alive");
  await ask();
  expect(cache.dueMs).toBeUndefined();
  expect(pass(60_000)).toBe("alive");
  await ask();
  cache.changed();
  expect([pass(4_999), cache.dueMs]).toEqual(["alive", 1]);
  expect(pass(1)).toBeUndefined();
  await ask();
  expect([cache.dueMs, pass(60_000)]).toEqual([undefined, "alive"]);
});

test("who could not be asked for is asked for again", async () => {
  const { cache, ask, pass } = requested("unknown");
  await ask();
  expect([pass(1_000), cache.dueMs]).toEqual(["unknown", 4_000]);
  expect(pass(4_000)).toBeUndefined();
});

test("who wants something is not asked for", async () => {
  const { cache, ask, pass } = requested("gone");
  await ask();
  cache.demanded([web]);
  expect(pass(0)).toBeUndefined();
});

test("pods of who is gone are asked for when they have its addresses; who took them over is final", async () => {
  const [taken, none, alive, unread] = [
    requested("gone", next),
    requested("gone", next, []),
    requested("alive", next),
    requested("gone", "unknown"),
  ];
  for (const { ask } of [taken, none, alive, unread]) await ask();
  expect([taken, none, alive, unread].map(({ pass }) => pass(0))).toEqual(["gone", "gone", "alive", "unknown"]);
  expect([taken, none, alive].map(({ cache }) => cache.successorOf(web)?.uid)).toEqual(["u2", undefined, undefined]);
  expect(taken.pass(60_000)).toBe("gone");
});

test("orphaned pods are asked for again: each second while a workload of the name waits for them, else after five", async () => {
  const { cache, ask, pass } = requested("gone", "orphaned");
  await ask();
  cache.demanded([{ ...next, name: "db" }]);
  expect([pass(1_000), cache.dueMs]).toEqual(["orphaned", 4_000]);
  cache.demanded([next]);
  expect([cache.dueMs, pass(0)]).toEqual([0, undefined]);
});
