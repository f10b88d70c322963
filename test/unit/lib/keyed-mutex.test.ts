import { expect, it } from "vitest";
import { KeyedMutex } from "../../../host/lib/keyed-mutex.ts";

it("runs the work of a key in the order of the calls, one at a time, and of other keys beside it", async () => {
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const note = async (what: string): Promise<string> => {
    seen.push(what);
    return what;
  };
  const first = mutex.run("a", async () => {
    seen.push("first begins");
    await gate.promise;
    return note("first ends");
  });
  const second = mutex.run("a", () => note("second"));
  await mutex.run("b", () => note("other"));
  gate.resolve();
  expect([await first, await second]).toEqual(["first ends", "second"]);
  expect(seen).toEqual(["first begins", "other", "first ends", "second"]);
});

it("goes on after a failure, which is the caller's alone, and keeps nothing", async () => {
  const mutex = new KeyedMutex();
  const failing = mutex.run("a", async () => {
    throw new Error("broken");
  });
  const next = mutex.run("a", async () => "fine");
  await expect(failing).rejects.toThrow("broken");
  expect(await next).toBe("fine");
  expect(mutex.size).toBe(0);
});
