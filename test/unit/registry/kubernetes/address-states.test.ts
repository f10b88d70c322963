import { describe, expect, it } from "vitest";
import {
  AddressStates,
  isProber,
  LATE_WRITE_MS,
  MAX_ENDED_OBJECTS,
} from "../../../../host/registry/kubernetes/address-states.ts";
import type { KnownObject } from "../../../../host/registry/kubernetes/known-object.ts";

describe("the state of an address", () => {
  const known: KnownObject = {
    uid: "u",
    resourceVersion: "10",
    state: "Bound",
    node: "here",
    podUid: "a",
    ifName: "eth0",
  };

  it("leak: an event that is older than the last answer changes nothing", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", known);
    states.noteAnswer("x", { ...known, resourceVersion: "9", state: "Cooling" });
    expect(states.find("x")).toEqual(known);
    states.noteAnswer("x", { ...known, resourceVersion: "11", node: "there" });
    expect(states.find("x")).toBeUndefined();
  });

  it("leak: an event that is older than the deletion makes nothing known", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteAnswer("x", "absent", known);
    expect([states.noteEvent("x", known), states.find("x")]).toEqual([false, undefined]);
    expect([states.noteEvent("x", { ...known, uid: "v", resourceVersion: "12" }), states.noteEnd("x", "u")]).toEqual([
      true,
      false,
    ]);
    expect(states.find("x")?.uid).toBe("v");
    expect([states.noteEnd("x", "v"), states.find("x")]).toEqual([true, undefined]);
  });

  it("leak: no more ends are remembered than MAX_ENDED_OBJECTS", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    for (let at = 0; at <= MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect([states.noteEvent("x0", known), states.noteEvent("x1", known)]).toEqual([true, false]);
  });

  it("undo: a write without an answer may be carried out for a while, and nothing is known", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 100 });
    states.noteAnswer("x", known);
    states.noteWriteFailed("x", "change", false);
    expect([states.find("x"), states.get("x").pending.lateUntilMs]).toEqual([undefined, 100 + LATE_WRITE_MS]);
    states.noteSynced("x");
    expect(states.get("x").pending.lateUntilMs).toBe(0);
  });

  it("is the initial one again when the object is gone, forgotten by the watch, and synced", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteFormerOwner("x", "b");
    states.noteUndone("x");
    states.noteWriteFailed("x", "delete", true);
    states.noteAnswer("x", known);
    expect(states.known).toBe(1);
    states.noteAnswer("x", "absent");
    expect(states.get("x").object).toEqual({
      kind: "ended",
      last: { uid: "u", resourceVersion: "10" },
      isProber: false,
    });
    states.noteEnd("x", "u");
    states.noteSynced("x");
    expect([states.get("x"), states.known]).toEqual([states.get("never seen"), 0]);
  });

  it("conflict: a request to probe for a lost node outlives the object, until the row is forgotten", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    const seen: boolean[] = [];
    const read = (): unknown => seen.push(isProber(states.get("x"), "here"));
    states.noteEvent("x", { ...known, state: "Quarantined", lost: "there" });
    read();
    states.noteAnswer("x", "absent");
    read();
    states.noteForgotten("x");
    read();
    states.noteEvent("x", { ...known, resourceVersion: "11", state: "Quarantined", lost: "here" });
    read();
    expect(seen).toEqual([true, true, false, false]);
  });

  it("a claim relies on an object that only an event has shown if the journal knows its earlier owner", () => {
    const states = new AddressStates({ node: "here", nowMs: () => 0 });
    states.noteEvent("x", known);
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
