import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import type { FileRegistry } from "../../../../host/registry/registry.ts";
import { openSqliteRegistry, type SqliteRegistryOptions } from "../../../../host/registry/sqlite/sqlite-registry.ts";
import { MAX_AT_ONCE } from "../../../../host/registry/sqlite/store.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";
import { bind, CONFLICT, describeQuarantine } from "../registry-quarantine-suite.ts";
import { COOLDOWN_MS, describeRegistry, type SuiteWorld } from "../registry-suite.ts";
import { describeTakingBack } from "../registry-taking-back-suite.ts";

type OpenOptions = Partial<Pick<SqliteRegistryOptions, "bootId" | "lockWaitMs" | "faultPlan">>;

class World implements SuiteWorld {
  readonly directory = mkdtempSync(join(tmpdir(), "berth-registry-"));
  readonly freed: string[] = [];
  readonly deaths: Error[] = [];
  #clockMs = 1_000_000;
  #open: FileRegistry[] = [];

  async open(options: OpenOptions = {}): Promise<FileRegistry> {
    const registry = await openSqliteRegistry({
      ...{ directory: this.directory, bootId: "boot-1", nowMs: this.nowMs, lockWaitMs: 0 },
      ...{ cooldowns: { defaultMs: COOLDOWN_MS, byPool: new Map() }, faultCounter: createFaultCounter() },
      onFreed: (_space, ip) => this.freed.push(formatIp(ip)),
      onDeath: (error) => this.deaths.push(error),
      ...options,
    });
    this.#open.push(registry);
    return registry;
  }

  get registry(): FileRegistry {
    return this.#open[0] ?? expect.fail("No registry is open");
  }

  advance = (milliseconds: number): void => {
    this.#clockMs += milliseconds;
  };
  nowMs = (): number => this.#clockMs;

