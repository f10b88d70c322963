import { describe, expect, it } from "vitest";
import { KeyedSerialQueue, SerialQueue } from "../../../host/lib/serial.ts";

describe("a serial queue", () => {
  it("runs jobs one at a time in the order of the calls, also after one that failed", async () => {
    const queue = new SerialQueue();
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    const job = (name: string, result: Promise<unknown>) => () => {
      begun.push(name);
      return result;
    };
    const first = queue.run(job("first", gate.promise));
    const second = queue.run(job("second", Promise.resolve("fine")));
    await undefined;
    expect([begun, queue.size]).toEqual([["first"], 2]);
    gate.reject(new Error("broken"));
    await expect(first).rejects.toThrow("broken");
    expect(await second).toBe("fine");
    expect([begun, queue.size]).toEqual([["first", "second"], 0]);
  });

  it("is idle when the queued work has ended, however it ended", async () => {
    const queue = new SerialQueue();
    await queue.idle();
    const gate = Promise.withResolvers<void>();
    const failing = queue.run(() => gate.promise);
    let isIdle = false;
    const idle = queue.idle().then(() => {
      isIdle = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isIdle).toBe(false);
    gate.reject(new Error("broken"));
    await expect(failing).rejects.toThrow("broken");
    await idle;
  });
});

describe("a keyed serial queue", () => {
  it("runs the jobs of a key in the order of the calls, one at a time, and of other keys beside it", async () => {
    const queue = new KeyedSerialQueue();
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const note = async (what: string): Promise<string> => {
      seen.push(what);
      return what;
    };
    const first = queue.run("a", async () => {
      seen.push("first begins");
      await gate.promise;
      return note("first ends");
    });
    const second = queue.run("a", () => note("second"));
    await queue.run("b", () => note("other"));
    gate.resolve();
    expect([await first, await second]).toEqual(["first ends", "second"]);
    expect(seen).toEqual(["first begins", "other", "first ends", "second"]);
  });

  it("continues after a failure, which is the caller's alone", async () => {
    const queue = new KeyedSerialQueue();
    const failing = queue.run("a", async () => {
      throw new Error("broken");
    });
    const next = queue.run("a", async () => "fine");
    await expect(failing).rejects.toThrow("broken");
    expect(await next).toBe("fine");
  });
});
