import { expect, test } from "vitest";
import { LivenessCache } from "../../../../host/controller/subnets/liveness-cache.ts";
import type { Liveness } from "../../../../host/controller/types.ts";

const web = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };

function requested(liveness: Liveness) {
  let nowMs = 0;
  const cache = new LivenessCache(() => nowMs);
  const ask = () => cache.read([web], { readLiveness: async () => liveness }, new AbortController().signal);
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
  cache.forget([web]);
  expect(pass(0)).toBeUndefined();
});
