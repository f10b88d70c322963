import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import type { FileRegistry, RecoverableRegistry } from "../../../host/registry/registry.ts";
import { openSqliteJournal, openSqliteRegistry } from "../../../host/registry/sqlite/sqlite-registry.ts";
import { cases } from "../../world/rows.ts";
import { claim as claimOf, proposal } from "../../world/subjects.ts";

interface World {
  readonly state: string;
  readonly database: string;
  readonly log: string;
  readonly notices: string[];
  /** Of journals in use. */
  readonly losses: string[];
  open(options?: { bootId?: string; isJournal?: boolean; witness?: string | undefined }): Promise<FileRegistry>;
  /** Everything as it is on the disk now. */
  snapshot(name: string): string;
  /** Ends the agent as kill -9 does: the files stay as they are. */
  crash(): Promise<void>;
}

async function withWorld(test: (world: World) => Promise<void>): Promise<void> {
  const place = fs.mkdtempSync(join(tmpdir(), "berth-loss-"));
  const state = join(place, "state");
  const opened: FileRegistry[] = [];
  const notices: string[] = [];
  const losses: string[] = [];
  const world: World = {
    ...{ state, notices, losses, database: join(state, "registry.sqlite"), log: join(state, "registry.sqlite-wal") },
    open: async ({ bootId = "boot-1", isJournal = false, witness = join(place, "run", "witness") } = {}) => {
      const registry = await (isJournal ? openSqliteJournal : openSqliteRegistry)({
        ...{ directory: state, witness, bootId, nowMs: () => 1_000_000, lockWaitMs: 0, onFreed: () => {} },
        ...{ onDeath: () => {}, onNotice: (text) => notices.push(text), faultCounter: createFaultCounter() },
        onRowsLost: (text) => losses.push(text),
        cooldowns: { defaultMs: 1_000, byPool: new Map() },
      });
      opened.push(registry);
      return registry;
    },
    snapshot: (name) => {
      fs.cpSync(state, join(place, name), { recursive: true });
      return join(place, name);
    },
    crash: async () => {
      const image = world.snapshot("crash");
      const witness =
        fs.existsSync(join(place, "run")) &&
        fs.cpSync(join(place, "run"), join(place, "run-crash"), { recursive: true });
      for (const registry of opened.splice(0)) await registry.close();
      fs.rmSync(state, { recursive: true, force: true });
      fs.cpSync(image, state, { recursive: true });
      if (witness !== false) fs.cpSync(join(place, "run-crash"), join(place, "run"), { recursive: true });
    },
  };
  try {
    await test(world);
  } finally {
    for (const registry of opened) await registry.close();
    fs.rmSync(place, { recursive: true, force: true });
  }
}

function claim(registry: FileRegistry, number: number, container = "c"): Promise<unknown> {
  const proposals = [proposal(`10.0.${number >> 8}.${number & 255}`)];
  return registry.claim(claimOf(`o${number}`, proposals, { containerId: `${container}${number}` }));
}

async function claimAll(registry: FileRegistry, first: number, last: number, container?: string): Promise<void> {
  for (let number = first; number <= last; number++) await claim(registry, number, container);
}

/** Overwrites a page in the middle of the table, without rows of pages beside it. */
function overwriteLeaf(database: string): void {
  const pageBytes = 4_096;
  /** sqlite3.h's file format: leaf of an index B-tree, as a table without row IDs is one. */
  const leaf = 0x0a;
  const bytes = fs.readFileSync(database);
  const pages = Array.from({ length: bytes.length / pageBytes }, (_, index) => index * pageBytes);
  const own = pages.filter(
    (at) => bytes[at] === leaf && bytes.includes("Bound", at) && bytes.indexOf("Bound", at) < at + pageBytes,
  );
  const at = own[Math.floor(own.length / 2)] ?? 0;
  const file = fs.openSync(database, "r+");
  fs.writeSync(file, Buffer.alloc(pageBytes, 0xff), 0, pageBytes, at);
  fs.closeSync(file);
}

/** Ten live pods; `backup` holds the first three. */
async function withTenPods(test: (world: World, backup: string) => Promise<void>): Promise<void> {
  await withWorld(async (world) => {
    const first = await world.open();
    await claimAll(first, 1, 3);
    const backup = world.snapshot("backup");
    await claimAll(first, 4, 10);
    await world.crash();
    await test(world, backup);
  });
}

const checkWorld = (what: string, test: (world: World) => Promise<void>) => it(what, () => withWorld(test));
const checkTenPods = (what: string, test: (world: World) => Promise<void>) => it(what, () => withTenPods(test));
const half = (path: string): void => fs.truncateSync(path, Math.floor(fs.statSync(path).size / 2 / 4096) * 4096 + 100);

