/** retention: an address that two pods of one machine have while it migrates. */

import { describe, expect, it } from "vitest";
import { AddressStates } from "../../../../host/registry/kubernetes/address-states.ts";
import { decide, reclaim, specWithout, takeOver } from "../../../../host/registry/kubernetes/decide.ts";
import {
  foreignOf,
  type KnownObject,
  knownOf,
  PROBE_FIRST,
  specOf,
} from "../../../../host/registry/kubernetes/known-object.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { Holder, IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { proposal } from "../../../world/subjects.ts";

const MACHINE = { kind: "VirtualMachine", namespace: "shop", name: "db", uid: "v", member: "db" };
const PLACE = { node: "here", since: "2026-11-20T04:00:00Z" };
const holderOn = (node: string, podUid: string): Holder => {
  return { namespace: "shop", pod: `launcher-${podUid}`, podUid, ifName: "eth0", node };
};
const OURS = holderOn("here", "a");
const THEIRS = holderOn("there", "b");

const bound: Allocation = {
  ...proposal("10.0.0.1"),
  ...{ owner: "a", containerId: "c", network: "net", namespace: "shop", pod: "launcher-a", sinceMs: 0, version: 7 },
  ...{ state: "Bound", isConfirmed: true, workload: MACHINE },
};
const cooling: Allocation = { ...bound, state: "Cooling" };

function objectOf(holders: readonly Holder[], node: string): IpAllocation {
  const spec = { ...specOf(bound, "Bound", { ...PLACE, node }), holders };
  return { kind: "IPAllocation", name: "10.0.0.1", uid: "u", resourceVersion: "5", deleting: false, spec };
}

const known = (holders: readonly Holder[], node: string): KnownObject => knownOf(objectOf(holders, node));
const WITH_THEM = known([THEIRS, OURS], "there");
const WITHOUT_US = known([THEIRS], "there");

const INITIAL_STATE = new AddressStates({ node: "here", nowMs: () => 0 }).get("10.0.0.1");

const READ = { kind: "read" };
const ALONE = { kind: "replace", state: "Bound", sharers: [] };
const BOTH = { kind: "replace", state: "Bound", sharers: [THEIRS] };

/** A sync that has read the object. */
const taskOf = (full: IpAllocation) => ({ object: knownOf(full), full });

describe("what follows for the row of a pod", () => {
  const plain = {
    node: "here",
    state: INITIAL_STATE,
    isDue: false,
    isPublic: false,
    isOwnerSeen: true,
    replaces: undefined,
  };
  const pending = (change: object) => ({
    state: { ...INITIAL_STATE, pending: { ...INITIAL_STATE.pending, ...change } },
  });
  const unanswered = pending({ isUnanswered: true });
  const released = { isDue: true };
  const deleted = { ...WITH_THEM, node: "here", deleting: true };
  const leave = { kind: "leave", others: [THEIRS] };
  const former = pending({ formerOwners: new Set(["y", "z"]) });
  const both = known([holderOn("here", "y"), holderOn("here", "z")], "here");
  const earlier = known([holderOn("here", "z"), THEIRS], "here");
  const stranger = { workload: undefined };
  const forget = { kind: "forget" };
  type Known = KnownObject | "absent" | undefined;
  const rows: [what: string, row: Allocation, object: Known, options: object, action: object][] = [
    ["shared: nothing, whichever node the object names", bound, WITH_THEM, {}, { kind: "synced" }],
    ["shared, and a write may yet be carried out: again, beside the other", bound, WITH_THEM, unanswered, BOTH],
    ["of which nothing is known: it is not made anew, it may be the other's node's", bound, undefined, {}, READ],
    ["released: leaves it to the other", cooling, WITH_THEM, {}, leave],
    ["released, never attached: the same", { ...cooling, workload: undefined }, WITH_THEM, released, leave],
    ["released, the other has left: kept", cooling, known([OURS], "here"), {}, { kind: "replace", state: "Kept" }],
    ["released, and left already: done", cooling, WITHOUT_US, {}, forget],
    ["released, and the object is deleted by hand: the other recreates it", cooling, deleted, {}, forget],
    ["shared by this node's earlier pod: who else has it must be read", bound, earlier, former, { kind: "takeOver" }],
    ["the same, of another workload", { ...bound, ...stranger }, earlier, former, { kind: "reclaim" }],
    ["released, shared by this node's earlier pod: leaves it to the other", cooling, earlier, former, leave],
    [
      "released, shared by two earlier pods of this node: kept",
      cooling,
      both,
      former,
      { kind: "replace", state: "Kept" },
    ],
    ["another NIC of the pod has it: not this row's to leave", { ...cooling, ifName: "net1" }, WITH_THEM, {}, forget],
  ];
  it.each(rows)("%s", (_what, row, object, options, wanted) => {
    expect(decide({ ...plain, row, object, ...options })).toEqual(wanted);
  });
});

