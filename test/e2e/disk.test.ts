import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { RESERVE_BYTES } from "../../host/registry/limits.ts";
import type { Registry } from "../../host/registry/registry.ts";
import { ReserveFile } from "../../host/registry/reserve-file.ts";
import { openSqliteRegistry } from "../../host/registry/sqlite-registry.ts";
import { requireCommand } from "../../scripts/lab/command.ts";
import { ip } from "../unit/ipam/subjects.ts";
import { CONF, ipPool, withWorld } from "./world.ts";

/** A kubelet runs 110 unless told otherwise. */
const PODS = 180;

async function withDisk(size: string, test: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "berth-disk-"));
  await requireCommand(["mount", "-t", "tmpfs", "-o", `size=${size}`, "berth-test", directory]);
  try {
    await test(directory);
  } finally {
    await requireCommand(["umount", directory]);
    rmSync(directory, { recursive: true });
  }
}

async function fill(directory: string): Promise<void> {
  await requireCommand(["sh", "-c", `cat /dev/zero > ${directory}/filler || true`]);
}

function openIn(directory: string, bootId = "boot-1"): Promise<Registry> {
  return openSqliteRegistry({
    ...{ directory, bootId, nowMs: () => 1_000_000, lockWaitMs: 0, onFreed: () => {}, onDeath: () => {} },
    ...{ cooldowns: { defaultMs: 1_000, byPool: new Map() }, faultCounter: createFaultCounter() },
  });
}

describe("a full state directory", () => {
  it("records the DELs of all pods of a node", () =>
    withDisk("6m", async (stateDir) =>
      withWorld(
        { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) },
        async (world) => {
          const pods = Array.from({ length: PODS }, (_, index) => `c${index}`);
          for (const pod of pods) await world.add(pod);
          await fill(stateDir);
          for (const pod of pods) await world.del(pod);
          await world.agent.kill("SIGKILL");
          await world.agent.start();
          expect((await world.usage()).Bound).toBeUndefined();
        },
        { stateDir },
      ),
    ));

  it("does not hinder the start after a reboot", () =>
    withDisk("3m", async (directory) => {
      const before = await openIn(directory);
      const proposals = Array.from({ length: PODS }, (_, index) => {
        return { space: "", ip: ip(`10.8.0.${index + 1}`), prefixLength: 16, pool: "wide", ifName: "eth0" };
      });
      const claimant = { owner: "a", namespace: "", pod: "", ifName: "eth0", containerId: "c", network: "lab" };
      await before.claim({ ...claimant, proposals });
      await before.close();
      await fill(directory);
      const after = await openIn(directory, "boot-2");
      expect(await after.countUsage()).toEqual([{ pool: "wide", state: "Cooling", count: PODS }]);
      await after.close();
    }));
});

describe("a registry of the first format", () => {
  const claimant = { owner: "a", namespace: "", pod: "", ifName: "eth0", containerId: "c", network: "lab" };

  /** As an agent of that format has left it. */
  async function leaveFirstFormat(directory: string): Promise<void> {
    const registry = await openIn(directory);
    const proposal = { space: "", ip: ip("10.8.0.1"), prefixLength: 16, pool: "wide", ifName: "eth0" };
    await registry.claim({ ...claimant, proposals: [proposal] });
    await registry.close();
    const file = new DatabaseSync(join(directory, "registry.sqlite"));
    file.exec("DROP INDEX quarantined");
    for (const column of ["netns", "mac", "reason", "foreign_mac", "parent", "probe_at", "confirmed", "workload"]) {
      file.exec(`ALTER TABLE allocation DROP COLUMN ${column}`);
    }
    file.exec("PRAGMA user_version = 1");
    file.close();
  }

  it("is brought up to date on a full disk, with the reserve's room", () =>
    withDisk("3m", async (directory) => {
      await leaveFirstFormat(directory);
      await fill(directory);
      const registry = await openIn(directory);
      expect(await registry.release({ containerId: "c", ifName: "eth0" })).toHaveLength(1);
      expect(await registry.countUsage()).toEqual([{ pool: "wide", state: "Cooling", count: 1 }]);
      await registry.close();
    }));

  it("stays as it is when there is no room at all", () =>
    withDisk("3m", async (directory) => {
      await leaveFirstFormat(directory);
      rmSync(join(directory, "reserve"));
      await fill(directory);
      await expect(openIn(directory)).rejects.toThrow("full");
      rmSync(join(directory, "filler"));
      const registry = await openIn(directory);
      expect(await registry.countUsage()).toEqual([{ pool: "wide", state: "Bound", count: 1 }]);
      await registry.close();
    }));
});

describe("the reserve", () => {
  it("is whole or not there at all, and takes nothing when it cannot be whole", () =>
    withDisk("3m", async (directory) => {
      const path = join(directory, "reserve");
      const reserve = new ReserveFile(path);
      writeFileSync(join(directory, "other"), Buffer.alloc(3 * 1024 * 1024 - RESERVE_BYTES / 2));
      expect(reserve.ensure()).toBe(false);
      expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
      expect(reserve.spend()).toBe(false);
      rmSync(join(directory, "other"));
      expect(reserve.ensure()).toBe(true);
      expect(statSync(path).blocks * 512).toBeGreaterThanOrEqual(RESERVE_BYTES);
      expect([reserve.spend(), reserve.spend()]).toEqual([true, false]);
    }));

  it("cannot be made where there is no directory", () => {
    const directory = mkdtempSync(join(tmpdir(), "berth-disk-"));
    mkdirSync(join(directory, "gone"));
    const reserve = new ReserveFile(join(directory, "gone", "reserve"));
    rmSync(join(directory, "gone"), { recursive: true });
    expect(reserve.ensure()).toBe(false);
    rmSync(directory, { recursive: true });
  });
});
