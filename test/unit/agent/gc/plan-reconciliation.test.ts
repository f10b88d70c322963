import { describe, expect, it } from "vitest";
import {
  claimantOf,
  decideOrphanObject,
  isObjectOf,
  isOlderThan,
  isReportedLost,
  needsPublishing,
  type OrphanObjectAction,
} from "../../../../host/agent/gc/plan-reconciliation.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { ip } from "../../../world/values.ts";

const NODE = "n1";
const holder = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: NODE };
const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };

function object(changes: Partial<IpAllocationSpec> = {}, deleting = false): IpAllocation {
  const place = { ip: ip("10.6.0.21"), addressSpace: "", prefixLength: 24, pool: "blue", node: NODE };
  const spec = { ...place, state: "Bound" as const, holders: [holder], ...changes };
  return { kind: "IPAllocation", name: "10.6.0.21", uid: "o1", resourceVersion: "7", deleting, spec };
}

function row(changes: Partial<Allocation> = {}): Allocation {
  return {
    ...{ space: "", ip: ip("10.6.0.21"), prefixLength: 24, pool: "blue", state: "Bound", owner: "u1" },
    ...{ ifName: "eth0", containerId: "c1", network: "lab", namespace: "shop", pod: "web-0", isConfirmed: true },
    ...{ sinceMs: 0, version: 1 },
    ...changes,
  };
}

function describeDecision(decision: OrphanObjectAction): string {
  if (decision.kind === "leave") return "leave";
  const { kind, adoption } = decision;
  const otherwise = kind === "confirm" ? `, else ${decision.ended.state}` : "";
  const { state, owner, ifName, quarantine } = adoption;
  const terms = kind === "release" && decision.ifPodGone ? " if its pod is gone" : "";
  const reason = quarantine === undefined ? "" : ` for ${quarantine.mac ?? "none"} on ${quarantine.parent}`;
  return `${kind} ${state} ${owner}/${ifName}${reason}${terms}${otherwise}`;
}

interface Case {
  readonly what: string;
  readonly object: IpAllocation;
  readonly ownRows?: readonly Allocation[];
  /** That this is. */
  readonly machine?: string;
  readonly decision: string;
}

function check({ object, ownRows = [], machine, decision }: Case) {
  expect(describeDecision(decideOrphanObject({ object, node: NODE, machine, ownRows, nowMs: 5 }))).toBe(decision);
}

const other = ip("10.6.0.99");

