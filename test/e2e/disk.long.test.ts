import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { createFaultCounter } from "../../host/lib/fault.ts";
import type { FileRegistry } from "../../host/registry/registry.ts";
import { RESERVE_BYTES, ReserveFile } from "../../host/registry/sqlite/reserve-file.ts";
import { openSqliteRegistry } from "../../host/registry/sqlite/sqlite-registry.ts";
import { requireCommand, runCommand } from "../lab/command.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";
import { ip } from "../world/values.ts";

/** A kubelet runs 110 by default. */
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

/** A file system of its own on a file, which can be aborted as by a failing disk. */
async function withExt4(test: (directory: string, disk: { remount(): Promise<void> }) => Promise<void>): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "berth-ext4-"));
  const [image, directory] = [join(place, "image"), join(place, "state")];
  mkdirSync(directory);
  await requireCommand(["sh", "-c", `truncate -s 24M ${image} && mkfs.ext4 -q -F ${image}`]);
  // One loop device for all mounts: those that `mount -o loop` makes go some time after their umount.
  const device = (await requireCommand(["losetup", "--find", "--show", image])).trim();
  const mount = (): Promise<unknown> => requireCommand(["mount", device, directory]);
  const umount = (): Promise<unknown> => requireCommand(["umount", directory]);
  await mount();
  try {
    await test(directory, {
      remount: async () => {
        await umount();
        // The kernel may still have the device for a moment after the umount.
        const { exitCode } = await eventually(
          () => runCommand(["e2fsck", "-fy", device]),
          (outcome) => outcome.exitCode <= 1,
        );
        expect(exitCode).toBeLessThanOrEqual(1);
        await mount();
      },
    });
  } finally {
    await requireCommand(["sh", "-c", `! mountpoint -q ${directory} || umount ${directory}`]);
    await requireCommand(["losetup", "--detach", device]);
    rmSync(place, { recursive: true });
  }
}

const WIDE = { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.8.0.0/16", { default: true }) };

/** STATUS as a runtime asks it, and the words that a person reads. */
async function readinessOf(
  world: NetnsWorld,
): Promise<{ exitCode: number; code?: number; status: string; problems: string }> {
  const status = await world.call("STATUS", "", { conf: { cniVersion: "1.1.0" } });
  const { body } = await world.agent.request("/v1/health");
  const health: { status: string; problems: string[] } = JSON.parse(body);
  return {
    exitCode: status.exitCode,
    code: status.stdout?.code,
    status: health.status,
    problems: health.problems.join("; "),
  };
}

async function becomesReady(world: NetnsWorld): Promise<void> {
  const ready = { exitCode: 0, code: undefined, status: "ready", problems: "" };
  await expect.poll(() => readinessOf(world), PATIENCE).toEqual(ready);
  await world.add("after");
}

/** Both name the obstacle, without any ADD that would have met it. */
async function becomesUnready(world: NetnsWorld, reason: RegExp): Promise<void> {
  const found = await eventually(
    () => readinessOf(world),
    ({ status, exitCode }) => status !== "ready" && exitCode !== 0,
    20_000,
  );
  expect(found).toMatchObject({ exitCode: 1, code: 51, status: "not-ready", problems: expect.stringMatching(reason) });
  expect((await world.refused("ADD", "during")).code).toBe(107);
}

async function fill(directory: string): Promise<void> {
  await requireCommand(["sh", "-c", `cat /dev/zero > ${directory}/filler || true`]);
}

function openIn(directory: string, bootId = "boot-1"): Promise<FileRegistry> {
  return openSqliteRegistry({
    ...{ directory, bootId, nowMs: () => 1_000_000, lockWaitMs: 0, onFreed: () => {}, onDeath: () => {} },
    ...{ cooldowns: { defaultMs: 1_000, byPool: new Map() }, faultCounter: createFaultCounter() },
  });
}

describe("a full state directory", () => {
  it("records the DELs of all pods of a node", () =>
    withDisk("6m", async (stateDir) =>
      withWorld(
        WIDE,
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

describe("an agent that cannot record", () => {
  it("says so while its disk is full, and takes every DEL", () =>
    withDisk("6m", (stateDir) =>
      withWorld(
        WIDE,
        async (world) => {
          await world.add("before");
          await fill(stateDir);
          await becomesUnready(world, /registry\.sqlite has no room/);
          await world.del("before");
          rmSync(join(stateDir, "filler"));
          await becomesReady(world);
        },
        { stateDir },
      ),
    ));

  it("says so while its file may not be changed", () =>
    withExt4((stateDir) =>
      withWorld(
        WIDE,
        async (world) => {
          await world.add("before");
          const files = [join(stateDir, "registry.sqlite"), join(stateDir, "registry.sqlite-wal")];
          await requireCommand(["chattr", "+i", ...files]);
          try {
            await becomesUnready(world, /registry\.sqlite cannot be written/);
          } finally {
            await requireCommand(["chattr", "-i", ...files]);
          }
          await becomesReady(world);
        },
        { stateDir },
      ),
    ));

  it("says so when its file system gives up, and counts rows not written through as lost", () =>
    withExt4((stateDir, disk) =>
      withWorld(
        WIDE,
        async (world) => {
          for (let pod = 0; pod < 18; pod++) await world.add(`c${pod}`);
          await requireCommand(["mount", "-o", "remount,abort", stateDir]);
          await becomesUnready(world, /registry\.sqlite cannot be written/);
          await world.agent.kill("SIGKILL");
          await disk.remount();
          await world.agent.start();
          const left = (await world.usage()).Bound ?? [];
          expect(left.length).toBeLessThan(18);
          await becomesUnready(world, /older than what this node has recorded|missing or empty/);
          await world.del("c17");
        },
        { stateDir },
      ),
    ));

  it("takes back the room of its log before it refuses an ADD", () =>
    withDisk("6m", (stateDir) =>
      withWorld(
        WIDE,
        async (world) => {
          const lane = async (number: number): Promise<void> => {
            for (let round = 0; round < 100; round++) {
              await world.add(`c${number}-${round}`);
              await world.del(`c${number}-${round}`);
            }
          };
          await Promise.all([lane(0), lane(1), lane(2), lane(3)]);
        },
        { stateDir },
      ),
    ));
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
    for (const part of [
      "TRIGGER netns_follows",
      "TRIGGER netns_ends",
      "TABLE netns",
      "TABLE owner",
      "INDEX quarantined",
    ])
      file.exec(`DROP ${part}`);
    for (const column of ["netns", "mac", "reason", "foreign_mac", "parent", "probe_at", "confirmed", "workload"]) {
      file.exec(`ALTER TABLE allocation DROP COLUMN ${column}`);
    }
    file.exec("DROP TABLE identity; PRAGMA user_version = 1");
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