describe("who has the address of a member", () => {
  type HolderStatus = "gone" | "migrating" | "alive";
  const decideBetween = (
    holders: readonly Holder[],
    statuses: Readonly<Record<string, HolderStatus>>,
    isLive = true,
  ) => {
    const task = taskOf(objectOf(holders, "there"));
    const readHolderStatus = async (_row: unknown, { podUid }: Holder): Promise<HolderStatus> =>
      statuses[podUid] ?? "alive";
    return takeOver({ node: "n2", isLivePod: async () => isLive, readHolderStatus }, bound, task);
  };
  const third = holderOn("third", "x");

  const elsewhere = { kind: "taken" };
  it.each([
    ["the one before is gone: the live one alone", [THEIRS], { b: "gone" }, ALONE],
    ["the other runs the same machine: both", [THEIRS], { b: "migrating" }, BOTH],
    ["the other lives: that one", [THEIRS], { b: "alive" }, { ...elsewhere, by: THEIRS }],
    [
      "the second of two is another machine's: that one",
      [THEIRS, third],
      { b: "gone", x: "alive" },
      { ...elsewhere, by: third },
    ],
    [
      "of two one is gone: the other and ours",
      [THEIRS, third],
      { b: "gone", x: "migrating" },
      { ...BOTH, sharers: [third] },
    ],
    ["two live: no third", [THEIRS, third], { b: "migrating", x: "migrating" }, elsewhere],
  ] as const)("%s", async (_what, holders, statuses, wanted) => {
    expect(await decideBetween(holders, statuses)).toEqual(wanted);
  });

  type NodeStatus = "lost" | "there" | "off";
  /** The pod of the other node may be gone; its node is as given. */
  const takeFrom = (nodeStatus: NodeStatus, status: HolderStatus, changes: object) => {
    const readNodeStatus = async () => nodeStatus;
    const deps = { isLivePod: async () => true, readHolderStatus: async () => status, readNodeStatus, node: "here" };
    return takeOver(deps, { ...bound, isConfirmed: false, ...changes }, taskOf(objectOf([THEIRS], "there")));
  };
  const doubt = { quarantine: PROBE_FIRST };
  const attached = { isConfirmed: true };
  it.each([
    ["node-lost: its end is unknown: taken, and probed", "gone", {}, { kind: "taken", needsProbe: true }],
    ["node-lost: who has bound it in doubt has it, and asks", "gone", doubt, ALONE],
    ["node-lost: whose NIC has it already need not ask", "gone", attached, ALONE],
    ["it runs the same machine, which answers as it should: both, in no doubt", "migrating", {}, BOTH],
    ["it lives: that one", "alive", {}, { ...elsewhere, by: THEIRS }],
  ] as const)("the other's node is lost, %s", async (_what, status, changes, wanted) => {
    expect(await takeFrom("lost", status, changes)).toEqual(wanted);
  });
  const later = { kind: "taken", predecessor: THEIRS };
  it.each([
    ["its pod is gone: not before the agent of that node has let go", "there", "gone", {}, later],
    ["even when it was bound in doubt: the node is back", "there", "gone", doubt, later],
    ["whose NIC has it already goes on", "there", "gone", attached, ALONE],
    ["it runs the same machine: both", "there", "migrating", {}, BOTH],
    ["the machine is off: ours at once", "off", "gone", {}, ALONE],
  ] as const)("the other's node answers, %s", async (_what, state, status, changes, wanted) => {
    expect(await takeFrom(state, status, changes)).toEqual(wanted);
  });
  it.each([
    ["there", "not before its agent has let go", { kind: "taken", predecessor: third }],
    ["lost", "not at all: no probe can tell, as the other answers", { kind: "taken", predecessor: third }],
    ["off", "at once, beside the other", BOTH],
  ] as const)("node-lost: of two pods one is gone, on a node that is %s: %s", async (nodeStatus, _what, wanted) => {
    const readHolderStatus = async (_row: unknown, { podUid }: Holder): Promise<HolderStatus> =>
      podUid === "x" ? "gone" : "migrating";
    const deps = {
      isLivePod: async () => true,
      readHolderStatus,
      readNodeStatus: async () => nodeStatus,
      node: "here",
    };
    const task = taskOf(objectOf([THEIRS, third], "there"));
    expect(await takeOver(deps, { ...bound, isConfirmed: false }, task)).toEqual(wanted);
  });
  it("of this node's own earlier pod the journal tells, and no node is asked for", async () => {
    const task = taskOf(objectOf([holderOn("here", "b")], "here"));
    const readNodeStatus = async () => expect.unreachable("It is this node");
    const readHolderStatus = async () => "gone" as const;
    const deps = { isLivePod: async () => true, readHolderStatus, readNodeStatus, node: "here" };
    expect(await takeOver(deps, { ...bound, isConfirmed: false }, task)).toMatchObject({ kind: "replace" });
  });
  it("not ours, when ours is not the live pod of its name", async () => {
    expect(await decideBetween([THEIRS], { b: "gone" }, false)).toEqual({ kind: "taken" });
  });
  it("not ours, when another NIC of the machine has it", async () => {
    expect(await decideBetween([{ ...THEIRS, ifName: "net1" }], { b: "migrating" })).toEqual({ kind: "taken" });
  });
  it("is asked of the object as it is now", async () => {
    const readHolderStatus = async (): Promise<HolderStatus> => "migrating";
    const task = { object: WITHOUT_US, full: undefined };
    expect(await takeOver({ node: "n2", isLivePod: async () => true, readHolderStatus }, bound, task)).toEqual({
      kind: "read",
    });
  });
});

