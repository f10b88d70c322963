/** The coordinator's logs in a temporary directory. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { openPluginLogs, type PluginLogs } from "../../../../host/agent/coordinator/plugin-logs.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import type { LogLevel } from "../../../../host/config/coordinator-settings.ts";
import type { Log } from "../../../../host/lib/log.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";

export interface LogWorld {
  /** Stands for /var/log/vendor/. */
  readonly directory: string;
  readonly logs: PluginLogs;
  /** Of the agent's own log. */
  readonly lines: string[];
  pass(milliseconds: number): void;
  log(name: string, logLevel?: LogLevel): Log;
  /** The file's lines once there are so many; throws when one is no JSON. */
  read(name: string, count: number): Promise<Record<string, unknown>[]>;
  refusal(name: string): string;
}

/** In a fresh directory, with a clock that stands still until `pass`. */
export async function withLogs(test: (world: LogWorld) => Promise<void> | void): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "berth-log-"));
  const directory = join(place, "vendor");
  const { log, lines } = recordLog();
  let now = 0;
  const logs = openPluginLogs({ directory, log, nowMs: () => now });
  const open = (name: string, logLevel: LogLevel = "debug"): Log =>
    logs.for({ logFile: `/var/log/vendor/${name}`, logLevel });
  const linesOf = (name: string): string[] => {
    const path = join(directory, name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  };
  try {
    await test({
      ...{ directory, logs, lines, log: open },
      pass: (milliseconds) => {
        now += milliseconds;
      },
      read: async (name, count) => {
        await until(() => linesOf(name).length >= count);
        const found = linesOf(name).map((line) => JSON.parse(line));
        expect(found).toHaveLength(count);
        return found;
      },
      refusal: (name) => {
        try {
          open(name);
        } catch (error) {
          expect(error).toBeInstanceOf(CniError);
          expect(error).toMatchObject({ code: ErrorCode.InvalidNetworkConfig });
          return error instanceof Error ? error.message : "";
        }
        return "none";
      },
    });
  } finally {
    await logs.close();
    rmSync(place, { recursive: true, force: true });
  }
}
