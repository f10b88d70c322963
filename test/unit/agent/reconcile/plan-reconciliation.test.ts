import { describe, expect, it } from "vitest";
import {
  claimantOf,
  decideOrphanObject,
  isObjectOf,
  isOlderThan,
  isReportedLost,
  needsPublishing,
  type OrphanObjectAction,
} from "../../../../host/agent/reconcile/plan-reconciliation.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { cases } from "../../../world/rows.ts";
import { rowOf } from "../../../world/search.ts";
import { ipAllocation } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

const NODE = "n1";
const holder = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: NODE };
const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };

type Spec = Partial<IpAllocationSpec>;
type Row = Partial<Allocation>;

const object = (spec: Spec = {}): IpAllocation => ipAllocation("10.6.0.21", { holders: [holder], ...spec });
const row = (changes: Row = {}): Allocation => rowOf("10.6.0.21", changes);

/** About an object without a row in the journal, which has these rows. */
function decide(spec: Spec, ownRows: readonly Row[] = [], machine?: string) {
  return decideOrphanObject({ object: object(spec), node: NODE, machine, ownRows: ownRows.map(row), nowMs: 5 });
}

function describeDecision(decision: OrphanObjectAction): string {
  if (decision.kind === "leave") return "leave";
  const { kind, adoption } = decision;
  const otherwise = kind === "confirm" ? `, else ${decision.ended.state}` : "";
  const { state, owner, ifName, quarantine } = adoption;
  const terms = kind === "release" && decision.ifPodGone ? " if its pod is gone" : "";
  const reason = quarantine === undefined ? "" : ` for ${quarantine.mac ?? "none"} on ${quarantine.parent || "none"}`;
  return `${kind} ${state} ${owner}/${ifName}${reason}${terms}${otherwise}`;
}

const OTHER = { ip: ip("10.6.0.99") };
const COOLS = { ...OTHER, state: "Cooling" } as const;
const elsewhere = { ...holder, podUid: "u2", node: "n2" };
const lost = { reason: "NodeLost", mac: "", parent: "" } as const;
const lostOf = (of: IpAllocationSpec["holders"][number]) => ({ ...lost, holder: of });
const cooling = { state: "Cooling", holders: [] } as const;
const quarantined = (quarantine?: IpAllocationSpec["quarantine"]): Spec => ({
  ...{ state: "Quarantined", holders: [] },
  ...(quarantine && { quarantine }),
});