describe("undo: an object without a row in the journal", () => {
  const mac = "02:00:00:00:00:07";
  const conflict = { reason: "Conflict", mac, parent: "ens5" } as const;
  const unnamed = { reason: "Conflict", mac: "", parent: "" } as const;
  const lost = { reason: "NodeLost", mac: "", parent: "" } as const;
  const ofPod = { state: "Quarantined", holders: [], quarantine: { ...lost, holder } } as const;
  const ofOther = { ...ofPod, quarantine: { ...lost, holder: { ...holder, node: "n9" } } };
  const cases: Case[] = [
    { what: "is adopted when its NIC has nothing", object: object(), decision: "adopt Bound u1/eth0" },
    {
      what: "is adopted when only the other family is there",
      ...{ object: object(), ownRows: [row({ ip: ip("fd00::1") })], decision: "adopt Bound u1/eth0" },
    },
    {
      what: "is adopted when only another NIC has an address",
      ...{ object: object(), ownRows: [row({ ip: other, ifName: "net1" })], decision: "adopt Bound u1/eth0" },
    },
    {
      what: "is adopted when the NIC's other address only cools",
      ...{ object: object(), ownRows: [row({ ip: other, state: "Cooling" })], decision: "adopt Bound u1/eth0" },
    },
    {
      what: "retention: is released when the member's own address, of a higher number, only cools",
      ...{ object: object({ workload, number: 0 }) },
      ...{ ownRows: [row({ ip: other, state: "Cooling", workload })], decision: "release Cooling u1/eth0" },
    },
    {
      what: "retention: is adopted when what cools has no higher number",
      ...{ object: object({ workload, number: 0 }) },
      ownRows: [row({ ip: other, state: "Cooling", workload, claim: { id: "c", number: 0, earlier: [] } })],
      decision: "adopt Bound u1/eth0",
    },
    {
      what: "retention: is adopted when it is new to the member, and no ADD was answered with what cools",
      ...{ object: object({ workload, number: 0 }) },
      ownRows: [row({ ip: other, state: "Cooling", workload, isConfirmed: false })],
      decision: "adopt Bound u1/eth0",
    },
    {
      what: "retention: is adopted when it is new to the member, and what cools was no member's",
      ...{ object: object({ workload, number: 0 }) },
      ownRows: [row({ ip: other, state: "Cooling" })],
      decision: "adopt Bound u1/eth0",
    },
    {
      what: "retention: is adopted when the member had it before, although another address cools",
      ...{ object: object({ workload }), ownRows: [row({ ip: other, state: "Cooling", workload })] },
      decision: "adopt Bound u1/eth0",
    },
    {
      what: "is released when its NIC has another address",
      ...{ object: object(), ownRows: [row({ ip: other })], decision: "release Cooling u1/eth0" },
    },
    {
      what: "is released with its pod when it is unknown which one is on the NIC",
      ...{ object: object(), ownRows: [row({ ip: other, containerId: UNKNOWN_CONTAINER })] },
      decision: "release Cooling u1/eth0 if its pod is gone",
    },
    { what: "is released when it names no pod here", object: object({ holders: [] }), decision: "release Cooling /" },
    { what: "is adopted Cooling", object: object({ state: "Cooling", holders: [] }), decision: "adopt Cooling /" },
    {
      what: "is adopted Quarantined",
      object: object({ state: "Quarantined", holders: [], quarantine: conflict }),
      decision: `adopt Quarantined / for ${mac} on ens5`,
    },
    {
      what: "is adopted Quarantined, by whomever",
      object: object({ state: "Quarantined", holders: [], quarantine: unnamed }),
      decision: "adopt Quarantined / for none on ",
    },
    {
      what: "node-lost: is released when this node was taken for lost and no pod here has it",
      object: object({ state: "Quarantined", holders: [], quarantine: lost }),
      decision: "release Cooling /",
    },
    {
      what: "is released when it does not say why it is in quarantine",
      object: object({ state: "Quarantined", holders: [] }),
      decision: "release Cooling /",
    },
    {
      what: "node-lost: is its pod's again when this node was taken for lost and the pod lives",
      ...{ object: object(ofPod), decision: "confirm Bound u1/eth0, else Cooling" },
    },
    {
      what: "node-lost: is released when the pod's NIC has another address by now",
      ...{ object: object(ofPod), ownRows: [row({ ip: other })], decision: "release Cooling u1/eth0" },
    },
    {
      what: "conflict: is adopted to be asked for when another node is lost",
      ...{ object: object(ofOther), decision: "adopt Quarantined / for none on " },
    },
    { what: "is left when it is Kept", object: object({ state: "Kept", holders: [], workload }), decision: "leave" },
    { what: "is left when it is being deleted", object: object({}, true), decision: "leave" },
    {
      what: "node-lost: is left when another node answers for it",
      object: object({ node: "n2", holders: [{ ...holder, node: "n2" }] }),
      decision: "leave",
    },
    {
      what: "node-lost: is left when another node answers for it, though it cools",
      object: object({ node: "n2", state: "Cooling", holders: [] }),
      decision: "leave",
    },
    {
      what: "retention: is its pod's beside the one of another node, which it names, unless its pod is gone",
      object: object({ node: "n2", holders: [{ ...holder, podUid: "u2", node: "n2" }, holder], workload }),
      decision: "confirm Bound u1/eth0, else Cooling",
    },
    {
      what: "retention: is left to the pod of another node when the NIC has another address",
      object: object({ node: "n2", holders: [{ ...holder, podUid: "u2", node: "n2" }, holder], workload }),
      ...{ ownRows: [row({ ip: other })], decision: "release Cooling u1/eth0" },
    },
  ];
  it.each(cases)("$what", check);

  const named = { ...holder, machine: "m1" };
  const ofMachine = { ...ofPod, quarantine: { ...lost, holder: named } };
  const cooling = { state: "Cooling", holders: [] } as const;
  const shared = { node: "n2", holders: [{ ...holder, podUid: "u2", node: "n2" }, named], workload };
  it.each<Case>([
    {
      what: "is adopted on the machine that it names",
      ...{ object: object({ holders: [named] }), machine: "m1", decision: "adopt Bound u1/eth0" },
    },
    {
      what: "is adopted when it names none",
      ...{ object: object(), machine: "m1", decision: "adopt Bound u1/eth0" },
    },
    {
      what: "is left when another machine had this node's name",
      ...{ object: object({ holders: [named] }), machine: "m2", decision: "leave" },
    },
    {
      what: "is left when it is unknown which machine this is",
      ...{ object: object({ holders: [named] }), decision: "leave" },
    },
    {
      what: "is left to the pod of another node when another machine had this node's name",
      ...{ object: object(shared), machine: "m2", decision: "leave" },
    },
    {
      what: "is confirmed by the machine that was lost",
      ...{ object: object(ofMachine), machine: "m1", decision: "confirm Bound u1/eth0, else Cooling" },
    },
    {
      what: "is probed by another machine that has the lost one's name",
      ...{ object: object(ofMachine), machine: "m2", decision: "probe Quarantined / for none on " },
    },
    {
      what: "is probed when it is unknown which machine this is",
      ...{ object: object(ofMachine), decision: "probe Quarantined / for none on " },
    },
    {
      what: "is left to the owner that retains it",
      ...{ object: object({ ...ofMachine, workload }), machine: "m2", decision: "leave" },
    },
    {
      what: "is left to the node that was asked to probe it",
      ...{ object: object({ ...ofMachine, node: "n2" }), machine: "m2", decision: "leave" },
    },
    {
      what: "is adopted when the other machine has released it",
      ...{ object: object(cooling), machine: "m2", decision: "adopt Cooling /" },
    },
  ])("node-lost: one that names a machine $what", check);

  it("is adopted with the owner that retains it, and released without", () => {
    const adopted = decideOrphanObject({ object: object({ workload }), node: NODE, ownRows: [], nowMs: 5 });
    const released = decideOrphanObject({
      object: object({ workload }),
      node: NODE,
      ownRows: [row({ ip: other })],
      nowMs: 5,
    });
    expect(adopted).toMatchObject({ adoption: { workload, pool: "blue", prefixLength: 24, namespace: "shop" } });
    expect(released).toMatchObject({ adoption: { workload: undefined } });
  });

  it("is adopted Cooling without the owner that had it retained", () => {
    const cooling = object({ state: "Cooling", holders: [], workload });
    const decision = decideOrphanObject({ object: cooling, node: NODE, ownRows: [], nowMs: 5 });
    expect(decision).toMatchObject({ kind: "adopt", adoption: { state: "Cooling", workload: undefined } });
  });

  it("conflict: an address of a lost node is probed at once, and retained for no owner", () => {
    const decision = decideOrphanObject({
      object: object({ ...ofOther, workload }),
      node: NODE,
      ownRows: [],
      nowMs: 5,
    });
    expect(decision).toMatchObject({ adoption: { workload: undefined, quarantine: { nextProbeAtMs: 5, parent: "" } } });
  });

  it("node-lost: the address of a workload's member stays retained when its pod is gone", () => {
    const decision = decideOrphanObject({ object: object({ ...ofPod, workload }), node: NODE, ownRows: [], nowMs: 5 });
    expect(decision).toMatchObject({ adoption: { state: "Bound", workload }, ended: { state: "Cooling", workload } });
  });

  it("is probed at once when it was quarantined: the clock was another one", () => {
    const quarantined = object({ state: "Quarantined", holders: [], quarantine: conflict });
    const decision = decideOrphanObject({ object: quarantined, node: NODE, ownRows: [], nowMs: 5 });
    expect(decision).toMatchObject({ adoption: { quarantine: { nextProbeAtMs: 5 } } });
  });
});

