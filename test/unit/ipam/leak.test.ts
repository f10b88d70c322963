import { expect, it } from "vitest";
import {
  confirmAfterMs,
  decideLeak,
  isOrphan,
  isStaticOwner,
  type LeakDecision,
  type LeakQuestion,
  type LeakRow,
  type NetnsStatus,
  type PodFacts,
  type PodStatus,
} from "../../../host/ipam/leak.ts";
import { cases } from "../../world/rows.ts";

const UID = "5f0c2c1e-0000-4000-8000-000000000001";
const HASH = "0123456789abcdef0123456789abcdef";
const CONFIRM_MS = 60_000;

function row(changes: Partial<LeakRow> = {}): LeakRow {
  return { state: "Bound", owner: UID, containerId: "c1", namespace: "shop", pod: "web-0", ...changes };
}

const ABSENT: PodStatus = { kind: "absent" };
const UNKNOWN: PodStatus = { kind: "unknown" };

function seen(facts: Partial<PodFacts> = {}): PodStatus {
  return { kind: "present", pod: { uid: UID, configHash: undefined, phase: "Running", deleting: false, ...facts } };
}

interface Situation {
  readonly row?: Partial<LeakRow>;
  readonly pod: PodStatus;
  readonly netns?: NetnsStatus;
  readonly isHidden?: boolean;
  /** Time since it was first observed. */
  readonly observedMs?: number;
}

function check(_what: string, { row: changes, netns = "unknown", observedMs, ...more }: Situation, decision: string) {
  const nowMs = 1_000_000;
  const question: LeakQuestion = {
    ...{ ...more, row: row(changes), netns, nowMs, confirmAfterMs: CONFIRM_MS },
    observedAtMs: observedMs === undefined ? undefined : nowMs - observedMs,
  };
  expect(describeDecision(decideLeak(question))).toBe(decision);
}

function describeDecision(decision: LeakDecision): string {
  return decision.kind === "collect" ? `collect: ${decision.reason}` : decision.kind;
}

it.each(cases<Situation>`
  a pod that lives is kept ${{ pod: seen() }} => keep
  a pod that lives is kept, whatever was observed ${{ pod: seen(), observedMs: 1e9 }} => keep
  an absent pod is observed ${{ pod: ABSENT }} => observe
  too early for the second one ${{ pod: ABSENT, observedMs: CONFIRM_MS - 1 }} => observe
  the grace counts once (trap 9) ${{ pod: ABSENT, observedMs: CONFIRM_MS }} => collect: gone
  a clock that went back is no second one ${{ pod: ABSENT, observedMs: -86_400_000 }} => observe
  another UID under the name is observed (trap 3) ${{ pod: seen({ uid: "other" }) }} => observe
  another UID under the name is collected, not dropped (trap 3) ${{ pod: seen({ uid: "other" }), observedMs: CONFIRM_MS }}
    => collect: gone
  an absent pod is none with an empty UID ${{ row: { owner: "" }, pod: seen({ uid: "" }) }} => observe
  what cannot be read is left ${{ pod: UNKNOWN }} => wait
  what cannot be read is left, whatever was observed ${{ pod: UNKNOWN, observedMs: 1e9 }} => wait
`)("leak: two observations: %s", check);

it("leak: two observations are as far apart as the longer of grace and cooldown", () => {
  const all = [confirmAfterMs(60_000, 30_000), confirmAfterMs(10_000, 30_000), confirmAfterMs(0, 0)];
  expect(all).toEqual([60_000, 30_000, 0]);
});

it.each(cases<Situation>`
  succeeded ${{ pod: seen({ phase: "Succeeded" }) }} => collect: finished
  failed, as an evicted one is ${{ pod: seen({ phase: "Failed" }) }} => collect: finished
  another pod has finished ${{ pod: seen({ uid: "other", phase: "Failed" }) }} => observe
  finished and terminating ${{ pod: seen({ phase: "Failed", deleting: true }) }} => observe
  finished, and a finalizer holds it ${{ pod: seen({ phase: "Failed", deleting: true }), observedMs: CONFIRM_MS }}
    => collect: finished
  terminating ${{ pod: seen({ deleting: true }), observedMs: 1e9 }} => keep
  without a phase ${{ pod: seen({ phase: undefined }), observedMs: 1e9 }} => keep
  of a state that says nothing ${{ pod: seen({ phase: "Unknown" }), observedMs: 1e9 }} => keep
`)("leak: finished pods (trap 9): %s", check);

