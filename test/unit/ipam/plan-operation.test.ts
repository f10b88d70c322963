import { expect, it } from "vitest";
import type { NetnsStatus, PodStatus } from "../../../host/ipam/leak.ts";
import {
  type OperationFacts,
  refuseQuarantine,
  refuseRelease,
  refuseReported,
} from "../../../host/ipam/plan-operation.ts";

const ROW = { state: "Bound", owner: "u1", containerId: "c1", ifName: "eth0" } as const;
const ABSENT: PodStatus = { kind: "absent" };
const pod = (uid: string, phase = "Running"): PodStatus => ({
  kind: "present",
  pod: { uid, configHash: undefined, phase, deleting: false },
});
const facts = (netns: NetnsStatus, status: PodStatus | undefined, row: Partial<OperationFacts["row"]> = {}) => ({
  row: { ...ROW, ...row },
  pod: status,
  netns,
});

it.each<[what: string, facts: OperationFacts, why: RegExp | undefined, isForceable?: boolean]>([
  ["its pod is gone", facts("gone", ABSENT), undefined],
  ["its pod is gone, and the netns cannot be read", facts("unknown", ABSENT), undefined],
  ["another pod has the name", facts("gone", pod("u2")), undefined],
  ["its pod has finished", facts("there", pod("u1", "Succeeded")), undefined],
  ["its pod runs", facts("unknown", pod("u1")), /its pod exists/, true],
  ["its NIC has it, and the pod object is gone", facts("inUse", ABSENT), /NIC eth0 of its pod still has it/, true],
  ["the API server is silent", facts("gone", { kind: "unknown" }), /did not say/, true],
  ["without pods: the netns is gone", facts("gone", undefined), undefined],
  ["without pods: the NIC has lost it", facts("there", undefined), undefined],
  ["without pods: the netns is unknown", facts("unknown", undefined), /unknown whether the NIC eth0/, true],
  ["its NIC is not attached", facts("gone", ABSENT, { containerId: "" }), /not attached yet/, false],
  ["its static pod", facts("unknown", ABSENT, { owner: "0".repeat(32) }), /static pod/, true],
  ["its static pod's netns is gone", facts("gone", ABSENT, { owner: "0".repeat(32) }), undefined],
  ["it cools", facts("gone", ABSENT, { state: "Cooling" }), /released already/, false],
  ["it is in quarantine", facts("gone", ABSENT, { state: "Quarantined" }), /--remove/, false],
  ["it is retained", facts("gone", ABSENT, { state: "Kept" }), /retained/, false],
])("release when %s", (_, given, why, isForceable) => {
  const refusal = refuseRelease(given);
  if (why === undefined) expect(refusal).toBeUndefined();
  else expect(refusal).toEqual({ why: expect.stringMatching(why), isForceable });
});

it.each<[what: string, facts: OperationFacts | undefined, why: RegExp | undefined, isForceable?: boolean]>([
  ["it is free", undefined, undefined],
  ["it cools", facts("gone", ABSENT, { state: "Cooling" }), undefined],
  ["its pod is gone", facts("gone", ABSENT), undefined],
  ["its pod runs", facts("gone", pod("u1")), /its pod exists/, true],
  ["it is in quarantine", facts("gone", ABSENT, { state: "Quarantined" }), /already/, false],
  ["it is retained", facts("gone", ABSENT, { state: "Kept" }), /retained/, false],
])("quarantine when %s", (_, given, why, isForceable) => {
  const refusal = refuseQuarantine(given);
  if (why === undefined) expect(refusal).toBeUndefined();
  else expect(refusal).toEqual({ why: expect.stringMatching(why), isForceable });
});

it.each<[what: string, row: Partial<OperationFacts["row"]>, why: string | undefined]>([
  ["the record is the reported one", {}, undefined],
  ["it cools by now", { state: "Cooling" }, "it is Cooling by now"],
  ["another pod has it", { owner: "u2" }, "another pod or container has it since the report"],
  ["the pod has another container", { containerId: "c2" }, "another pod or container has it since the report"],
])("release from a report when %s", (_, row, why) => {
  const refusal = refuseReported({ ...ROW, ...row }, { owner: "u1", containerId: "c1" });
  expect(refusal).toEqual(why === undefined ? undefined : { why, isForceable: false, isOver: true });
  expect(refuseReported({ ...ROW, ...row }, undefined)).toBeUndefined();
});