/** Moves the log into the table. */
const checkpoint = async (world: World) => (await world.open()).close();

type Lose = (world: World, backup: string) => unknown;
const remove = (...paths: readonly string[]) => paths.map((path) => fs.rmSync(path, { recursive: true }));
const zeroPage = (path: string) => fs.writeFileSync(path, fs.readFileSync(path).fill(0, 2 * 4_096, 3 * 4_096));
const anotherIn = async (world: World): Promise<void> => {
  remove(world.state);
  const other = await world.open({ bootId: "boot-1", witness: join(world.state, "..", "other") });
  await claimAll(other, 1, 20);
  await other.close();
};

/** Patterns of the reasons. */
const LOSSES = cases<Lose>`
  whose files were removed ${({ database, log }) => remove(database, log)} => missing or empty
  whose directory was removed ${({ state }) => remove(state)} => missing or empty
  that is empty ${({ database, log }) => [fs.writeFileSync(database, ""), remove(log)]} => missing or empty
  that is no database ${({ database, log }) => [database, log].map((path) => fs.writeFileSync(path, "x".repeat(9_000)))}
    => damaged \(file is not a database
  whose log was removed ${({ log }) => remove(log)} => missing or empty|older than
  whose log was cut ${({ log }) => half(log)} => older than .* the last \d+ commits are missing
  that was brought back from a backup ${({ state }, backup) => [remove(state), fs.cpSync(backup, state, { recursive: true })]}
    => older than .* the last 7 commits are missing
  of which an agent has written and cut the log into the table, and that is cut then ${(world) => checkpoint(world).then(() => half(world.database))}
    => damaged
  one page of which was overwritten ${(world) => checkpoint(world).then(() => zeroPage(world.database))} => damaged
  that is another one ${anotherIn} => not the one that this node has used
`.map(([what, lose, reason]) => [what, lose, new RegExp(reason)] as const);

