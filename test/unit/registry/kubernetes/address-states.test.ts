import { describe, expect, it } from "vitest";
import {
  AddressStates,
  isProber,
  LATE_WRITE_MS,
  MAX_ENDED_OBJECTS,
} from "../../../../host/registry/kubernetes/address-states.ts";
import { Backlog, RETRY_FIRST_MS, RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import type { KnownObject } from "../../../../host/registry/kubernetes/known-object.ts";
import { ip } from "../../../world/values.ts";

describe("the state of an address", () => {
  const known: KnownObject = {
    uid: "u",
    resourceVersion: "10",
    state: "Bound",
    node: "here",
    podUid: "a",
    ifName: "eth0",
  };

  it("leak: what was read and is older than the last answer changes nothing", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    states.noteAnswer("x", { ...known, resourceVersion: "9", state: "Cooling" });
    expect(states.find("x")).toEqual(known);
    states.noteAnswer("x", { ...known, resourceVersion: "11", node: "there" });
    expect(states.find("x")).toBeUndefined();
  });

  it("leak: what a list shows that is no newer than what is known changes nothing", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    expect(states.noteSeen("x", { ...known, resourceVersion: "9", state: "Cooling" })).toBe(false);
    expect(states.noteSeen("x", { ...known, state: "Cooling" })).toBe(false);
    expect(states.find("x")).toEqual(known);
    expect(states.noteSeen("x", { ...known, resourceVersion: "11", state: "Cooling" })).toBe(true);
    expect(states.find("x")?.state).toBe("Cooling");
  });

  it("leak: what was read and is older than the deletion makes nothing known", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", "absent", known);
    expect([states.noteSeen("x", known), states.find("x")]).toEqual([false, undefined]);
    expect(states.noteSeen("x", { ...known, uid: "v", resourceVersion: "12" })).toBe(true);
    expect(states.find("x")?.uid).toBe("v");
  });

  it("is at first unknown", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    expect(states.get("x").object).toEqual({ kind: "unknown", isProber: false });
  });

  it("retention: a retained object that the node no longer has is unknown, and all others stay as they are", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    for (const name of ["kept", "taken"]) states.noteAnswer(name, { ...known, state: "Kept" });
    states.noteAnswer("bound", known);
    states.noteAnswer("ended", "absent", known);
    states.forgetRetained(new Set(["kept"]));
    expect(["kept", "taken", "bound"].map((name) => states.find(name)?.state)).toEqual(["Kept", undefined, "Bound"]);
    expect(states.get("ended").object.kind).toBe("ended");
  });

  it("goes into a copy", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    const copy = new AddressStates({ node: "here", nowMs: () => 0 });
    copy.copyFrom(states);
    expect([copy.find("x"), copy.known]).toEqual([known, 1]);
  });

  it("a claim relies on what was answered, and on what was only seen if the journal knows an earlier owner", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    expect(states.findForClaim("x")).toBeUndefined();
    states.noteSeen("x", known);
    expect(states.findForClaim("x")).toBeUndefined();
    states.noteFormerOwner("x", "b");
    expect(states.findForClaim("x")).toEqual(known);
    states.noteAnswer("y", known);
    expect(states.findForClaim("y")).toEqual(known);
  });

  it("remembers an earlier owner of what is not known", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteFormerOwner("x", "b");
    expect([...states.get("x").pending.formerOwners]).toEqual(["b"]);
  });

  it("leak: another node's object has ended here at the version of the answer", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    const theirs = { ...known, node: "there", resourceVersion: "12" };
    states.noteAnswer("x", theirs);
    expect([states.known, states.noteSeen("x", theirs)]).toEqual([0, false]);
  });

  it("leak: an end that an answer has told outlives a doubt about the object", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", "absent", known);
    states.invalidate("x");
    expect(states.noteSeen("x", known)).toBe(false);
  });

  it("an object that came after an end is not forgotten with old ends", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", "absent", known);
    states.noteSeen("x", { ...known, uid: "v", resourceVersion: "12" });
    for (let at = 0; at <= MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect(states.find("x")?.uid).toBe("v");
  });

  it("a forgotten row changes nothing of a known object", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    states.noteForgotten("x");
    expect(states.get("x").object).toEqual({ kind: "known", object: known, source: "answer" });
  });

  it("leak: no more ends are remembered than MAX_ENDED_OBJECTS", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    for (let at = 0; at <= MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect([states.noteSeen("x0", known), states.noteSeen("x1", known)]).toEqual([true, false]);
  });

  it("undo: a write without an answer may be carried out for a while, and nothing is known", () => {
    let nowMs = 100;
    const states = new AddressStates({ node: "here", nowMs: () => nowMs });
    states.noteAnswer("x", known);
    states.noteWriteFailed("x", "change", false);
    expect([states.find("x"), states.get("x").pending.lateUntilMs]).toEqual([undefined, 100 + LATE_WRITE_MS]);
    states.noteFormerOwner("x", "b");
    states.noteAnswer("x", known);
    states.noteSynced("x");
    expect(states.get("x").pending).toMatchObject({ formerOwners: new Set(), lateUntilMs: 100 + LATE_WRITE_MS });
    nowMs += LATE_WRITE_MS;
    states.noteSynced("x");
    expect(states.get("x").pending.lateUntilMs).toBe(0);
  });

  it("undo: nothing is awaited of an address that has neither row nor object", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 100 });
    states.noteWriteFailed("x", "create", false);
    states.noteSynced("x");
    expect(states.get("x").pending.lateUntilMs).toBe(0);
  });

  it("of an object that is absent and was never known stays unknown", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", "absent");
    expect(states.get("x").object).toEqual({ kind: "unknown", isProber: false });
  });

  it("clocks-and-boots: after a restart a write of the agent before may yet be carried out, until the next is answered", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteRestart("x");
    expect(states.get("x").pending.isUnanswered).toBe(true);
    states.noteWritten("x");
    expect(states.get("x").pending.isUnanswered).toBe(false);
  });

  it("leak: of the ends, the one that came first is forgotten first, whatever was synced since", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteRestart("x0");
    for (let at = 0; at < MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    states.noteSynced("x0");
    states.noteAnswer("last", "absent", known);
    expect([states.noteSeen("x0", known), states.noteSeen("x1", known)]).toEqual([true, false]);
  });

  it("has nothing pending when the object is gone and synced", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteFormerOwner("x", "b");
    states.noteWriteFailed("x", "delete", true);
    states.noteAnswer("x", known);
    expect(states.known).toBe(1);
    states.noteAnswer("x", "absent");
    expect(states.get("x").object).toEqual({
      kind: "ended",
      last: { uid: "u", resourceVersion: "10" },
      isProber: false,
    });
    states.noteSynced("x");
    expect([states.get("x").pending, states.known]).toEqual([states.get("never seen").pending, 0]);
  });

  it("conflict: a request to probe for a lost node outlives the object, until the row is forgotten", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    const seen: boolean[] = [];
    const read = (): unknown => seen.push(isProber(states.get("x"), "here"));
    states.noteSeen("x", { ...known, state: "Quarantined", lost: "there" });
    read();
    states.noteAnswer("x", "absent");
    read();
    states.noteForgotten("x");
    read();
    states.noteSeen("x", { ...known, resourceVersion: "11", state: "Quarantined", lost: "here" });
    read();
    expect(seen).toEqual([true, true, false, false]);
  });

  it("conflict: a request to probe for a lost node outlives a doubt about the object, and the memory of its end", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    for (const name of ["doubted", "ended"]) states.noteSeen(name, { ...known, state: "Quarantined", lost: "there" });
    states.noteSeen("own", { ...known, state: "Quarantined" });
    states.invalidate("doubted");
    states.invalidate("own");
    states.noteAnswer("ended", "absent");
    for (let at = 0; at < MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect(["doubted", "ended", "own"].map((name) => states.get(name).object)).toEqual(
      [true, true, false].map((isProber) => ({ kind: "unknown", isProber })),
    );
  });

  it("a claim relies on an object that was only seen if the journal knows its earlier owner", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteSeen("x", known);
    expect(states.findForClaim("x")).toBeUndefined();
    states.noteFormerOwner("x", "a");
    expect(states.findForClaim("x")).toEqual(known);
    states.noteSynced("x");
    states.noteAnswer("x", known);
    expect(states.findForClaim("x")).toEqual(known);
  });

  it.each([
    ["create", true, { isUnanswered: false, lateUntilMs: 0 }, true],
    ["create", false, { isUnanswered: false, lateUntilMs: LATE_WRITE_MS }, false],
    ["change", true, { isUnanswered: true, lateUntilMs: 0 }, true],
    ["change", false, { isUnanswered: true, lateUntilMs: LATE_WRITE_MS }, false],
    ["delete", true, { isUnanswered: true, lateUntilMs: 0 }, false],
    ["delete", false, { isUnanswered: true, lateUntilMs: 0 }, false],
  ] as const)("after a %s that failed, answered %s", (write, isAnswered, pending, isKnown) => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    states.noteWriteFailed("x", write, isAnswered);
    expect(states.get("x").pending).toMatchObject(pending);
    expect(states.find("x") !== undefined).toBe(isKnown);
    states.noteWritten("x");
    expect(states.get("x").pending).toMatchObject({ ...pending, isUnanswered: false });
  });
});