describe("undo: an object without a row in the journal", () => {
  const mac = "02:00:00:00:00:07";
  const conflict = { reason: "Conflict", mac, parent: "ens5" } as const;
  const unnamed = { reason: "Conflict", mac: "", parent: "" } as const;
  const ofPod = quarantined(lostOf(holder));
  const ofOther = quarantined(lostOf({ ...holder, node: "n9" }));
  const isNew = { workload, number: 0 };
  const shared = { node: "n2", holders: [elsewhere, holder], workload };
  const ADOPTED = "adopt Bound u1/eth0";
  const CONFIRMED = "confirm Bound u1/eth0, else Cooling";

  it.each(cases<readonly [Spec, ...Row[]]>`
    is adopted when its NIC has nothing ${[{}]} => adopt Bound u1/eth0
    is adopted when only the other family is there ${[{}, { ip: ip("fd00::1") }]} => adopt Bound u1/eth0
    is adopted when only another NIC has an address ${[{}, { ...OTHER, ifName: "net1" }]} => adopt Bound u1/eth0
    is adopted when the NIC's other address only cools ${[{}, COOLS]} => adopt Bound u1/eth0
    retention: is released when the member's own, of a higher number, only cools ${[isNew, { ...COOLS, workload }]}
      => release Cooling u1/eth0
    retention: is adopted when what cools has no higher number ${[isNew, { ...COOLS, workload, claim: { id: "c", number: 0, earlier: [] } }]}
      => adopt Bound u1/eth0
    retention: is released when the member had it before, by a lower number ${[{ workload }, { ...COOLS, workload, claim: { id: "c", number: 2, earlier: [] } }]}
      => release Cooling u1/eth0
    retention: is adopted when the member's own is in quarantine ${[isNew, { ...COOLS, workload, state: "Quarantined" }]}
      => adopt Bound u1/eth0
    retention: is adopted when it is new, and no ADD was answered with what cools ${[isNew, { ...COOLS, workload, isConfirmed: false }]}
      => adopt Bound u1/eth0
    retention: is adopted when it is new, and what cools was no member's ${[isNew, COOLS]} => adopt Bound u1/eth0
    retention: is adopted when the member had it before, although another one cools ${[{ workload }, { ...COOLS, workload }]}
      => adopt Bound u1/eth0
    is released when its NIC has another address ${[{}, OTHER]} => release Cooling u1/eth0
    is released with its pod when it is unknown which one is on the NIC ${[{}, { ...OTHER, containerId: UNKNOWN_CONTAINER }]}
      => release Cooling u1/eth0 if its pod is gone
    is released for certain when one of two addresses of the NIC was not taken in ${[{}, { ip: ip("10.6.0.98") }, { ...OTHER, containerId: UNKNOWN_CONTAINER }]}
      => release Cooling u1/eth0
    is released when it names no pod here ${[{ holders: [] }]} => release Cooling /
    is adopted Cooling ${[cooling]} => adopt Cooling /
    is adopted Quarantined ${[quarantined(conflict)]} => adopt Quarantined / for 02:00:00:00:00:07 on ens5
    is adopted Quarantined, by whomever ${[quarantined(unnamed)]} => adopt Quarantined / for none on none
    node-lost: is released when this node was lost and no pod here has it ${[quarantined(lost)]} => release Cooling /
    is released when it does not say why it is in quarantine ${[quarantined()]} => release Cooling /
    node-lost: is its pod's again when this node was lost and the pod lives ${[ofPod]}
      => confirm Bound u1/eth0, else Cooling
    node-lost: is released when the pod's NIC has another address by now ${[ofPod, OTHER]} => release Cooling u1/eth0
    conflict: is adopted to be asked for when another node is lost ${[ofOther]} => adopt Quarantined / for none on none
    is left when it is Kept ${[{ state: "Kept", holders: [], workload }]} => leave
    node-lost: is left when another node answers for it ${[{ node: "n2", holders: [{ ...holder, node: "n2" }] }]}
      => leave
    node-lost: is left when another node answers for it, though it cools ${[{ ...cooling, node: "n2" }]} => leave
    retention: is its pod's beside the one of another node, unless that pod is gone ${[shared]}
      => confirm Bound u1/eth0, else Cooling
    retention: is left to the pod of another node when the NIC has another address ${[shared, OTHER]}
      => release Cooling u1/eth0
  `)("%s", (_what, [spec, ...own], decision) => expect(describeDecision(decide(spec, own))).toBe(decision));

  it("is left when it is being deleted", () => {
    const deleted = { ...object(), deleting: true };
    expect(decideOrphanObject({ object: deleted, node: NODE, ownRows: [], nowMs: 5 })).toEqual({ kind: "leave" });
  });

  const named = { holders: [{ ...holder, machine: "m1" }] };
  const OF_TWO = { ...shared, holders: [elsewhere, ...named.holders] };
  const ofMachine = quarantined(lostOf({ ...holder, machine: "m1" }));
  const PROBED = "probe Quarantined / for none on none";
  it.each<[what: string, spec: Spec, machine: string | undefined, decision: string]>([
    ["is adopted on the machine that it names", named, "m1", ADOPTED],
    ["is adopted when it names none", {}, "m1", ADOPTED],
    ["is left when another machine had this node's name", named, "m2", "leave"],
    ["is left when it is unknown which machine this is", named, undefined, "leave"],
    ["is left to another node's pod when another machine had this node's name", OF_TWO, "m2", "leave"],
    ["is confirmed by the machine that was lost", ofMachine, "m1", CONFIRMED],
    ["is probed by another machine that has the lost one's name", ofMachine, "m2", PROBED],
    ["is probed when it is unknown which machine this is", ofMachine, undefined, PROBED],
    ["is left to the owner that retains it", { ...ofMachine, workload }, "m2", "leave"],
    ["is left to the node that was asked to probe it", { ...ofMachine, node: "n2" }, "m2", "leave"],
    ["is adopted when the other machine has released it", cooling, "m2", "adopt Cooling /"],
  ])("node-lost: one that names a machine %s", (_what, spec, machine, decision) =>
    expect(describeDecision(decide(spec, [], machine))).toBe(decision),
  );

  const kept = { workload, pool: "blue", prefixLength: 24, namespace: "shop" };
  const probed = { adoption: { workload: undefined, quarantine: { nextProbeAtMs: 5, parent: "" } } };
  const atOnce = { adoption: { quarantine: { nextProbeAtMs: 5 } } };
  const stays = { adoption: { state: "Bound", workload }, ended: { state: "Cooling", workload } };
  const adoptedCooling = { kind: "adopt", adoption: { state: "Cooling", workload: undefined } };
  it.each<[what: string, decision: OrphanObjectAction, wanted: object]>([
    ["is adopted with the owner that retains it", decide({ workload }), { adoption: kept }],
    ["is released without that owner", decide({ workload }, [OTHER]), { adoption: { workload: undefined } }],
    ["is adopted Cooling without the owner that had it retained", decide({ ...cooling, workload }), adoptedCooling],
    ["conflict: of a lost node is probed at once, retained for no owner", decide({ ...ofOther, workload }), probed],
    ["node-lost: of a member stays retained when its pod is gone", decide({ ...ofPod, workload }), stays],
    ["is probed at once when it was quarantined: the clock was another one", decide(quarantined(conflict)), atOnce],
  ])("%s", (_what, decision, wanted) => expect(decision).toMatchObject(wanted));
});

