import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { noFaults } from "../../../../host/lib/fault.ts";
import { type Operation, SqliteBatch } from "../../../../host/registry/sqlite/batch.ts";
import { operationOf } from "../../../../host/registry/sqlite/operation.ts";
import { ReserveFile } from "../../../../host/registry/sqlite/reserve-file.ts";
import { prepareSchema } from "../../../../host/registry/sqlite/schema.ts";
import { SqliteStore } from "../../../../host/registry/sqlite/store.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

/** `PRAGMA synchronous`: https://sqlite.org/pragma.html#pragma_synchronous */
const [NORMAL, FULL] = [1, 2];

function withBatch(test: (batch: SqliteBatch, level: () => number, directory: string) => void): void {
  const directory = temporaryDirectory("berth-batch-", onTestFinished);
  const database = new DatabaseSync(join(directory, "registry.sqlite"));
  onTestFinished(() => database.close());
  database.exec("PRAGMA journal_mode = wal; PRAGMA synchronous = normal");
  prepareSchema(database);
  const cooldowns = { defaultMs: 1, byPool: new Map() };
  const store = new SqliteStore(database, { bootId: "b", cooldowns, faults: noFaults });
  const batch = new SqliteBatch({
    file: join(directory, "registry.sqlite"),
    ...{ database, store, reserve: new ReserveFile(join(directory, "reserve")), faults: noFaults },
  });
  test(batch, () => Number(database.prepare("PRAGMA synchronous").get()?.synchronous), directory);
}

function operation(run: Operation["run"], outlivesPower: boolean): Operation {
  return { id: 1, recordsRelease: false, outlivesPower, run };
}

it("clocks-and-boots: a commit waits for the disk when one of its operations must outlive the power, and only then", () =>
  withBatch((batch, level) => {
    const seen: number[] = [];
    const look = (outlivesPower: boolean): Operation => operation(() => seen.push(level()), outlivesPower);
    batch.run([look(false)]);
    batch.run([look(false), look(true)]);
    batch.run([look(false)]);
    expect(seen).toEqual([NORMAL, FULL, FULL, NORMAL]);
  }));

it("clocks-and-boots: of the registry's calls a quarantine outlives the power, a claim need not", () => {
  const outlives = (method: "quarantineAndUndo" | "claim" | "release") =>
    operationOf({ id: 1, method, args: [] }).outlivesPower;
  expect([outlives("quarantineAndUndo"), outlives("claim"), outlives("release")]).toEqual([true, false, false]);
});

it("a failure leaves the level as it was, and addresses that it had made free are not reported with the next operation", () =>
  withBatch((batch, level) => {
    const fail = operation((store) => {
      const outcome = store.claim(claim("a", [proposal("10.0.0.1")]), 0);
      store.undo(outcome.kind === "bound" ? outcome.created : [], 0);
      throw new Error("broken");
    }, true);
    const error = { message: "broken", full: false, isStorage: false, isDamage: false };
    const done = { id: 1, value: "done", freed: [] };
    expect(batch.run([fail, operation(() => "done", false)])).toEqual([{ id: 1, error }, done]);
    expect(level()).toBe(NORMAL);
  }));

/** Fails as on a full disk, until the reserve is given up. */
function onFullDisk(isSpent: () => boolean, recordsRelease: boolean): Operation {
  const run = (): unknown => {
    if (!isSpent()) throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
    return "done";
  };
  return { id: 1, recordsRelease, outlivesPower: false, run };
}

it.each([
  ["a release", true, "done"],
  ["a claim", false, undefined],
] as const)("full-disk: %s and the reserve", (_, recordsRelease, value) =>
  withBatch((batch, _level, directory) => {
    const reserve = join(directory, "reserve");
    new ReserveFile(reserve).ensure();
    const [reply] = batch.run([onFullDisk(() => !existsSync(reserve), recordsRelease)]);
    expect(reply).toMatchObject(value === undefined ? { error: { full: true } } : { value });
    expect(existsSync(reserve)).toBe(!recordsRelease);
  }),
);
