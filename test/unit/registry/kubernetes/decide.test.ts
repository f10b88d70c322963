import { expect, it } from "vitest";
import { decide, type SyncInputs } from "../../../../host/registry/kubernetes/decide.ts";
import type { KnownObject } from "../../../../host/registry/kubernetes/known-object.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { proposal } from "../registry-suite.ts";

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
const OTHER_WEB = { ...WEB, member: "web-1" };

/** Of pod a on this node, its NIC eth0. */
const names = { owner: "a", containerId: "c", network: "net", namespace: "shop", pod: "web-0", sinceMs: 0, version: 7 };
const bound: Allocation = { ...proposal("10.0.0.1"), ...names, state: "Bound", isConfirmed: false };
const cooling: Allocation = { ...bound, state: "Cooling", isConfirmed: true };
const ended: Allocation = { ...cooling, owner: "" };
const quarantined: Allocation = { ...ended, state: "Quarantined" };

const ours: KnownObject = { ...{ uid: "u", resourceVersion: "5" }, state: "Bound", node: "here", podUid: "a", ifName: "eth0" }; // biome-ignore format: one thought
const idle = { podUid: "", ifName: "" };
const ourCooling: KnownObject = { ...ours, ...idle, state: "Cooling" };
const ourQuarantined: KnownObject = { ...ours, ...idle, state: "Quarantined" };
const ourKept: KnownObject = { ...ours, ...idle, state: "Kept", workload: WEB };
const ofOtherPod: KnownObject = { ...ours, podUid: "b" };
/** Of a lost node, whose address this node, or another one, was told to ask for. */
const weAsk: KnownObject = { ...ourQuarantined, lost: "there" };
const theyAsk: KnownObject = { ...ourQuarantined, node: "there", lost: "here" };
const elsewhere = (object: KnownObject): KnownObject => ({ ...object, node: "there" });

const due = { isDue: true };
const shown = { isPublic: true };
const unanswered = { isUnanswered: true };
const after = (owner: string): Partial<SyncInputs> => ({ former: new Set([owner]) });

type Row = readonly [
  what: string,
  row: Allocation,
  object: SyncInputs["object"],
  options: Partial<SyncInputs>,
  verdict: string,
];

