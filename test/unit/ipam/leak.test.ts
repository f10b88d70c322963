import { describe, expect, it } from "vitest";
import {
  confirmAfterMs,
  decideLeak,
  isOrphan,
  type LeakDecision,
  type LeakQuestion,
  type LeakRow,
  type NetnsStatus,
  type PodFacts,
  type PodStatus,
} from "../../../host/ipam/leak.ts";

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

interface Case {
  readonly what: string;
  readonly row?: Partial<LeakRow>;
  readonly pod: PodStatus;
  readonly netns?: NetnsStatus;
  /** How long ago it was first observed. */
  readonly observedMs?: number;
  readonly decision: string;
}

function check({ row: changes, pod, netns = "unknown", observedMs, decision }: Case) {
  const nowMs = 1_000_000;
  const question: LeakQuestion = {
    ...{ row: row(changes), pod, netns, nowMs, confirmAfterMs: CONFIRM_MS },
    observedAtMs: observedMs === undefined ? undefined : nowMs - observedMs,
  };
  expect(describeDecision(decideLeak(question))).toBe(decision);
}

function describeDecision(decision: LeakDecision): string {
  return decision.kind === "collect" ? `collect: ${decision.reason}` : decision.kind;
}

describe("leak: two observations", () => {
  const cases: Case[] = [
    { what: "a pod that lives is kept", pod: seen(), decision: "keep" },
    { what: "a pod that lives is kept, whatever was observed", pod: seen(), observedMs: 1e9, decision: "keep" },
    { what: "an absent pod is observed", pod: ABSENT, decision: "observe" },
    { what: "too early for the second one", pod: ABSENT, observedMs: CONFIRM_MS - 1, decision: "observe" },
    { what: "the grace counts once (trap 9)", pod: ABSENT, observedMs: CONFIRM_MS, decision: "collect: gone" },
    { what: "a clock that went back is no second one", pod: ABSENT, observedMs: -86_400_000, decision: "observe" },
    { what: "another UID under the name is observed (trap 3)", pod: seen({ uid: "other" }), decision: "observe" },
    {
      what: "another UID under the name is collected, not dropped (trap 3)",
      ...{ pod: seen({ uid: "other" }), observedMs: CONFIRM_MS, decision: "collect: gone" },
    },
    {
      what: "an absent pod is none with an empty UID",
      row: { owner: "" },
      pod: seen({ uid: "" }),
      decision: "observe",
    },
    { what: "what cannot be read is left", pod: UNKNOWN, decision: "wait" },
    { what: "what cannot be read is left, whatever was observed", pod: UNKNOWN, observedMs: 1e9, decision: "wait" },
    { what: "an adopted address is collected like any", row: { containerId: "-" }, pod: ABSENT, observedMs: CONFIRM_MS, decision: "collect: gone" }, // biome-ignore format: a row
  ];
  it.each(cases)("$what", check);

  it("are as far apart as the longer of grace and cooldown", () => {
    expect([confirmAfterMs(60_000, 30_000), confirmAfterMs(10_000, 30_000), confirmAfterMs(0, 0)]).toEqual([
      60_000, 30_000, 0,
    ]);
  });
});

describe("leak: finished pods (trap 9)", () => {
  const cases: Case[] = [
    { what: "succeeded", pod: seen({ phase: "Succeeded" }), decision: "collect: finished" },
    { what: "failed, as an evicted one is", pod: seen({ phase: "Failed" }), decision: "collect: finished" },
    { what: "another pod has finished", pod: seen({ uid: "other", phase: "Failed" }), decision: "observe" },
    { what: "finished and terminating", pod: seen({ phase: "Failed", deleting: true }), decision: "observe" },
    {
      what: "finished, and a finalizer holds it",
      ...{ pod: seen({ phase: "Failed", deleting: true }), observedMs: CONFIRM_MS, decision: "collect: finished" },
    },
    { what: "terminating", pod: seen({ deleting: true }), observedMs: 1e9, decision: "keep" },
    { what: "without a phase", pod: seen({ phase: undefined }), observedMs: 1e9, decision: "keep" },
    { what: "of a state that says nothing", pod: seen({ phase: "Unknown" }), observedMs: 1e9, decision: "keep" },
  ];
  it.each(cases)("$what", check);
});