  async close(): Promise<void> {
    for (const registry of this.#open) await registry.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

async function withDirectory(test: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  try {
    await test(world);
  } finally {
    await world.close();
  }
}

const check = (what: string, test: (world: World) => Promise<void>) => it(what, () => withDirectory(test));

for (const describeSuite of [describeRegistry, describeTakingBack, describeQuarantine]) {
  describeSuite("SQLite registry", (test) =>
    withDirectory(async (world) => {
      await world.open();
      await test(world);
      expect(world.deaths).toEqual([]);
    }),
  );
}

const ADDRESS = ip("10.0.0.1");
const CLAIM = claim("a", [proposal("10.0.0.1")]);

describe("SQLite registry: durability", () => {
  check("clocks-and-boots: a cooldown of another boot begins anew, whatever its clock said", async (world) => {
    const before = await world.open();
    await before.claim(CLAIM);
    await before.release({ containerId: "c-a", ifName: "eth0" });
    await before.close();
    world.advance(-900_000);
    const after = await world.open({ bootId: "boot-2" });
    await after.expire();
    expect(world.freed).toEqual([]);
    world.advance(COOLDOWN_MS);
    await after.expire();
    expect(world.freed).toEqual(["10.0.0.1"]);
  });

  check("clocks-and-boots: a quarantine survives restart and reboot", async (world) => {
    const before = await world.open();
    const given = { ...CONFLICT, nextProbeAtMs: 2_000_000 };
    const found = await before.quarantine(await bind(before, CLAIM), given);
    await before.close();
    const restarted = await world.open();
    expect(await restarted.findAddress("", ADDRESS)).toEqual(found);
    await restarted.close();
    world.advance(-900_000);
    const rebooted = await world.open({ bootId: "boot-2" });
    expect(await rebooted.findAddress("", ADDRESS)).toMatchObject({
      ...{ state: "Quarantined", sinceMs: world.nowMs() },
      quarantine: { ...CONFLICT, nextProbeAtMs: world.nowMs() },
    });
  });

  check("conflict: what was bound out of quarantine and never trusted is there again after a reboot", async (world) => {
    const before = await world.open();
    const found = await before.quarantine(await bind(before, CLAIM), CONFLICT);
    const proposals = CLAIM.proposals.map((each) => ({ ...each, replaces: found?.version ?? 0 }));
    expect(await before.claim({ ...CLAIM, proposals })).toMatchObject({ held: [{ state: "Bound" }] });
    await before.close();
    const after = await world.open({ bootId: "boot-2" });
    expect(await after.findAddress("", ADDRESS)).toMatchObject({ state: "Quarantined", owner: "" });
  });

  check("clocks-and-boots: what another boot bound is dead and cools, in more than one piece", async (world) => {
    const before = await world.open();
    const all = Array.from({ length: MAX_AT_ONCE + 10 }, (_, at) => proposal(`10.0.${at >> 8}.${at & 255}`));
    await before.claim({ ...CLAIM, proposals: all });
    await before.close();
    const after = await world.open({ bootId: "boot-2" });
    expect(await after.countUsage()).toEqual([{ pool: "blue", state: "Cooling", count: MAX_AT_ONCE + 10 }]);
    world.advance(COOLDOWN_MS);
    await after.expire();
    expect([world.freed.length, world.freed.includes("10.0.0.1")]).toEqual([MAX_AT_ONCE + 10, true]);
  });

  check("uses no version twice after a restart", async (world) => {
    const before = await world.open();
    const first = await before.claim(CLAIM);
    await before.close();
    const after = await world.open();
    await after.claim({ ...CLAIM, containerId: "second" });
    if (first.kind === "bound") await after.undo(first.created);
    expect(await after.findAddress("", ADDRESS)).toMatchObject({ containerId: "second" });
  });
});

describe("SQLite registry: one agent at a time", () => {
  check("a second one says who has the directory", async (world) => {
    await world.open();
    await expect(world.open({ lockWaitMs: 100 })).rejects.toThrow(
      new RegExp(`in use by another agent \\(process ${process.pid}\\): waited 100 ms`),
    );
  });

  check("a second one takes over as soon as the first is gone", async (world) => {
    const first = await world.open();
    await first.claim(CLAIM);
    const second = world.open({ lockWaitMs: 5_000 });
    await first.close();
    expect(await (await second).list(undefined, 10)).toHaveLength(1);
  });
});

describe("SQLite registry: trouble", () => {
  check("sets a file that is no database aside, and leaves it as it is", async (world) => {
    const text = "not a database, but another file".repeat(100);
    writeFileSync(join(world.directory, "registry.sqlite"), text);
    expect(await (await world.open()).list(undefined, 10)).toEqual([]);
    expect(readFileSync(join(world.directory, "registry.sqlite.damaged"), "utf8")).toBe(text);
  });

  check("refuses the format of a newer Berth", async (world) => {
    await (await world.open()).close();
    const file = new DatabaseSync(join(world.directory, "registry.sqlite"));
    const format = file.prepare("PRAGMA user_version").get()?.user_version;
    file.exec("PRAGMA user_version = 99");
    file.close();
    await expect(world.open()).rejects.toThrow(
      `The registry has format 99; this version of Berth reads up to format ${format}. Nothing was changed; start the newer version of Berth again`,
    );
  });

  it.each([1, 2])("brings format %i up to date, with its rows", (format) =>
    withDirectory(async (world) => {
      await (await world.open()).claim(CLAIM);
      await world.registry.close();
      const file = new DatabaseSync(join(world.directory, "registry.sqlite"));
      const later = [["netns", "mac", "reason", "foreign_mac", "parent", "probe_at"], ["confirmed", "workload"]]; // biome-ignore format: by format
      file.exec("DROP TRIGGER netns_follows; DROP TRIGGER netns_ends; DROP TABLE netns");
      if (format < 2) file.exec("DROP INDEX quarantined");
      for (const column of later.slice(format - 1).flat()) file.exec(`ALTER TABLE allocation DROP COLUMN ${column}`);
      file.exec(`DROP TABLE identity; PRAGMA user_version = ${format}`);
      file.close();
      const after = await world.open();
      const found = await after.findAddress("", ADDRESS);
      expect(found).toMatchObject({ state: "Bound", owner: "a", netns: undefined, mac: undefined });
      expect(found).toMatchObject({ isConfirmed: false, workload: undefined });
      if (found !== undefined) expect(await after.quarantine(found, CONFLICT)).toMatchObject({ quarantine: CONFLICT });
    }),
  );

  check("keeps the cookie of an attachment's netns while the attachment and the boot are the same", async (world) => {
    const attach = { ...CLAIM, containerId: "c", netns: "/run/netns/c", netnsCookie: 2n ** 63n + 1n };
    let registry = await world.open();
    const cookieOf = async () => (await registry.findAddress("", ADDRESS))?.netnsCookie;
    /** Another program writes between two agents. */
    const reopenAfter = async (sql: string): Promise<void> => {
      await registry.close();
      const file = new DatabaseSync(join(world.directory, "registry.sqlite"));
      file.exec(sql);
      file.close();
      registry = await world.open();
    };
    const bound = await registry.claim(attach);
    expect(bound).toMatchObject({ kind: "bound", held: [{ netnsCookie: attach.netnsCookie }] });
    expect(await cookieOf()).toBe(attach.netnsCookie);
    await registry.release({ containerId: "c", ifName: attach.ifName });
    expect(await cookieOf()).toBe(attach.netnsCookie);
    const [cooling] = await registry.findOwner(attach.owner);
    const proposals = attach.proposals.map((each) => ({ ...each, replaces: cooling?.version ?? 0 }));
    await registry.claim({ ...attach, proposals, netnsCookie: 7n });
    expect(await cookieOf()).toBe(7n);
    await reopenAfter("UPDATE netns SET boot = 'before'");
    expect(await cookieOf()).toBeUndefined();
    await reopenAfter("UPDATE netns SET boot = (SELECT boot FROM allocation)");
    expect(await cookieOf()).toBe(7n);
    // An ADD that an older Berth serves.
    await reopenAfter("UPDATE allocation SET since = since + 1, version = version + 1");
    expect(await cookieOf()).toBeUndefined();
  });

  it.each([1, 2])("a failure at write %i of a claim leaves nothing behind, and the next claim succeeds", (number) =>
    withDirectory(async (world) => {
      const registry = await world.open({ faultPlan: { action: "fail", number } });
      await expect(registry.claim(CLAIM)).rejects.toThrow(/failed: injected by the fault plan/);
      expect(await registry.list(undefined, 10)).toEqual([]);
      expect(await registry.claim(CLAIM)).toMatchObject({ kind: "bound" });
    }),
  );

  check("one claim's failure is not its neighbours'", async (world) => {
    const registry = await world.open({ faultPlan: { action: "fail", number: 3, point: "registry.write" } });
    const owners = ["a", "b", "c", "d"];
    await Promise.all(owners.map((owner, at) => registry.claim(claim(owner, [proposal(`10.0.0.${at}`)]))));
    expect(await registry.list(undefined, 10)).toHaveLength(4);
  });

  check("refuses calls after close", async (world) => {
    const registry = await world.open();
    await registry.close();
    await expect(registry.claim(CLAIM)).rejects.toThrow("The registry is closed");
  });
});