describe("node-lost: a row's object says that this node was lost", () => {
  const lost = (changes: Partial<IpAllocationSpec> = {}): IpAllocation =>
    object({
      ...{ state: "Quarantined", holders: [], quarantine: { reason: "NodeLost", mac: "", parent: "", holder } },
      ...changes,
    });
  const cases: [what: string, row: Allocation, object: IpAllocation | undefined, wanted: boolean][] = [
    ["of what a pod has", row(), lost(), true],
    ["not of a claim under way", row({ isConfirmed: false }), lost(), false],
    ["not of what cools", row({ state: "Cooling" }), lost(), false],
    ["not where another node answers for it", row(), lost({ node: "n2" }), false],
    ["not when another machine answers", row(), lost({ quarantine: { reason: "Conflict", mac: "", parent: "" } }), false], // biome-ignore format: one line each
    ["not when it is Bound", row(), object(), false],
    ["not when it is gone", row(), undefined, false],
  ];
  it.each(cases)("%s", (_what, row, object, wanted) => expect(isReportedLost(row, object, NODE)).toBe(wanted));
});

describe("retention: a row of a restored journal", () => {
  const unanswered = row({ isConfirmed: false });
  it.each<[what: string, row: Allocation, object: IpAllocation | undefined, isOlder: boolean]>([
    ["is older than an object that names its member", unanswered, object({ workload }), true],
    ["is not if the object names none", unanswered, object(), false],
    ["is not if it was answered", row(), object({ workload }), false],
    ["is not without an object", unanswered, undefined, false],
  ])("%s", (_, row, object, isOlder) => expect(isOlderThan(row, object, NODE)).toBe(isOlder));
});

