import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { untilAborted } from "../../../host/lib/abort.ts";
import { Latch } from "../../../host/lib/latch.ts";
import { Listeners } from "../../../host/lib/listeners.ts";

const NO_MORE = new Error("No more");

it("rejects with the reason when the signal aborts first, and ignores how the work ends", async () => {
  const controller = new AbortController();
  const work = Promise.withResolvers<void>();
  const result = untilAborted(work.promise, controller.signal);
  controller.abort(NO_MORE);
  await expect(result).rejects.toBe(NO_MORE);
  work.reject(new Error("too late"));
});

it("rejects at once when the signal has aborted before, and ignores how the work ends", async () => {
  await expect(untilAborted(Promise.reject(new Error("broken")), AbortSignal.abort(NO_MORE))).rejects.toBe(NO_MORE);
});

it("leaves no listener at the signal", async () => {
  const { signal } = new AbortController();
  await untilAborted(Promise.resolve(), signal);
  await undefined;
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("lets all waiting callers go on, and later ones", async () => {
  const latch = new Latch();
  const waiting = [latch.wait(), latch.wait(new AbortController().signal)];
  latch.open();
  latch.fail(new Error("too late"));
  await Promise.all(waiting);
  await latch.wait();
  expect(latch.waiting).toBe(0);
});

it("fails for all waiting callers, and for later ones", async () => {
  const latch = new Latch();
  const waiting = latch.wait();
  latch.fail(new Error("never"));
  await expect(waiting).rejects.toThrow("never");
  await expect(latch.wait()).rejects.toThrow("never");
});

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

function open() {
  const failures: unknown[] = [];
  return { failures, listeners: new Listeners<number>((error, changes) => failures.push([error, changes])) };
}

it("the same function twice is two listeners, and one of them may leave", () => {
  const { listeners } = open();
  const received: number[] = [];
  const listen = (changes: number) => received.push(changes);
  const leave = listeners.add(listen);
  listeners.add(listen);
  listeners.tell(1);
  leave();
  leave();
  listeners.tell(2);
  expect(received).toEqual([1, 1, 2]);
});

it("a listener that leaves during a notification gets no more; one that joins meanwhile gets the next", () => {
  const { listeners } = open();
  const received: string[] = [];
  listeners.add((changes) => {
    received.push(`first ${changes}`);
    leave();
    if (changes === 1) listeners.add((late) => received.push(`late ${late}`));
  });
  const leave = listeners.add((changes) => received.push(`second ${changes}`));
  listeners.tell(1);
  listeners.tell(2);
  expect(received).toEqual(["first 1", "first 2", "late 2"]);
});

it("one that throws is reported, and does not affect the others", () => {
  const { listeners, failures } = open();
  const received: number[] = [];
  const error = new Error("no");
  listeners.add(() => {
    throw error;
  });
  listeners.add((changes) => received.push(changes));
  listeners.tell(7);
  expect([received, failures]).toEqual([[7], [[error, 7]]]);
});