describe("node-lost: an address that is still on its NIC, whatever the API server says of the pod", () => {
  const inUse = { netns: "inUse", observedMs: 1e9 } as const;
  const cases: Case[] = [
    { what: "absent: deleted by force while the kubelet is down", ...inUse, pod: ABSENT, decision: "keep" },
    { what: "another UID under the name", ...inUse, pod: seen({ uid: "other" }), decision: "keep" },
    { what: "finished: the sandbox has yet to go", ...inUse, pod: seen({ phase: "Failed" }), decision: "keep" },
    { what: "finished and terminating", ...inUse, pod: seen({ phase: "Failed", deleting: true }), decision: "keep" },
    { what: "a static pod", row: { owner: HASH }, ...inUse, pod: ABSENT, decision: "keep" },
    { what: "cannot be read", ...inUse, pod: UNKNOWN, decision: "wait" },
  ];
  it.each(cases)("$what", check);
});

describe("static-pods: static pods", () => {
  const owner = { owner: HASH };
  const mirror = seen({ uid: "mirror", configHash: HASH });
  const otherMirror = seen({ uid: "mirror", configHash: HASH.replace("0", "f") });
  const cases: Case[] = [
    { what: "a mirror pod with the hash is the owner", row: owner, pod: mirror, observedMs: 1e9, decision: "keep" },
    { what: "a finished mirror pod", row: owner, pod: seen({ uid: "m", configHash: HASH, phase: "Failed" }), decision: "collect: finished" }, // biome-ignore format: a row
    { what: "no mirror pod, namespace there", row: owner, pod: ABSENT, netns: "there", observedMs: 1e9, decision: "keep" }, // biome-ignore format: a row
    { what: "no mirror pod, namespace unknown", row: owner, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "no mirror pod, namespace gone", row: owner, pod: ABSENT, netns: "gone", decision: "observe" },
    { what: "no mirror pod, namespace gone, twice", row: owner, pod: ABSENT, netns: "gone", observedMs: CONFIRM_MS, decision: "collect: gone" }, // biome-ignore format: a row
    { what: "another mirror pod, namespace there", row: owner, pod: otherMirror, netns: "there", observedMs: 1e9, decision: "keep" }, // biome-ignore format: a row
    { what: "another mirror pod, namespace unknown", row: owner, pod: otherMirror, observedMs: CONFIRM_MS, decision: "collect: gone" }, // biome-ignore format: a row
    { what: "an ordinary pod took the name, namespace unknown", row: owner, pod: seen({ uid: "x" }), observedMs: 1e9, decision: "keep" }, // biome-ignore format: a row
    { what: "a namespace that is there keeps no ordinary pod", pod: ABSENT, netns: "there", observedMs: CONFIRM_MS, decision: "collect: gone" }, // biome-ignore format: a row
  ];
  it.each(cases)("$what", check);
});

describe("what no sweep touches", () => {
  const cases: Case[] = [
    { what: "Cooling", row: { state: "Cooling" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "Kept: it waits for its identity", row: { state: "Kept" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "Quarantined", row: { state: "Quarantined" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "unattached: never attached", row: { containerId: "" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "no pod named", row: { namespace: "", pod: "" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
    { what: "owned by the container", row: { owner: "c1" }, pod: ABSENT, observedMs: 1e9, decision: "keep" },
  ];
  it.each(cases)("$what", check);
});

describe("retention: an orphan", () => {
  const WORKLOAD = { kind: "StatefulSet", name: "web", uid: "w", member: "web-0" };
  it.each([
    ["is a pod that the API server has not", {}, ABSENT, true],
    ["is one whose name another pod has", {}, seen({ uid: "other" }), true],
    ["is none while its object is there, finished or not", {}, seen({ phase: "Failed", deleting: true }), false],
    ["is none when the API server does not tell", {}, UNKNOWN, false],
    ["is none when the pod under its name has no UID that could be compared", {}, seen({ uid: undefined }), false],
    ["is none without a workload that waits for the address", { workload: undefined }, ABSENT, false],
    ["is none when it was never attached", { containerId: "" }, ABSENT, false],
    ["is none when it is a static pod: its object says nothing", { owner: HASH }, ABSENT, false],
    ["is none when its mirror has another UID and its hash", { owner: HASH }, seen({ configHash: HASH }), false],
    ["is none when its address is Kept already", { state: "Kept" as const }, ABSENT, false],
  ])("%s", (_what, changes, pod, wanted) => {
    expect(isOrphan({ ...row(), workload: WORKLOAD, ...changes }, pod)).toBe(wanted);
  });
});