describe("recreate: a row is published again", () => {
  const cases: [what: string, row: Allocation, object: IpAllocation | undefined, wanted: boolean][] = [
    ["when its object has vanished", row(), undefined, true],
    ["when its object is another pod's", row(), object({ holders: [{ ...holder, podUid: "u2" }] }), true],
    ["when its object is another NIC's", row(), object({ holders: [{ ...holder, ifName: "net1" }] }), true],
    ["when its object only cools", row(), object({ state: "Cooling", holders: [] }), true],
    ["when its quarantine has vanished", row({ state: "Quarantined" }), undefined, true],
    ["not when it is there", row(), object(), false],
    ["not while its claim is under way", row({ isConfirmed: false }), undefined, false],
    ["not when it cools", row({ state: "Cooling" }), undefined, false],
    [
      "not when it is in quarantine",
      row({ state: "Quarantined" }),
      object({ state: "Quarantined", holders: [] }),
      false,
    ],
    ["not when the node was taken for lost", row(), object({ state: "Quarantined", holders: [] }), false],
  ];
  it.each(cases)("%s", (_what, row, object, wanted) => expect(needsPublishing(row, object, NODE)).toBe(wanted));
});

describe("whose an object is", () => {
  const elsewhere = { ...holder, podUid: "u2", node: "n2" };
  const lost = (of: typeof holder) => ({ reason: "NodeLost", mac: "", parent: "", holder: of }) as const;

  it.each<[string, Partial<IpAllocationSpec>, string | undefined]>([
    ["of the pod of this node", {}, "u1"],
    ["of the one of two that is here", { holders: [elsewhere, holder] }, "u1"],
    ["of nobody here", { holders: [elsewhere] }, undefined],
    ["in quarantine: of the pod that had it here", { holders: [], quarantine: lost(holder) }, "u1"],
    ["in quarantine: of another node's", { holders: [], quarantine: lost(elsewhere) }, undefined],
    ["of a holder here before that of the quarantine", { quarantine: lost({ ...holder, podUid: "u9" }) }, "u1"],
    ["of no holder", { holders: [] }, undefined],
  ])("%s", (_, changes, uid) => expect(claimantOf(object(changes), NODE)?.podUid).toBe(uid));

  it.each<[string, Partial<IpAllocationSpec>, boolean]>([
    ["Bound to the row's pod", {}, true],
    ["shared with another", { holders: [elsewhere, holder] }, true],
    ["Bound to another", { holders: [elsewhere] }, false],
    ["of another interface", { holders: [{ ...holder, ifName: "net1" }] }, false],
    ["of another node", { node: "n2" }, false],
    ["Kept", { state: "Kept" }, false],
  ])("the row's: %s", (_, changes, wanted) => expect(isObjectOf(row(), object(changes), NODE)).toBe(wanted));

  it.each<[string, Partial<IpAllocationSpec>, boolean]>([
    ["lost", { state: "Quarantined", quarantine: lost(holder) }, true],
    ["Bound again", { quarantine: lost(holder) }, false],
    ["in quarantine without a reason", { state: "Quarantined" }, false],
  ])("reported lost: %s", (_, changes, wanted) => expect(isReportedLost(row(), object(changes), NODE)).toBe(wanted));

  it("undo: a release beside two addresses of the NIC is certain unless both were taken in", () => {
    const rows = [row({ ip: ip("10.6.0.98") }), row({ ip: ip("10.6.0.99"), containerId: UNKNOWN_CONTAINER })];
    const decision = decideOrphanObject({ object: object(), node: NODE, ownRows: rows, nowMs: 5 });
    expect(describeDecision(decision)).toBe("release Cooling u1/eth0");
  });
});