const isLost = quarantined(lostOf(holder));
it.each<[what: string, row: Row, spec: Spec | undefined, wanted: boolean]>([
  ["of a pod's address", {}, isLost, true],
  ["of what a pod has, although the object names holders", {}, { ...isLost, holders: [holder] }, true],
  ["not of a claim under way", { isConfirmed: false }, isLost, false],
  ["not of what cools", { state: "Cooling" }, isLost, false],
  ["not where another node answers for it", {}, { ...isLost, node: "n2" }, false],
  ["not when another machine answers", {}, quarantined({ reason: "Conflict", mac: "", parent: "" }), false],
  ["not when it is in quarantine without a reason", {}, { state: "Quarantined" }, false],
  ["not when it is Bound", {}, {}, false],
  ["not when it is Bound again", {}, { quarantine: lostOf(holder) }, false],
  ["not when it is gone", {}, undefined, false],
])("node-lost: a row's object says that this node was lost %s", (_what, changes, spec, wanted) =>
  expect(isReportedLost(row(changes), spec && object(spec), NODE)).toBe(wanted),
);

const unanswered = { isConfirmed: false };
it.each<[what: string, row: Row, spec: Spec | undefined, isOlder: boolean]>([
  ["is older than an object that names its member", unanswered, { workload }, true],
  ["is not if the object names none", unanswered, {}, false],
  ["is not if it was answered", {}, { workload }, false],
  ["is not without an object", unanswered, undefined, false],
])("retention: a row of a restored journal %s", (_, changes, spec, isOlder) =>
  expect(isOlderThan(row(changes), spec && object(spec), NODE)).toBe(isOlder),
);

it.each<[what: string, row: Row, spec: Spec | undefined, wanted: boolean]>([
  ["when its object has vanished", {}, undefined, true],
  ["when its object is another pod's", {}, { holders: [{ ...holder, podUid: "u2" }] }, true],
  ["when its object is another NIC's", {}, { holders: [{ ...holder, ifName: "net1" }] }, true],
  ["when its object only cools", {}, cooling, true],
  ["when its quarantine has vanished", { state: "Quarantined" }, undefined, true],
  ["not when it is there", {}, {}, false],
  ["not while its claim is under way", { isConfirmed: false }, undefined, false],
  ["not when it cools", { state: "Cooling" }, undefined, false],
  ["not when it is in quarantine", { state: "Quarantined" }, quarantined(), false],
  ["not when the node was taken for lost", {}, quarantined(), false],
])("recreate: a row is published again %s", (_what, changes, spec, wanted) =>
  expect(needsPublishing(row(changes), spec && object(spec), NODE)).toBe(wanted),
);

describe("whose an object is", () => {
  it.each<[string, Spec, string | undefined]>([
    ["of the pod of this node", {}, "u1"],
    ["of the one of two that is here", { holders: [elsewhere, holder] }, "u1"],
    ["of no pod here", { holders: [elsewhere] }, undefined],
    ["in quarantine: of the pod that had it here", { holders: [], quarantine: lostOf(holder) }, "u1"],
    ["in quarantine: of another node's", { holders: [], quarantine: lostOf(elsewhere) }, undefined],
    ["of a holder here before that of the quarantine", { quarantine: lostOf({ ...holder, podUid: "u9" }) }, "u1"],
    ["of no holder", { holders: [] }, undefined],
  ])("%s", (_, spec, uid) => expect(claimantOf(object(spec), NODE)?.podUid).toBe(uid));

  it.each<[string, Spec, boolean]>([
    ["Bound to the row's pod", {}, true],
    ["shared with another", { holders: [elsewhere, holder] }, true],
    ["Bound to another", { holders: [elsewhere] }, false],
    ["of another interface", { holders: [{ ...holder, ifName: "net1" }] }, false],
    ["of another node", { node: "n2" }, false],
    ["Kept", { state: "Kept" }, false],
  ])("the row's: %s", (_, spec, wanted) => expect(isObjectOf(row(), object(spec), NODE)).toBe(wanted));
});
