import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LastingFences } from "../../../../host/agent/fences/lasting-fences.ts";
import type { NicAccess } from "../../../../host/agent/fences/orphan-nics.ts";
import type { NetnsStatus } from "../../../../host/ipam/leak.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { rowOf } from "../../../world/search.ts";

const ROW = rowOf("10.0.0.1", { state: "Cooling", pod: "web", netns: "/run/netns/c1", netnsCookie: 7n });

interface World {
  readonly fences: LastingFences;
  status: NetnsStatus;
  isEnabled: boolean;
  /** The row of the address now. */
  row: Allocation | undefined;
  /** Cookies of the namespaces in which a NIC lost the address. */
  readonly fenced: (bigint | undefined)[];
  readonly lines: readonly string[];
}

function open(): World {
  const { log, lines } = recordLog();
  const world: Omit<World, "fences"> = { status: "there", isEnabled: true, row: ROW, fenced: [], lines };
  const nics: NicAccess = {
    readCookie: () => (world.status === "gone" ? undefined : 7n),
    readNetnsStatus: async () => world.status,
    findNetns: () => ({ kind: "absent" }),
    fenceNics: ({ netnsCookie, isOrphan }) => {
      expect(isOrphan).toBe(false);
      world.fenced.push(netnsCookie);
      world.status = "there";
      return ["eth0"];
    },
  };
  const registry = { findAddress: async () => world.row };
  const nowMs = () => performance.now();
  return Object.assign(world, {
    fences: new LastingFences({ nics, registry, isEnabled: () => world.isEnabled, nowMs, log }),
  });
}

let world: World;
beforeEach(() => {
  vi.useFakeTimers();
  world = open();
});
afterEach(async () => {
  await world.fences.close();
  vi.useRealTimers();
});

it.each([0, 7_000, 29_000, 600_000])("an address that comes up %d ms after the fence is taken off", async (afterMs) => {
  world.fences.fenced(ROW);
  await vi.advanceTimersByTimeAsync(afterMs);
  world.status = "inUse";
  await vi.advanceTimersByTimeAsync(afterMs > 100_000 ? 6_000 : 500);
  expect([world.status, world.fenced]).toEqual(["there", [7n]]);
  expect(world.lines).toEqual([
    expect.stringContaining(
      'Address 10.0.0.1 of pod shop/web (UID u1) came up after it was released; removed it and set "eth0" down',
    ),
  ]);
  expect(world.fences.has(ROW)).toBe(true);
});

it("a released NIC is left alone for its plugin's DEL, and forgotten with its namespace", async () => {
  world.status = "inUse";
  world.fences.released(ROW);
  await vi.advanceTimersByTimeAsync(4_000);
  expect([world.fenced, world.fences.has(ROW)]).toEqual([[], true]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([world.fenced, world.fences.has(ROW)]).toEqual([[7n], true]);
  world.status = "gone";
  await vi.advanceTimersByTimeAsync(1_000);
  expect(world.fences.has(ROW)).toBe(false);
});

it.each([
  ["its namespace has it again", { state: "Bound", owner: "u2" }, true],
  ["its pod has it again, in another namespace", { state: "Bound", netnsCookie: 8n }, true],
  ["another pod has it", { state: "Bound", owner: "u2", netnsCookie: 8n }, false],
  ["it cools", {}, false],
] as const)("an address that comes up when %s", async (_, row, isKept) => {
  world.row = { ...ROW, ...row };
  world.status = "inUse";
  world.fences.fenced(ROW);
  await vi.advanceTimersByTimeAsync(500);
  expect(world.fenced).toEqual(isKept ? [] : [7n]);
});

it("an attachment is forgotten when its ADD begins anew, and without a cookie never remembered", () => {
  world.fences.fenced({ ...ROW, netnsCookie: undefined });
  expect(world.fences.has(ROW)).toBe(false);
  world.fences.fenced(ROW);
  world.fences.attaching({ containerId: "c1", ifName: "net1" });
  expect(world.fences.has(ROW)).toBe(true);
  world.fences.attaching(ROW);
  expect(world.fences.has(ROW)).toBe(false);
});

it("nothing is taken off while fencing is disabled", async () => {
  world.isEnabled = false;
  world.status = "inUse";
  world.fences.fenced(ROW);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(world.fenced).toEqual([]);
});
