import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openPluginLogs } from "../../host/agent/coordinator/plugin-logs.ts";
import { LOG_RECHECK_MS } from "../../host/agent/log/log-writer.ts";
import type { Log } from "../../host/lib/log.ts";
import { requireCommand } from "../lab/command.ts";
import { recordLog, until } from "../world/recorded-log.ts";

interface World {
  readonly directory: string;
  readonly lines: string[];
  log(name: string): Log;
  pass(milliseconds: number): void;
  remount(option: string): Promise<unknown>;
}

/** A small disk of its own as log directory. */
async function withDisk(options: string, test: (world: World) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "berth-log-disk-"));
  await requireCommand(["mount", "-t", "tmpfs", "-o", options, "berth-test", directory]);
  const { log, lines } = recordLog();
  let now = 0;
  const logs = openPluginLogs({ directory, isAdministrators: () => true, log, nowMs: () => now });
  try {
    await test({
      ...{ directory, lines },
      log: (name) => logs.for({ logFile: `/var/log/vendor/${name}`, logLevel: "debug" }),
      pass: (milliseconds) => {
        now += milliseconds;
      },
      remount: (option) => requireCommand(["mount", "-o", `remount,${option}`, directory]),
    });
  } finally {
    await logs.close();
    await requireCommand(["umount", directory]);
    rmSync(directory, { recursive: true });
  }
}

const LOST = "warn Writing the coordinator's log file failed; lines are lost";
const BACK = "info Writing the coordinator's log file works again";

describe("the coordinator's log on a bad disk", () => {
  it("a full disk costs lines, no call; every whole line is JSON", () =>
    withDisk("size=64k", async ({ directory, log, lines }) => {
      const path = join(directory, "a.log");
      const filler = join(directory, "filler");
      log("a.log").info("one");
      await until(() => readFileSync(path, "utf8").endsWith("\n"));
      await requireCommand(["sh", "-c", `cat /dev/zero > ${filler} || true`]);
      for (let n = 0; n < 20; n++) log("a.log").info(`number ${n} ${"y".repeat(900)}`);
      await until(() => lines.length === 1);
      expect(lines).toEqual([LOST]);
      rmSync(filler);
      log("a.log").info("last");
      await until(() => lines.length === 2);
      expect(lines).toEqual([LOST, BACK]);
      const texts = readFileSync(path, "utf8").split("\n").slice(0, -1);
      const whole = texts.flatMap((text) => (text.endsWith("}") ? [String(JSON.parse(text).msg)] : []));
      expect([whole.at(0), whole.at(-2), whole.at(-1)]).toEqual([
        "one",
        "At most 20 lines before this one are missing",
        "last",
      ]);
      expect(texts.length - whole.length).toBeLessThanOrEqual(1);
    }));

  it("a file that cannot be made costs lines, no call", () =>
    withDisk("size=64k,nr_inodes=3", async ({ directory, log, lines, pass }) => {
      for (const name of ["x", "y"]) writeFileSync(join(directory, name), "");
      log("a.log").info("one");
      await until(() => lines.length === 1);
      rmSync(join(directory, "x"));
      pass(LOG_RECHECK_MS);
      log("a.log").info("two");
      await until(() => lines.length === 2);
      expect(lines).toEqual([LOST, BACK]);
    }));

  it("a disk that is read only costs lines, no call", () =>
    withDisk("size=64k", async ({ log, lines, pass, remount }) => {
      await remount("ro");
      log("a.log").info("one");
      await until(() => lines.length === 1);
      await remount("rw");
      pass(LOG_RECHECK_MS);
      log("a.log").info("two");
      await until(() => lines.length === 2);
      expect(lines).toEqual([LOST, BACK]);
    }));

  it("a device is refused without being opened for writing", () =>
    withDisk("size=64k", async ({ directory, log }) => {
      mkdirSync(join(directory, "dev"));
      await requireCommand(["mknod", join(directory, "dev", "full"), "c", "1", "7"]);
      expect(() => log("dev/full")).toThrow('found "/var/log/vendor/dev/full", which is a device');
    }));
});