const ROWS: readonly Row[] = [
  ["a claim creates without looking", bound, undefined, {}, "create"],
  ["a claim of what another pod here had looks first", bound, undefined, after("b"), "look"],
  ["a take-over of what was not met looks first", bound, undefined, { replaces: "5" }, "look"],
  ["a claim creates what is not there", bound, "absent", after("b"), "create"],
  ["rule 4: a claim's own object", bound, ours, {}, "equal"],
  ["rule 3: a claim's own object, which an unanswered write may yet change", bound, ours, unanswered, "replace Bound"],
  ["rule 3: what is not known, with such a write", bound, undefined, unanswered, "look"],
  ["rule 4: not that of the pod's other NIC", bound, { ...ours, ifName: "net1" }, {}, "taken"],
  ["its own object under another node's name", bound, elsewhere(ours), {}, "replace Bound"],
  ["another pod's here", bound, ofOtherPod, {}, "taken"],
  ["another pod's here, whose row the claim took over", bound, ofOtherPod, after("b"), "replace Bound"],
  ["another pod's elsewhere", bound, elsewhere(ofOtherPod), after("b"), "taken"],
  ["rule 10: foreign and cooling, not asked for", bound, elsewhere(ourCooling), {}, "taken"],
  ["rule 10: foreign and cooling, this version", bound, elsewhere(ourCooling), { replaces: "5" }, "replace Bound"],
  ["rule 10: foreign and cooling, an older version", bound, elsewhere(ourCooling), { replaces: "4" }, "taken"],
  ["rule 10: a version does not take over what is bound", bound, elsewhere(ofOtherPod), { replaces: "5" }, "taken"],
  ["rule 3: its own, shown as cooling", bound, ourCooling, after("a"), "replace Bound"],
  ["cooling here without a row", bound, ourCooling, {}, "taken"],
  ["rule 12: in quarantine here, taken over", bound, ourQuarantined, after(""), "replace Bound"],
  ["rule 12: in quarantine", bound, ourQuarantined, {}, "taken"],
  ["rule 2: this node was taken for lost", { ...bound, isConfirmed: true }, ourQuarantined, {}, "replace Bound"],
  ["rule 2: and another has it now", { ...bound, isConfirmed: true }, elsewhere(ourQuarantined), {}, "taken"],
  ["rule 2: and another asks for the address", { ...bound, isConfirmed: true }, theyAsk, {}, "reclaim"],
  ["rule 2: a claim of what another asks for", bound, theyAsk, {}, "taken"],
  ["rule 2: what another asks for was a third one's", { ...bound, isConfirmed: true }, { ...theyAsk, lost: "n3" }, {}, "taken"], // biome-ignore format: one line each
  ["rule 8: kept for the member", { ...bound, workload: WEB }, elsewhere(ourKept), {}, "replace Bound"],
  ["rule 8: kept for another member", { ...bound, workload: OTHER_WEB }, ourKept, {}, "taken"],
  ["rule 8: kept for another NIC of the member", { ...bound, workload: WEB }, { ...ourKept, workload: { ...WEB, ifName: "net1" } }, {}, "taken"], // biome-ignore format: one line each
  ["rule 8: kept for this NIC of the member", { ...bound, workload: WEB }, { ...ourKept, workload: { ...WEB, ifName: "eth0" } }, {}, "replace Bound"], // biome-ignore format: one line each
  ["rule 8: an earlier pod of the member has it on another NIC", { ...bound, workload: WEB }, elsewhere({ ...ofOtherPod, ifName: "net1", workload: WEB }), {}, "taken"], // biome-ignore format: one line each
  ["rule 8: kept for that member of another namespace", { ...bound, workload: { ...WEB, namespace: "evil" } }, ourKept, {}, "taken"], // biome-ignore format: one line each
  ["rule 8: that member of another namespace has it", { ...bound, workload: { ...WEB, namespace: "evil" } }, { ...ofOtherPod, workload: WEB }, {}, "taken"], // biome-ignore format: one line each
  ["rule 8: kept, and the pod is of no workload", bound, ourKept, {}, "taken"],
  ["rule 8: an earlier pod of the member has it", { ...bound, workload: WEB }, elsewhere({ ...ofOtherPod, workload: WEB }), {}, "contest"], // biome-ignore format: one line each
  ["rule 8: another member's pod has it", { ...bound, workload: WEB }, { ...ofOtherPod, workload: OTHER_WEB }, {}, "taken"], // biome-ignore format: one line each

  ["a release in a large pool", cooling, ours, {}, "nothing"],
  ["a release in a large pool, of what is not known", cooling, undefined, {}, "nothing"],
  ["a release of what was never made", cooling, "absent", {}, "nothing"],
  ["rule 10: a release in a small pool", cooling, ours, shown, "replace Cooling"],
  ["rule 10: that is shown already", cooling, ourCooling, shown, "nothing"],
  ["rule 10: of what is not known", cooling, undefined, shown, "look"],
  ["a cooldown that is over", cooling, ours, due, "delete"],
  ["a cooldown that is over, shown", cooling, ourCooling, { ...due, ...shown }, "delete"],
  ["a cooldown that is over, of what is not known", cooling, undefined, due, "look"],
  ["a cooldown that is over, and there is nothing", cooling, "absent", due, "forget"],
  ["rule 10: another node took it over", cooling, elsewhere(ofOtherPod), due, "forget"],
  ["rule 13: another pod's object here that the journal does not know", cooling, ofOtherPod, due, "forget"],
  ["the object of who had it before", cooling, ofOtherPod, { ...due, ...after("b") }, "delete"],
  ["rule 12: the end of a quarantine", ended, ourQuarantined, due, "delete"],
  ["rule 12: that was never written", ended, ours, due, "delete"],
  ["rule 8: a release of a member", { ...cooling, workload: WEB }, ours, {}, "replace Kept"],
  ["rule 8: of what is not known", { ...cooling, workload: WEB }, undefined, {}, "look"],
  ["rule 8: that is kept", { ...cooling, workload: WEB }, ourKept, {}, "forget"],
  ["rule 8: whose next pod has it already", { ...cooling, workload: WEB }, elsewhere({ ...ofOtherPod, workload: WEB }), {}, "forget"], // biome-ignore format: one line each
  ["rule 8: of which nothing is there", { ...cooling, workload: WEB }, "absent", {}, "forget"],
  ["rule 8: that was new to the member and is undone", { ...cooling, workload: WEB }, ours, { ...due, isDiscarded: true }, "delete"], // biome-ignore format: one line each

  ["a claim of what somebody's finalizer holds", bound, { ...ours, deleting: true }, {}, "taken"],
  [
    "an answered claim of what somebody deletes",
    { ...bound, isConfirmed: true },
    { ...ours, deleting: true },
    {},
    "equal",
  ],
  ["a release of what somebody's finalizer holds", cooling, { ...ours, deleting: true }, due, "nothing"],

  ["rule 12: a conflict", quarantined, ours, {}, "replace Quarantined"],
  ["rule 12: a conflict that is written", quarantined, ourQuarantined, {}, "equal"],
  [
    "rule 12: a conflict that is written, with such a write",
    quarantined,
    ourQuarantined,
    unanswered,
    "replace Quarantined",
  ],
  ["rule 12: a conflict of which nothing is known", quarantined, undefined, {}, "look"],
  ["rule 12: a conflict whose object is gone", quarantined, "absent", {}, "create"],
  ["rule 12: an address that we were told to ask for", quarantined, weAsk, {}, "equal"],
  ["rule 12: is not written over, it says who had it", quarantined, weAsk, unanswered, "equal"],
  ["rule 12: is free by somebody else's word", quarantined, "absent", { isAsked: true }, "forget"],
  ["rule 12: is its node's again", quarantined, elsewhere({ ...weAsk, state: "Bound" }), { isAsked: true }, "forget"],
  ["rule 12: is silent", ended, weAsk, due, "delete"],
  ["rule 12: a conflict of what another node has now", quarantined, elsewhere(ours), {}, "forget"],
  ["a row that says Kept", { ...cooling, state: "Kept" }, ourKept, {}, "forget"],
];

it.each(ROWS)("%s", (_what, row, object, options, expected) => {
  const nobody: ReadonlySet<string> = new Set();
  const plain = {
    node: "here",
    isDue: false,
    isPublic: false,
    isDiscarded: false,
    isAsked: false,
    isUnanswered: false,
    former: nobody,
    replaces: undefined,
  };
  const verdict = decide({ ...plain, row, object, ...options });
  expect(verdict.kind === "replace" ? `replace ${verdict.state}` : verdict.kind).toBe(expected);
});
