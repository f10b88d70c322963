import { afterEach, expect, it, vi } from "vitest";
import {
  PROBE_INTERVAL_MS,
  SqliteRegistry,
  type StoreAccess,
} from "../../../../host/registry/sqlite/sqlite-registry.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("a registry tries to write at once, then at intervals, and each time while there is trouble", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const sent: (readonly unknown[])[] = [];
  let trouble: string | undefined;
  const store: StoreAccess = {
    ...{ trouble: undefined, gone: undefined, pendingCalls: 0 },
    send: async (...call) => {
      sent.push(call);
      return trouble;
    },
    close: async () => {},
  };
  const registry = new SqliteRegistry(store, () => 0);
  const look = async (afterMs: number): Promise<number> => {
    vi.advanceTimersByTime(afterMs);
    await registry.probe();
    return sent.splice(0).length;
  };
  expect(await look(0)).toBe(1);
  expect(await look(PROBE_INTERVAL_MS - 1)).toBe(0);
  trouble = "The disk is full";
  expect(await look(1)).toBe(1);
  expect(registry.trouble).toBe("The disk is full");
  trouble = undefined;
  expect(await look(1)).toBe(1);
  expect(registry.trouble).toBeUndefined();
  expect(await look(1)).toBe(0);
});
