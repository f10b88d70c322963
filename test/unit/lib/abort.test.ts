import { expect, it } from "vitest";
import { untilAborted } from "../../../host/lib/abort.ts";

const NO_MORE = new Error("No more");

it("passes on what the work returns or throws", async () => {
  const { signal } = new AbortController();
  await expect(untilAborted(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(untilAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
});

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
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listeners++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listeners--;
    removeEventListener.apply(signal, args);
  };
  await untilAborted(Promise.resolve(), signal);
  await undefined;
  expect(listeners).toBe(0);
});
