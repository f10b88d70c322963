/** The registry's thread returns what it does not need, and serves calls that come meanwhile. Its event loop never turns, so V8 gives nothing back by itself. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import type { Claim, RecoverableRegistry } from "../../../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../../../host/registry/sqlite/registry.ts";
import { type RegistryThread, startRegistryThread } from "../../../../host/registry/sqlite/registry-thread.ts";

const CYCLES = 4_000;
const AT_ONCE = 40;

async function open(): Promise<{ registry: RecoverableRegistry; thread: RegistryThread }> {
  const directory = mkdtempSync(join(tmpdir(), "berth-trim-"));
  const thread = startRegistryThread({ isJournal: false });
  const registry = await openSqliteRegistry({
    ...{ directory, thread, bootId: "boot", lockWaitMs: 0, faultCounter: createFaultCounter() },
    nowMs: () => Math.round(performance.now()),
    cooldowns: { defaultMs: 0, byPool: new Map() },
    onFreed: () => {},
    onDeath: () => {},
  });
  onTestFinished(async () => {
    await registry.close();
    rmSync(directory, { recursive: true });
  });
  return { registry, thread };
}

const claimOf = (pod: number): Claim => ({
  ...{ owner: `uid-${pod}`, namespace: "shop", pod: `pod-${pod}`, ifName: "eth0" },
  ...{ containerId: `c${pod}`, network: "lan" },
  proposals: [
    { space: "", ip: { family: 4, value: BigInt(0x0a000000 + pod) }, prefixLength: 8, pool: "blue", ifName: "eth0" },
  ],
});

async function cycle(registry: RecoverableRegistry, first: number): Promise<void> {
  const pods = Array.from({ length: AT_ONCE }, (_, index) => first + index);
  await Promise.all(pods.map((pod) => registry.claim(claimOf(pod))));
  await Promise.all(pods.map((pod) => registry.release({ containerId: `c${pod}`, ifName: "eth0" })));
}

/** What V8 has of the kernel's memory for the thread: bytes. */
async function heapOf(registry: RecoverableRegistry, { worker }: RegistryThread): Promise<number> {
  const statistics = worker.getHeapStatistics();
  // The thread waits for calls in place of its event loop, and looks when one wakes it.
  await registry.countUsage();
  return (await statistics).total_physical_size;
}

it("the heap of the thread is small again after many calls, and calls go on", async () => {
  const { registry, thread } = await open();
  for (let pod = 0; pod < CYCLES; pod += AT_ONCE) await cycle(registry, pod);
  const before = await heapOf(registry, thread);
  const [, claimed] = await Promise.all([registry.trimMemory?.(), registry.claim(claimOf(CYCLES))]);
  expect(claimed.kind).toBe("bound");
  expect(await heapOf(registry, thread)).toBeLessThan(before - 1_000_000);
});

it("a closed registry has nothing to return", async () => {
  const { registry } = await open();
  await registry.close();
  await expect(registry.trimMemory?.()).resolves.toBeUndefined();
});
