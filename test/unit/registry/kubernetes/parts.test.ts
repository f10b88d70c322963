/** The small parts of the cluster's registry. */

import { describe, expect, it } from "vitest";
import { DOUBT_MS, MAX_FORMER_OBJECTS, ObjectMemory } from "../../../../host/registry/kubernetes/address-states.ts";
import { Backlog, RETRY_FIRST_MS, RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import { foreignOf, type KnownObject, specOf } from "../../../../host/registry/kubernetes/known-object.ts";
import { packUsed } from "../../../../host/registry/kubernetes/survey.ts";
import { TIGHT_MS, TightPools } from "../../../../host/registry/kubernetes/tight-pools.ts";
import type { IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { CONFLICT } from "../registry-quarantine-suite.ts";
import { ip, proposal, spanOfTen } from "../registry-suite.ts";

const PLACE = { space: "", ip: ip("10.0.0.1") };

describe("backlog", () => {
  it("is due at once, and after a failure later each time, up to a limit", () => {
    const backlog = new Backlog(() => 1);
    backlog.add("x", PLACE);
    expect(backlog.due(0)).toEqual([PLACE]);
    const pauses: number[] = [];
    for (let failure = 0; failure < 8; failure++) {
      backlog.fail("x", PLACE, 0);
      backlog.add("x", PLACE);
      let nowMs = 0;
      while (backlog.isWaiting("x", nowMs)) nowMs += 500;
      expect(backlog.due(nowMs)).toEqual([PLACE]);
      pauses.push(nowMs);
    }
    expect(pauses.slice(0, 3)).toEqual([RETRY_FIRST_MS, RETRY_FIRST_MS * 2, RETRY_FIRST_MS * 4]);
    expect(pauses.at(-1)).toBe(RETRY_MAX_MS);
    backlog.done("x");
    expect([backlog.size, backlog.due(RETRY_MAX_MS)]).toEqual([0, []]);
  });

  it("spreads the pauses down to half", () => {
    const backlog = new Backlog(() => 0);
    backlog.fail("x", PLACE, 0);
    expect([backlog.isWaiting("x", RETRY_FIRST_MS / 2 - 1), backlog.isWaiting("x", RETRY_FIRST_MS / 2)]).toEqual([true, false]); // biome-ignore format: one thought
  });
});

describe("object memory", () => {
  const known: KnownObject = { uid: "u", resourceVersion: "10", state: "Bound", node: "here", podUid: "a", ifName: "eth0" }; // biome-ignore format: one thought

  it("rule 16: an event that is older than the last answer changes nothing", () => {
    const memory = new ObjectMemory({ node: "here", nowMs: () => 0 });
    memory.remember("x", known);
    memory.remember("x", { ...known, resourceVersion: "9", state: "Cooling" });
    expect(memory.find("x")).toEqual(known);
    memory.remember("x", { ...known, resourceVersion: "11", node: "there" });
    expect(memory.find("x")).toBeUndefined();
  });

  it("rule 16: an event that is older than the deletion makes nothing known", () => {
    const memory = new ObjectMemory({ node: "here", nowMs: () => 0 });
    memory.remember("x", "absent", known);
    expect([memory.observe("x", known), memory.find("x")]).toEqual([false, undefined]);
    expect([memory.observe("x", { ...known, uid: "v", resourceVersion: "12" }), memory.observeEnd("x", "u")]).toEqual([true, false]); // biome-ignore format: one thought
    expect(memory.find("x")?.uid).toBe("v");
    expect([memory.observeEnd("x", "v"), memory.find("x")]).toEqual([true, undefined]);
  });

  it("rule 16: no more ends are remembered than MAX_FORMER_OBJECTS", () => {
    const memory = new ObjectMemory({ node: "here", nowMs: () => 0 });
    for (let at = 0; at <= MAX_FORMER_OBJECTS; at++) memory.remember(`x${at}`, "absent", known);
    expect([memory.observe("x0", known), memory.observe("x1", known)]).toEqual([true, false]);
  });

  it("rule 4: a write without an answer may be carried out for a while, and nothing is known", () => {
    const memory = new ObjectMemory({ node: "here", nowMs: () => 100 });
    memory.remember("x", known);
    memory.doubt("x");
    expect([memory.find("x"), memory.doubtfulUntilMs("x")]).toEqual([undefined, 100 + DOUBT_MS]);
    memory.conclude("x");
    expect(memory.doubtfulUntilMs("x")).toBe(0);
  });
});

describe("tight pools", () => {
  const sizes = new Map([
    ["small", 256],
    ["large", 257],
  ]);

  it("rule 10: are small, or used by 80 %, or wanted not long ago, or have another name now", () => {
    let nowMs = 0;
    let share = 0.79;
    const pools = new TightPools({ poolSize: (pool) => sizes.get(pool), usedShare: () => share, nowMs: () => nowMs });
    expect(["small", "large", "gone"].map((pool) => pools.isTight(pool))).toEqual([true, false, true]);
    share = 0.8;
    expect(pools.isTight("large")).toBe(true);
    share = 0;
    pools.note("large");
    expect(pools.isTight("large")).toBe(true);
    nowMs = TIGHT_MS;
    expect(pools.isTight("large")).toBe(false);
  });
});

describe("survey", () => {
  it("packs names and own addresses of the span, each once and in order", () => {
    const names = [
      "10.0.0.3",
      "10.0.0.1",
      "11.0.0.1",
      "10.0.0.2.lab",
      "fd00-0000-0000-0000-0000-0000-0000-0001",
      "odd",
    ];
    const own = Uint8Array.from([10, 0, 0, 2, 10, 0, 0, 3]);
    expect([...packUsed(spanOfTen(), names, own)]).toEqual([10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3]);
    const six = { space: "", family: 6 as const, first: ip("fd00::").value, last: ip("fd00::ff").value };
    expect([...packUsed(six, names, new Uint8Array())].slice(-2)).toEqual([0, 1]);
  });
});

describe("the object of a row", () => {
  const row = {
    ...{ ...proposal("10.0.0.1"), state: "Bound" as const, owner: "a", containerId: "secret", network: "net" },
    ...{ namespace: "shop", pod: "web-0", sinceMs: 0, version: 1, quarantine: CONFLICT },
    workload: { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" },
  };
  const place = { node: "here", since: "2026-11-20T04:00:00Z" };

  it("names who has it, and no container", () => {
    const spec = specOf(row, "Bound", place);
    const holder = { namespace: "shop", pod: "web-0", podUid: "a", ifName: "eth0", node: "here" };
    expect(spec).toMatchObject({ state: "Bound", holders: [holder], workload: { ...row.workload, ifName: "eth0" }, ...place }); // biome-ignore format: one thought
    expect([spec.quarantine, JSON.stringify({ ...spec, ip: "" }).includes("secret")]).toEqual([undefined, false]);
  });

  it.each([
    ["Cooling" as const, { holders: [], workload: undefined, quarantine: undefined }],
    ["Kept" as const, { holders: [], workload: { ...row.workload, ifName: "eth0" }, quarantine: undefined }],
    ["Quarantined" as const, { holders: [], workload: undefined, quarantine: { reason: "Conflict", mac: CONFLICT.mac, parent: CONFLICT.parent } }], // biome-ignore format: one line each
  ])("in state %s has what belongs to it", (state, expected) => {
    const { holders, workload, quarantine } = specOf(row, state, place);
    expect({ holders, workload, quarantine }).toEqual(expected);
  });

  it("says in state Kept for which NIC it is kept, and of which namespace the workload is", () => {
    const spec = specOf(row, "Kept", place);
    const object: IpAllocation = { kind: "IPAllocation", name: "10.0.0.1", uid: "u", resourceVersion: "7", deleting: false, spec }; // biome-ignore format: one thought
    expect(foreignOf(object, 0)).toMatchObject({ ifName: "eth0", namespace: "shop", owner: "", version: -7 });
  });
});
