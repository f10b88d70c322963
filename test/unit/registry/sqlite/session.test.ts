import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, vi } from "vitest";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { CHECKPOINT_QUIET_MS, COMMITS_PER_CHECKPOINT } from "../../../../host/registry/sqlite/batch.ts";
import type { CallMessage } from "../../../../host/registry/sqlite/operation.ts";
import { SqliteSession } from "../../../../host/registry/sqlite/session.ts";
import { claim, proposal } from "../../../world/subjects.ts";

const EVENTS = { onWaiting: () => {}, onNotice: () => {}, onRowsLost: () => {} };

function claimOf(id: number): CallMessage {
  const proposals = [proposal(`10.0.${id >> 8}.${id & 255}`)];
  return { id, method: "claim", args: [claim(`uid-${id}`, proposals), 1] };
}

/** Returns the number of addresses that the database has without its log. */
function countWithoutLog(directory: string): number {
  const copy = join(directory, "copy");
  copyFileSync(join(directory, "registry.sqlite"), copy);
  const database = new DatabaseSync(copy);
  try {
    return Number(database.prepare("SELECT count(*) AS count FROM allocation").get()?.count);
  } finally {
    database.close();
    rmSync(copy);
  }
}

/**
 * Runs `commits` claims, then the groups of calls, a pause before each; returns how many addresses are in the
 * database itself.
 */
function countAfter(commits: number, pauseMs: number, ...groups: readonly (readonly CallMessage[])[]): number {
  const directory = mkdtempSync(join(tmpdir(), "berth-session-"));
  const options = {
    ...{ directory, witness: undefined, bootId: "boot", nowMs: 1, lockWaitMs: 0, isJournal: false },
    ...{ cooldowns: { defaultMs: 1, byPool: new Map() }, faultPlan: undefined, faultCounter: createFaultCounter() },
  };
  // Closed and opened again, the database has its tables.
  new SqliteSession(options, EVENTS).close();
  const session = new SqliteSession(options, EVENTS);
  let nowMs = 5_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  try {
    for (let id = 0; id < commits; id++)
      expect(session.run([claimOf(id)])).toMatchObject([{ value: { kind: "bound" } }]);
    for (const calls of groups) {
      nowMs += pauseMs;
      session.run(calls);
    }
    return countWithoutLog(directory);
  } finally {
    clock.mockRestore();
    session.close();
    rmSync(directory, { recursive: true });
  }
}

const probe: CallMessage = { id: 1_000, method: "probe", args: [false] };
const expire: CallMessage = { id: 1_001, method: "expire", args: [1] };
const [enough, pause] = [COMMITS_PER_CHECKPOINT, CHECKPOINT_QUIET_MS];

it.each([
  ["in a pause after enough commits", enough, pause, [probe], enough],
  ["not before the pause is long enough", enough, pause - 1, [probe], 0],
  ["not for a few commits", enough - 1, pause, [probe], 0],
  ["when the probe comes with other calls", enough, pause, [expire, probe], enough],
] as const)("the log is written into the database %s", (_, commits, pauseMs, calls, written) =>
  expect(countAfter(commits, pauseMs, calls)).toBe(written),
);

it("a log that was written is not written again before as many commits have come", () =>
  expect(countAfter(enough, pause, [probe], [claimOf(500)], [probe])).toBe(enough));
