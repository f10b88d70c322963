import { beforeEach, describe, expect, it } from "vitest";
import { AddressStates, isProber, MAX_ENDED_OBJECTS } from "../../../../host/registry/kubernetes/address-states.ts";
import { Backlog, RETRY_FIRST_MS, RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { HOLDER, ipAllocation } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

describe("the state of an address", () => {
  const objectOf = (resourceVersion: string, spec: Partial<IpAllocationSpec> = {}, uid = "u"): IpAllocation => ({
    ...ipAllocation("10.0.0.1", { node: "here", ...spec }),
    ...{ uid, resourceVersion },
  });
  const known = objectOf("10");
  const lostOf = (node: string): Partial<IpAllocationSpec> => ({
    ...{ state: "Quarantined", holders: [] },
    quarantine: { reason: "NodeLost", mac: "", parent: "", holder: { ...HOLDER, node } },
  });
  let states: AddressStates;
  beforeEach(() => {
    states = new AddressStates("here");
  });

  it("leak: a read state that is older than the last answer changes nothing", () => {
    states.noteAnswer("x", known);
    states.noteAnswer("x", objectOf("9", { state: "Cooling" }));
    expect(states.find("x")).toEqual(known);
    states.noteAnswer("x", objectOf("11", { node: "there" }));
    expect(states.find("x")).toBeUndefined();
  });

  it("leak: a listed state that is no newer than the known one changes nothing", () => {
    states.noteAnswer("x", known);
    expect(states.noteSeen("x", objectOf("9", { state: "Cooling" }))).toBe(false);
    expect(states.noteSeen("x", objectOf("10", { state: "Cooling" }))).toBe(false);
    expect(states.find("x")).toEqual(known);
    expect(states.noteSeen("x", objectOf("11", { state: "Cooling" }))).toBe(true);
    expect(states.find("x")?.spec.state).toBe("Cooling");
  });

  it("leak: a read state that is older than the deletion makes nothing known", () => {
    states.noteAnswer("x", "absent", known);
    expect([states.noteSeen("x", known), states.find("x")]).toEqual([false, undefined]);
    expect(states.noteSeen("x", objectOf("12", {}, "v"))).toBe(true);
    expect(states.find("x")?.uid).toBe("v");
  });

  it("retention: a retained object that the node no longer has is unknown, and all others stay as they are", () => {
    for (const name of ["kept", "taken"]) states.noteAnswer(name, objectOf("10", { state: "Kept" }));
    states.noteAnswer("bound", known);
    states.noteAnswer("ended", "absent", known);
    states.forgetRetained(new Set(["kept"]));
    expect(["kept", "taken", "bound"].map((name) => states.find(name)?.spec.state)).toEqual([
      "Kept",
      undefined,
      "Bound",
    ]);
    expect(states.get("ended").object.kind).toBe("ended");
  });

  it("leak: another node's object has ended here at the version of the answer", () => {
    states.noteAnswer("x", known);
    const theirs = objectOf("12", { node: "there" });
    states.noteAnswer("x", theirs);
    expect([states.known, states.noteSeen("x", theirs)]).toEqual([0, false]);
  });

  it("leak: an end that an answer has told outlives a doubt about the object", () => {
    states.noteAnswer("x", "absent", known);
    states.invalidate("x");
    expect(states.noteSeen("x", known)).toBe(false);
  });

  it("an object that came after an end is not forgotten with old ends", () => {
    states.noteAnswer("x", "absent", known);
    states.noteSeen("x", objectOf("12", {}, "v"));
    for (let at = 0; at <= MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect(states.find("x")?.uid).toBe("v");
  });

  it("a forgotten row changes nothing of a known object", () => {
    states.noteAnswer("x", known);
    states.noteForgotten("x");
    expect(states.get("x").object).toEqual({ kind: "known", object: known });
  });

  it("leak: no more ends are remembered than MAX_ENDED_OBJECTS", () => {
    for (let at = 0; at <= MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    expect([states.noteSeen("x0", known), states.noteSeen("x1", known)]).toEqual([true, false]);
  });

  it("of an object that is absent and was never known stays unknown, as it is at first", () => {
    expect(states.get("x").object).toEqual({ kind: "unknown", isProber: false });
    states.noteAnswer("x", "absent");
    expect(states.get("x").object).toEqual({ kind: "unknown", isProber: false });
  });

  it("leak: of the ends, the one that came first is forgotten first, whatever was synced since", () => {
    states.noteSent("x0");
    for (let at = 0; at < MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    states.noteSent("x0", false);
    states.noteAnswer("last", "absent", known);
    expect([states.noteSeen("x0", known), states.noteSeen("x1", known)]).toEqual([true, false]);
  });

  it("clocks-and-boots: has a write pending until a later one is answered, also when the object is gone", () => {
    states.noteSent("x");
    states.noteAnswer("x", known);
    expect([states.get("x").isSent, states.known]).toEqual([true, 1]);
    states.noteAnswer("x", "absent");
    const last = { uid: "u", resourceVersion: "10" };
    expect(states.get("x").object).toEqual({ kind: "ended", last, isProber: false });
    states.noteSent("x", false);
    expect([states.get("x").isSent, states.known]).toEqual([false, 0]);
  });

  it("conflict: a request to probe for a lost node outlives the object, until the row is forgotten", () => {
    const seen: boolean[] = [];
    const read = (): unknown => seen.push(isProber(states.get("x"), "here"));
    states.noteSeen("x", objectOf("10", lostOf("there")));
    read();
    states.noteAnswer("x", "absent");
    read();
    states.noteForgotten("x");
    read();
    states.noteSeen("x", objectOf("11", lostOf("here")));
    read();
    expect(seen).toEqual([true, true, false, false]);
  });

  it("conflict: a request to probe for a lost node outlives a doubt about the object, and the memory of its end", () => {
    for (const name of ["doubted", "ended"]) states.noteSeen(name, objectOf("10", lostOf("there")));
    states.noteSeen("own", objectOf("10", { state: "Quarantined" }));
    states.invalidate("doubted");
    states.invalidate("own");
    states.noteAnswer("ended", "absent");
    for (let at = 0; at < MAX_ENDED_OBJECTS; at++) states.noteAnswer(`x${at}`, "absent", known);
    const now = ["doubted", "ended", "own"].map((name) => states.get(name).object);
    expect(now).toMatchObject([true, true, false].map((isProber) => ({ kind: "unknown", isProber })));
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
    const waiting = [-1, 0].map((more) => backlog.isWaiting("x", RETRY_FIRST_MS / 2 + more));
    expect(waiting).toEqual([true, false]);
  });
});