const inUse = { netns: "inUse", observedMs: 1e9 } as const;
it.each(cases<Situation>`
  absent: deleted by force while the kubelet is down ${{ ...inUse, pod: ABSENT }} => keep
  another UID under the name ${{ ...inUse, pod: seen({ uid: "other" }) }} => keep
  finished: the sandbox has yet to go ${{ ...inUse, pod: seen({ phase: "Failed" }) }} => keep
  finished and terminating ${{ ...inUse, pod: seen({ phase: "Failed", deleting: true }) }} => keep
  a static pod ${{ row: { owner: HASH }, ...inUse, pod: ABSENT }} => keep
  cannot be read ${{ ...inUse, pod: UNKNOWN }} => wait
`)("node-lost: an address that is still on its NIC, whatever the API server says of the pod: %s", check);

const ofStatic = { row: { owner: HASH } };
const mirror = seen({ uid: "mirror", configHash: HASH });
const otherMirror = seen({ uid: "mirror", configHash: HASH.replace("0", "f") });
it.each(cases<Situation>`
  a mirror pod with the hash is the owner ${{ ...ofStatic, pod: mirror, observedMs: 1e9 }} => keep
  a finished mirror pod ${{ ...ofStatic, pod: seen({ uid: "m", configHash: HASH, phase: "Failed" }) }}
    => collect: finished
  no mirror pod, namespace there ${{ ...ofStatic, pod: ABSENT, netns: "there", observedMs: 1e9 }} => keep
  no mirror pod, namespace unknown ${{ ...ofStatic, pod: ABSENT, observedMs: 1e9 }} => keep
  no mirror pod, namespace gone ${{ ...ofStatic, pod: ABSENT, netns: "gone" }} => observe
  no mirror pod, namespace gone, twice ${{ ...ofStatic, pod: ABSENT, netns: "gone", observedMs: CONFIRM_MS }}
    => collect: gone
  another mirror pod, namespace there ${{ ...ofStatic, pod: otherMirror, netns: "there", observedMs: 1e9 }} => keep
  another mirror pod, namespace unknown ${{ ...ofStatic, pod: otherMirror, observedMs: CONFIRM_MS }} => collect: gone
  an ordinary pod took the name, namespace unknown ${{ ...ofStatic, pod: seen({ uid: "x" }), observedMs: 1e9 }} => keep
  a namespace that is there keeps no ordinary pod ${{ pod: ABSENT, netns: "there", observedMs: CONFIRM_MS }}
    => collect: gone
`)("static-pods: static pods: %s", check);

it.each(cases<Situation>`
  unattached: is collected like any ${{ row: { containerId: "" }, pod: ABSENT, observedMs: CONFIRM_MS }} => collect: gone
  Cooling ${{ row: { state: "Cooling" }, pod: ABSENT, observedMs: 1e9 }} => keep
  Kept: it waits for its identity ${{ row: { state: "Kept" }, pod: ABSENT, observedMs: 1e9 }} => keep
  Quarantined ${{ row: { state: "Quarantined" }, pod: ABSENT, observedMs: 1e9 }} => keep
  no namespace named ${{ row: { namespace: "" }, pod: ABSENT, observedMs: 1e9 }} => keep
  no pod named ${{ row: { pod: "" }, pod: ABSENT, observedMs: 1e9 }} => keep
  a machine that may have it inside ${{ isHidden: true, pod: ABSENT, netns: "there", observedMs: 1e9 }} => wait
  one whose namespace is gone ${{ isHidden: true, pod: ABSENT, netns: "gone", observedMs: 1e9 }} => collect: gone
  owned by the container ${{ row: { owner: "c1" }, pod: ABSENT, observedMs: 1e9 }} => keep
`)("what no sweep touches, and what was never attached: %s", check);

const WORKLOAD = { kind: "StatefulSet", name: "web", uid: "w", member: "web-0" };
it.each([
  ["is a pod that the API server has not", {}, ABSENT, true],
  ["is one whose name another pod has", {}, seen({ uid: "other" }), true],
  ["is none while its object is there, finished or not", {}, seen({ phase: "Failed", deleting: true }), false],
  ["is none when the API server does not tell", {}, UNKNOWN, false],
  ["is none when the pod under its name has no UID that could be compared", {}, seen({ uid: undefined }), false],
  ["is none without a workload that waits for the address", { workload: undefined }, ABSENT, false],
  ["is one also when it was never attached", { containerId: "" }, ABSENT, true],
  ["is none when it is a static pod: its object says nothing", { owner: HASH }, ABSENT, false],
  ["is none when its mirror has another UID and its hash", { owner: HASH }, seen({ configHash: HASH }), false],
  ["is none when its address is Kept already", { state: "Kept" as const }, ABSENT, false],
])("retention: an orphan %s", (_what, changes, pod, wanted) => {
  expect(isOrphan({ ...row(), workload: WORKLOAD, ...changes }, pod)).toBe(wanted);
});

it.each([
  [HASH, true],
  [`x${HASH}`, false],
  [`${HASH}0`, false],
  [UID, false],
])("static-pods: whether %s is a hash", (owner, wanted) => expect(isStaticOwner(owner)).toBe(wanted));
