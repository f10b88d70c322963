import { expect, test } from "vitest";
import { LivenessCache } from "../../../../host/controller/subnets/liveness-cache.ts";
import type { Fate } from "../../../../host/controller/subnets/model.ts";

const web = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };

function asked(fate: Fate) {
  let nowMs = 0;
  const fates = new LivenessCache(() => nowMs);
  const ask = () => fates.read([web], { readLiveness: async () => fate }, new AbortController().signal);
  const pass = (milliseconds: number) => {
    nowMs += milliseconds;
    return fates.all.get("shop/u1");
  };
  return { fates, ask, pass };
}

test("who is gone is gone for good, and nothing is due", async () => {
  const { fates, ask, pass } = asked("gone");
  await ask();
  fates.changed();
  expect(fates.dueMs).toBeUndefined();
  expect(pass(60_000)).toBe("gone");
});

test("who lives is asked for again when workloads have changed, not sooner than after five seconds", async () => {
  const { fates, ask, pass } = asked("alive");
  await ask();
  expect(fates.dueMs).toBeUndefined();
  expect(pass(60_000)).toBe("alive");
  await ask();
  fates.changed();
  expect([pass(4_999), fates.dueMs]).toEqual(["alive", 1]);
  expect(pass(1)).toBeUndefined();
});

test("who could not be asked for is asked for again", async () => {
  const { fates, ask, pass } = asked("unknown");
  await ask();
  expect([pass(1_000), fates.dueMs]).toEqual(["unknown", 4_000]);
  expect(pass(4_000)).toBeUndefined();
});

test("who wants something is not asked for", async () => {
  const { fates, ask, pass } = asked("gone");
  await ask();
  fates.forget([web]);
  expect(pass(0)).toBeUndefined();
});