const ADDRESS = { space: "", ip: ip("10.0.0.1") };

describe("backlog", () => {
  it("is due at once, and after a failure later each time, up to a limit", () => {
    const backlog = new Backlog(() => 1);
    backlog.add("x", ADDRESS);
    expect(backlog.due(0)).toEqual([ADDRESS]);
    const pauses: number[] = [];
    for (let failure = 0; failure < 8; failure++) {
      backlog.fail("x", ADDRESS, 0);
      backlog.add("x", ADDRESS);
      let nowMs = 0;
      while (backlog.isWaiting("x", nowMs)) nowMs += 500;
      expect(backlog.due(nowMs)).toEqual([ADDRESS]);
      pauses.push(nowMs);
    }
    expect(pauses.slice(0, 3)).toEqual([RETRY_FIRST_MS, RETRY_FIRST_MS * 2, RETRY_FIRST_MS * 4]);
    expect(pauses.at(-1)).toBe(RETRY_MAX_MS);
    backlog.done("x");
    expect([backlog.size, backlog.due(RETRY_MAX_MS)]).toEqual([0, []]);
  });

  it("spreads the pauses down to half", () => {
    const backlog = new Backlog(() => 0);
    backlog.fail("x", ADDRESS, 0);
    expect([backlog.isWaiting("x", RETRY_FIRST_MS / 2 - 1), backlog.isWaiting("x", RETRY_FIRST_MS / 2)]).toEqual([
      true,
      false,
    ]);
  });
});