describe("a registry", () => {
  it.each(LOSSES)("%s gives out nothing, and takes every DEL", (_what, lose, reason) =>
    withTenPods(async (world, backup) => {
      await lose(world, backup);
      for (const _start of ["first", "second"]) {
        const registry = await world.open();
        expect(registry.trouble).toMatch(reason);
        expect(registry.trouble).toContain(world.database);
        expect(registry.trouble).toContain('run "berthctl recover"');
        await expect(claim(registry, 77)).rejects.toThrow(reason);
        await registry.release({ containerId: "c2", ifName: "eth0" });
        await registry.probe();
        expect(registry.trouble).toMatch(reason);
        await registry.close();
      }
      const next = await world.open({ bootId: "boot-2" });
      expect(next.trouble).toBeUndefined();
      await claim(next, 77);
    }),
  );

  it.each(LOSSES.filter((_loss, index) => index % 3 === 0))(
    "%s heals by itself where the API server has all of it",
    (_what, lose, reason) =>
      withTenPods(async (world, backup) => {
        await lose(world, backup);
        const journal = await world.open({ isJournal: true });
        expect([journal.trouble, world.notices.length]).toEqual([undefined, 1]);
        expect(world.notices.join()).toMatch(reason);
        // Its rows may be of addresses that other pods have by now, and lack those that its pods have.
        expect(await journal.list(undefined, 100)).toEqual([]);
        await claim(journal, 77);
      }),
  );

  checkWorld("a page of which is overwritten in a cluster is written anew with all other rows", async (world) => {
    // More than SQLite keeps in memory.
    const rows = 3_000;
    const journal = await world.open({ isJournal: true });
    await claimAll(journal, 1, rows, "c".repeat(600));
    await journal.close();
    const again = await world.open({ isJournal: true });
    const cooldownMs = 77_000;
    again.setCooldowns({ defaultMs: cooldownMs, byPool: new Map() });
    const versions = (await again.list(undefined, rows)).map(({ version }) => version);
    overwriteLeaf(world.database);
    await expect(again.list(undefined, rows)).rejects.toThrow("is damaged");
    const left = await again.list(undefined, rows);
    expect(left.length).toBeGreaterThan(rows - 100);
    expect(left.length).toBeLessThan(rows);
    expect(world.losses).toEqual([expect.stringContaining(`with the ${left.length} rows that can be read`)]);
    await claim(again, rows + 1);
    const [row] = await again.findOwner(`o${rows + 1}`);
    expect(row?.version).toBeGreaterThan(Math.max(...versions));
    await again.release({ containerId: `c${rows + 1}`, ifName: "eth0" });
    expect(await again.findOwner(`o${rows + 1}`)).toMatchObject([{ freeAtMs: 1_000_000 + cooldownMs }]);
    await world.crash();
    await (await world.open({ isJournal: true })).close();
    expect(world.notices).toEqual([]);
  });

  checkTenPods("that is found damaged at the start in a cluster counts on", async (world) => {
    await checkpoint(world);
    const version = 10;
    zeroPage(world.database);
    const journal = await world.open({ isJournal: true });
    await claim(journal, 77);
    expect((await journal.findOwner("o77"))[0]?.version).toBeGreaterThan(version);
  });

  checkTenPods("that is whole after a crash, and after a stop, has lost nothing", async (world) => {
    for (const _start of ["after the crash", "after a stop"]) {
      const registry = await world.open();
      expect([registry.trouble, (await registry.list(undefined, 100)).length]).toEqual([undefined, 10]);
      await registry.close();
    }
    expect(world.notices).toEqual([]);
  });

  checkTenPods("of a node whose witness was lost has lost nothing, unless it is missing", async (world) => {
    const other = join(world.state, "..", "elsewhere");
    const registry = await world.open({ witness: other });
    expect(registry.trouble).toBeUndefined();
    await registry.close();
    fs.rmSync(other);
    fs.rmSync(world.database);
    const empty = await world.open({ witness: other });
    expect(empty.trouble).toMatch(/missing or empty/);
  });

  checkWorld("that was removed before anything was recorded has lost nothing", async (world) => {
    await (await world.open()).close();
    fs.rmSync(world.state, { recursive: true });
    const next = await world.open();
    expect(next.trouble).toBeUndefined();
    await claim(next, 1);
  });

  const replaceFile = ({ database }: World): void => {
    fs.copyFileSync(database, `${database}.new`);
    remove(database);
    fs.copyFileSync(`${database}.new`, database);
  };
  const ACCIDENTS: [what: string, happens: (world: World) => unknown, reason: RegExp][] = [
    ["file is removed", ({ database }) => remove(database), /registry\.sqlite was removed while the agent ran/],
    ["log is removed", ({ log }) => remove(log), /registry\.sqlite-wal was removed while/],
    ["directory is removed", ({ state }) => remove(state), /was removed while/],
    ["file is replaced", replaceFile, /was (replaced|cut) while/],
    ["log is cut", ({ log }) => fs.truncateSync(log, 4_096), /was truncated while/],
  ];
  it.each(ACCIDENTS)("whose %s gives out nothing from then on, and takes every DEL", (_what, happens, reason) =>
    withWorld(async (world) => {
      const registry = await world.open();
      await claimAll(registry, 1, 10);
      happens(world);
      // A look and a DEL hide nothing.
      await registry.findAttachment({ containerId: "c3", ifName: "eth0" });
      await registry.release({ containerId: "c3", ifName: "eth0" });
      await expect(claim(registry, 77)).rejects.toThrow(reason);
      expect(registry.trouble).toMatch(reason);
      await registry.release({ containerId: "c2", ifName: "eth0" });
      await registry.close();
      fs.mkdirSync(world.state, { recursive: true });
      const next = await world.open();
      expect(next.trouble).toBeDefined();
      await expect(claim(next, 77)).rejects.toThrow("berthctl recover");
    }),
  );

  it.each(ACCIDENTS)("whose %s in a cluster is written anew with all its rows", (_what, happens, reason) =>
    withWorld(async (world) => {
      const journal = await world.open({ isJournal: true });
      await claimAll(journal, 1, 9);
      await journal.claim(claimOf("o10", [proposal("10.0.0.10")], { netns: "/run/netns/x", netnsCookie: 7n }));
      const all = await journal.list(undefined, 100);
      happens(world);
      await claim(journal, 11);
      expect(world.notices.join()).toMatch(reason);
      await journal.close();
      const next = await world.open({ isJournal: true });
      expect([next.trouble, (await next.list(undefined, 100)).slice(0, 10)]).toEqual([undefined, all]);
    }),
  );
});

checkWorld("recovery leaves an address to the pod that got it after the search", async (world) => {
  const registry = (await world.open()) as RecoverableRegistry;
  const about = { owner: "old", containerId: "old", ifName: "eth0", network: "lan", namespace: "", pod: "" };
  const found = { ...proposal("10.0.0.1"), ...about };
  await claim(registry, 1);
  await registry.recover([found], []);
  const row = await registry.findAddress(found.space, found.ip);
  expect(row?.containerId).toBe("c1");
  // The other address had a row that has expired since.
  const both = [found, { ...found, ...proposal("10.0.0.2") }].map((each) => ({ ...each, seenVersion: row?.version }));
  await registry.recover(both, []);
  for (const { space, ip } of both) expect((await registry.findAddress(space, ip))?.containerId).toBe("old");
});
