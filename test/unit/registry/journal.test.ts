/** Behaviour of a cluster's journal beyond that of every registry: a row stays until it is removed explicitly. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { isUnused } from "../../../host/registry/claims.ts";
import { type Adoption, type Journal, UNKNOWN_CONTAINER } from "../../../host/registry/journal.ts";
import { type Allocation, type Claim, type ClaimOutcome, UNATTACHED_MS } from "../../../host/registry/registry.ts";
import { openSqliteJournal } from "../../../host/registry/sqlite/sqlite-registry.ts";
import type { Workload } from "../../../host/resources/member.ts";
import { claim, claimAndRetain, proposal } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";
import { bind, CONFLICT } from "./registry-quarantine-suite.ts";
import { COOLDOWN_MS, held } from "./registry-suite.ts";

const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w-1", member: "web-0" };

class World {
  readonly freed: string[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), "berth-journal-"));
  #clockMs = 1_000_000;
  #journal: Journal | undefined;

  async open(bootId = "boot-1"): Promise<Journal> {
    await this.#journal?.close();
    const cooldowns = { defaultMs: COOLDOWN_MS, byPool: new Map() };
    const common = { bootId, cooldowns, lockWaitMs: 0, nowMs: this.nowMs, faultCounter: createFaultCounter() };
    this.#journal = await openSqliteJournal({
      ...common,
      directory: this.#directory,
      onFreed: (_space, freed) => this.freed.push(formatIp(freed)),
      onDeath: (error) => {
        throw error;
      },
    });
    return this.#journal;
  }

  advance = (milliseconds: number): void => {
    this.#clockMs += milliseconds;
  };
  nowMs = (): number => this.#clockMs;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#journal?.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function check(what: string, test: (journal: Journal, world: World) => Promise<void>): void {
  it(what, async () => {
    await using world = new World();
    await test(await world.open(), world);
  });
}

const created = (outcome: ClaimOutcome): readonly Allocation[] =>
  outcome.kind === "bound" ? outcome.created : expect.fail(`answered with ${outcome.kind}`);

function adoption(address: string, options: Partial<Adoption> = {}): Adoption {
  const place = { space: "", ip: ip(address), prefixLength: 24, pool: "blue" };
  return { ...place, state: "Bound", owner: "a", ifName: "eth0", namespace: "shop", pod: "a-0", ...options };
}

const both = (options: Partial<Claim> = {}): Claim =>
  claim("a", [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })], options);

describe("journal: a row stays until it is removed explicitly", () => {
  check("an undone claim cools and is due at once", async (journal, { freed }) => {
    await journal.undo(created(await journal.claim(claim("a", [proposal("10.0.0.1")]))));
    expect(await journal.findDue(9)).toMatchObject([{ state: "Cooling", owner: "a" }]);
    expect(freed).toEqual([]);
  });

  check("what was taken over while it cooled cools on when it is undone", async (journal, { advance }) => {
    await journal.claim(claim("a", [proposal("10.0.0.1")]));
    await journal.release({ containerId: "c-a", ifName: "eth0" });
    const cooling = await journal.findAddress("", ip("10.0.0.1"));
    const taken = await journal.claim(claim("b", [proposal("10.0.0.1", { replaces: cooling?.version ?? 0 })]));
    await journal.undo(created(taken));
    expect(await journal.findDue(9)).toEqual([]);
    advance(COOLDOWN_MS);
    expect(await journal.findDue(9)).toMatchObject([{ owner: "b" }]);
  });

  check("unattached: what was never attached is due at once, with the last NIC and by time", async (journal, world) => {
    await journal.claim(both());
    await journal.release({ containerId: "c-a", ifName: "eth0" });
    expect((await journal.findDue(9)).map(({ ifName }) => ifName)).toEqual(["net1"]);
    await journal.claim(claim("b", [proposal("10.0.0.2")], { containerId: "" }));
    world.advance(UNATTACHED_MS + 1);
    await journal.expire();
    expect((await journal.findDue(9)).map(({ owner }) => owner)).toEqual(["a", "a", "b"]);
    expect(world.freed).toEqual([]);
  });

  check("conflict: an address that leaves quarantine is due, and no longer suspect", async (journal) => {
    const found = await journal.quarantine(await bind(journal, claim("a", [proposal("10.0.0.1")])), CONFLICT);
    if (found === undefined) throw new Error("the row was changed");
    await journal.endQuarantine({ ...found, version: found.version - 1 });
    expect(await journal.findDue(9)).toEqual([]);
    await journal.endQuarantine(found);
    expect(await journal.findDue(9)).toMatchObject([{ state: "Cooling", owner: "", quarantine: undefined }]);
  });

  check("a cooldown that is over is due, the longest due first; expire frees none", async (journal, world) => {
    for (const owner of ["a", "b"]) {
      await journal.claim(claim(owner, [proposal(`10.0.0.${owner === "a" ? 1 : 2}`)]));
      await journal.release({ containerId: `c-${owner}`, ifName: "eth0" });
      world.advance(1);
    }
    world.advance(COOLDOWN_MS - 2);
    expect((await journal.findDue(9)).map(({ owner }) => owner)).toEqual(["a"]);
    world.advance(2);
    expect((await journal.findDue(1)).map(({ owner }) => owner)).toEqual(["a"]);
    expect((await journal.findDue(9)).map(({ owner }) => owner)).toEqual(["a", "b"]);
    expect([await journal.expire(), world.freed]).toEqual([undefined, []]);
  });

  check("forget deletes exactly the version it names, and tells unless others have it", async (journal, { freed }) => {
    const row = await bind(journal, claim("a", [proposal("10.0.0.1")]));
    await journal.undo([row]);
    expect([await journal.forget(row), freed]).toEqual([false, []]);
    const [due = expect.fail("It is due")] = await journal.findDue(1);
    expect([await journal.forget(due), freed]).toEqual([true, ["10.0.0.1"]]);
    const ofOtherNode = await bind(journal, claim("a", [proposal("10.0.0.1")]));
    expect([await journal.forget(ofOtherNode, true), freed]).toEqual([true, ["10.0.0.1"]]);
    expect(await journal.list(undefined, 9)).toEqual([]);
  });
});

describe("journal: the known objects of the API server", () => {
  const confirmed = (rows: readonly Allocation[]) => rows.map((row) => ({ ...row, isConfirmed: true }));

  check("what is recorded of a row that has not changed leaves its version as it is", async (journal) => {
    const rows = created(await journal.claim(claim("a", [proposal("10.0.0.1")])));
    expect(rows).toMatchObject([{ isConfirmed: false }]);
    expect(await journal.record(confirmed(rows))).toEqual(confirmed(rows));
    expect(await journal.findAddress("", ip("10.0.0.1"))).toEqual({ ...rows[0], isConfirmed: true });
  });

  check("a claim has a name, which its row keeps while it is the same NIC's", async (journal, world) => {
    const [row] = created(await journal.claim(claim("a", [proposal("10.0.0.1")])));
    expect(row?.claim).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), number: 0, earlier: [] });
    await journal.release({ containerId: "c-a", ifName: "eth0" });
    const find = async () => (await journal.findAddress("", ip("10.0.0.1"))) ?? expect.fail("It is there");
    expect((await find()).claim).toEqual(row?.claim);
    const again = claim("a", [proposal("10.0.0.1", { replaces: (await find()).version })], { containerId: "second" });
    const [same] = created(await journal.claim(again));
    expect(same?.claim).toEqual({ ...row?.claim, earlier: [row?.claim?.id] });
    await journal.release({ containerId: "second", ifName: "eth0" });
    const [other] = created(
      await journal.claim(claim("b", [proposal("10.0.0.1", { replaces: (await find()).version })])),
    );
    expect([other?.claim?.id === row?.claim?.id, other?.claim?.earlier]).toEqual([false, [row?.claim?.id]]);
    const reopened = await world.open();
    expect((await reopened.findAddress("", ip("10.0.0.1")))?.claim).toEqual(other?.claim);
  });

  check("retention: a quarantined row has neither claim nor workload", async (journal) => {
    await claimAndRetain(journal, claim("a", [proposal("10.0.0.1")], { workload: WORKLOAD }));
    const [row = expect.fail("It is there")] = await journal.findOwner("a");
    expect(await journal.quarantine(row, CONFLICT)).toMatchObject({ claim: undefined, workload: undefined });
  });

  check("retention: a row says where its workload is, and for which NIC", async (journal) => {
    const placed = { ...WORKLOAD, ifName: "net1" };
    await claimAndRetain(journal, claim("a", [proposal("10.0.0.1")], { workload: placed }));
    const old: Workload = Object({ ...WORKLOAD, namespace: undefined });
    await claimAndRetain(journal, claim("b", [proposal("10.0.0.2")], { workload: old }));
    expect((await journal.list(undefined, 9)).map(({ workload }) => workload)).toEqual([placed, WORKLOAD]);
  });

  check("node-lost: what another machine has left in it is forgotten, and reported as free", async (journal, world) => {
    expect(await journal.noteMachine("m1")).toBe(0);
    await bind(journal, claim("a", [proposal("10.0.0.1")]));
    await bind(journal, claim("b", [proposal("10.0.0.2")]));
    await journal.quarantine(await bind(journal, claim("c", [proposal("10.0.0.3")])), CONFLICT);
    const copy = await world.open("boot of m2");
    expect(await copy.noteMachine("m2")).toBe(3);
    expect(await copy.list(undefined, 10)).toEqual([]);
    expect(world.freed.toSorted()).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    await bind(copy, claim("d", [proposal("10.0.0.4")]));
    expect(await (await world.open("boot of m2")).noteMachine("m2")).toBe(0);
  });

  check("node-lost: what was claimed before it was known whose it is stays", async (journal, world) => {
    await journal.noteMachine("m1");
    const copy = await world.open("boot of m2");
    await bind(copy, claim("a", [proposal("10.0.0.1")]));
    expect(await copy.noteMachine("m2")).toBe(0);
    expect(await copy.findOwner("a")).toMatchObject([{ state: "Bound" }]);
  });

  check("clocks-and-boots: the same machine keeps its rows, also under another name", async (journal, world) => {
    await journal.noteMachine("m1");
    await bind(journal, claim("a", [proposal("10.0.0.1")]));
    const booted = await world.open("boot-2");
    expect(await booted.noteMachine("m1")).toBe(0);
    expect(await booted.noteMachine("m1 renamed")).toBe(0);
    expect((await booted.list(undefined, 10)).length).toBe(1);
  });

  check("clocks-and-boots: what another boot bound cools, and keeps its workload", async (journal, world) => {
    const claimed = await claimAndRetain(journal, claim("a", [proposal("10.0.0.1")], { workload: WORKLOAD }));
    expect(created(claimed)).toHaveLength(1);
    const after = await world.open("boot-2");
    const row = { state: "Cooling", isConfirmed: true, workload: WORKLOAD };
    expect(await after.findAddress("", ip("10.0.0.1"))).toMatchObject(row);
    expect(await after.findDue(9)).toEqual([]);
    world.advance(COOLDOWN_MS);
    expect(await after.findDue(9)).toHaveLength(1);
  });
});

describe("journal: adopted rows", () => {
  check("are confirmed, and on an unknown NIC", async (journal) => {
    const row = await journal.adopt(adoption("10.0.0.1", { workload: WORKLOAD }));
    expect(row).toMatchObject({ state: "Bound", owner: "a", containerId: UNKNOWN_CONTAINER, isConfirmed: true });
    expect(row?.workload).toEqual(WORKLOAD);
    expect(await journal.adopt(adoption("10.0.0.1", { owner: "b" }))).toBeUndefined();
  });

  check("undo: beside an ADD that was faster, a NIC gets no second address of a family", async (journal) => {
    await journal.claim(claim("a", [proposal("10.0.0.2")]));
    expect(await journal.adopt(adoption("10.0.0.1"))).toBeUndefined();
    expect(await journal.adopt(adoption("fd00::1"))).toMatchObject({ state: "Bound" });
    expect(await journal.adopt(adoption("10.0.0.3", { ifName: "net1" }))).toMatchObject({ state: "Bound" });
    const left = { state: "Cooling", workload: WORKLOAD } as const;
    expect(isUnused((await journal.adopt(adoption("10.0.0.4", left))) ?? expect.fail("It has a row"))).toBe(false);
    expect(await journal.adopt(adoption("10.0.0.1", { owner: "b" }))).toMatchObject({ state: "Bound" });
  });

  check("late-del: no DEL and no end of what was never attached releases them", async (journal, world) => {
    await journal.adopt(adoption("10.0.0.1"));
    const unknown = { containerId: UNKNOWN_CONTAINER, ifName: "eth0" };
    world.advance(UNATTACHED_MS + 1);
    await journal.expire();
    expect(await journal.findAttachment(unknown)).toEqual([]);
    expect(await journal.release(unknown)).toEqual([]);
    expect(await journal.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound" });
  });

  check("an ADD of their owner and NIC attaches them, and its DEL releases them", async (journal) => {
    await journal.adopt(adoption("10.0.0.1"));
    const outcome = await journal.claim(claim("a", [proposal("10.0.0.2")]));
    expect([held(outcome), created(outcome)]).toEqual([["10.0.0.1"], []]);
    expect(await journal.release({ containerId: "c-a", ifName: "eth0" })).toHaveLength(1);
  });

  check("of a quarantined object are asked for again", async (journal) => {
    const quarantine = { ...CONFLICT, nextProbeAtMs: 77 };
    await journal.adopt(adoption("10.0.0.1", { state: "Quarantined", owner: "", ifName: "", quarantine }));
    expect(await journal.findQuarantined({ limit: 9, dueMs: 77 })).toMatchObject([{ quarantine, containerId: "" }]);
  });
});

check("journal: a pod that is gone is collected: exactly this version, whatever the container", async (journal) => {
  const row = (await journal.adopt(adoption("10.0.0.1"))) ?? expect.fail("another owner has it");
  expect(await journal.collect({ ...row, version: row.version - 1 })).toBeUndefined();
  expect(await journal.collect(row)).toMatchObject({ state: "Cooling", owner: "a" });
  expect(await journal.collect(row)).toBeUndefined();
});

describe("journal: claimed ahead of the ADD", () => {
  check("attaches nothing, and leaves what is attached as it is", async (journal) => {
    const ahead = await journal.claim(both({ containerId: "" }));
    expect(created(ahead).map(({ containerId }) => containerId)).toEqual(["", ""]);
    expect(await journal.findAttachment({ containerId: "", ifName: "eth0" })).toEqual([]);
    await journal.claim(both());
    const late = await journal.claim(both({ containerId: "" }));
    expect(late).toMatchObject({ held: [{ containerId: "c-a" }], created: [], previous: [] });
    expect(await journal.findAttachment({ containerId: "c-a", ifName: "eth0" })).toHaveLength(1);
  });

  check("the ADD attaches it and creates nothing", async (journal) => {
    const [row] = created(await journal.claim(claim("a", [proposal("10.0.0.1")], { containerId: "" })));
    const outcome = await journal.claim(claim("a", [proposal("10.0.0.2")]));
    expect([held(outcome), created(outcome)]).toEqual([["10.0.0.1"], []]);
    if (row !== undefined) await journal.undo([row]);
    expect(await journal.findAttachment({ containerId: "c-a", ifName: "eth0" })).toMatchObject([{ state: "Bound" }]);
  });
});