describe("recreate: who has the address of a record that a backup brought back", () => {
  const decideFor = (live: readonly string[], holders = [holderOn("here", "b")]) => {
    const isLivePod = async (_namespace: string, _pod: string, uid: string): Promise<boolean> => live.includes(uid);
    return reclaim({ node: "here", isLivePod }, bound, taskOf(objectOf(holders, "here")));
  };
  it.each([
    ["the pod of the journal, when the recorded one is gone", ["a"], "replace"],
    ["the recorded one, when it lives", ["a", "b"], "taken"],
    ["the recorded one, when neither lives", [], "taken"],
  ] as const)("%s", async (_what, live, kind) => {
    expect((await decideFor(live)).kind).toBe(kind);
  });
  it("a holder of another node, whatever became of it", async () => {
    expect(await decideFor(["a"], [holderOn("here", "b"), holderOn("there", "x")])).toEqual({ kind: "taken" });
  });
  it("is asked of the object as it is now", async () => {
    const task = { ...taskOf(objectOf([holderOn("here", "b")], "here")), full: undefined };
    expect(await reclaim({ node: "here", isLivePod: async () => true }, bound, task)).toEqual({ kind: "read" });
  });
});

describe("the object that is left", () => {
  it("stays its node's, and becomes the other's when that one leaves", () => {
    const own = specOf(bound, "Bound", PLACE);
    expect(specWithout(own, WITH_THEM, [THEIRS])).toMatchObject({ node: "there", holders: [THEIRS], state: "Bound" });
    const ofOurs = known([OURS, THEIRS], "here");
    expect(specWithout(own, ofOurs, [THEIRS])).toMatchObject({
      node: "there",
      holders: [THEIRS],
      workload: { member: "db", ifName: "eth0" },
    });
  });
  it("is foreign to a node by its first holder", () => {
    expect(foreignOf(objectOf([THEIRS, OURS], "there"), 0)).toMatchObject({
      owner: "b",
      pod: "launcher-b",
      state: "Bound",
    });
  });
});
