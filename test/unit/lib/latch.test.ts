import { expect, it } from "vitest";
import { Latch } from "../../../host/lib/latch.ts";

it("lets all go on who wait, and those who come later", async () => {
  const latch = new Latch();
  const waiting = [latch.wait(), latch.wait(new AbortController().signal)];
  latch.open();
  latch.fail(new Error("too late"));
  await Promise.all(waiting);
  await latch.wait();
  expect(latch.waiting).toBe(0);
});

it("fails for all who wait, and for those who come later", async () => {
  const latch = new Latch();
  const waiting = latch.wait();
  latch.fail(new Error("never"));
  await expect(waiting).rejects.toThrow("never");
  await expect(latch.wait()).rejects.toThrow("never");
});

it("that fails while nobody waits is nobody's trouble", () => new Latch().fail(new Error("never")));

it("keeps nothing of a wait that was given up", async () => {
  const latch = new Latch();
  const controller = new AbortController();
  const waiting = latch.wait(controller.signal);
  expect(latch.waiting).toBe(1);
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(latch.wait(controller.signal)).rejects.toThrow("enough");
  expect(latch.waiting).toBe(0);
});
