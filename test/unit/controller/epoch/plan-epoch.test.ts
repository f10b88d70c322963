/** Which nodes the registry's epoch waits for. */
import { expect, it } from "vitest";
import { planEpoch, planRecord } from "../../../../host/controller/epoch/plan-epoch.ts";
import { decodeNode, type Node, OUT_OF_SERVICE } from "../../../../host/resources/node.ts";
import { decodeEpochRecord, EPOCH_ANNOTATION } from "../../../../host/resources/registry-epoch.ts";

const LOST_MS = 600_000;

function node(mark: string | undefined, { ready = "True", taint = "" } = {}): Node {
  const annotations = mark === undefined ? {} : { [EPOCH_ANNOTATION]: mark };
  const taints = taint === "" ? [] : [{ key: taint }];
  const status = { conditions: [{ type: "Ready", status: ready }] };
  return decodeNode({ metadata: { name: "n1", annotations }, spec: { taints }, status }, "Node");
}

it.for([
  ["its agent has settled it", node("e2"), 0, undefined],
  ["its agent is at an earlier one", node("e1"), 0, "waiting"],
  ["its agent waits for another node", node("e2.written"), 0, "waiting"],
  ["its agent has never marked any", node(undefined), 0, undefined],
  ["it is out of service", node("e1", { taint: OUT_OF_SERVICE }), 0, undefined],
  ["it has just become silent", node("e1", { ready: "Unknown" }), 0, "waiting"],
  ["it was silent for almost so long", node("e1", { ready: "Unknown" }), LOST_MS - 1, "waiting"],
  ["it was silent for long enough", node("e1", { ready: "Unknown" }), LOST_MS, "missing"],
] as const)("%s", ([, of, silentMs, as]) => {
  const plan = planEpoch({ epoch: "e2", nodes: [of], notReadyMs: () => silentMs, nodeLostMs: LOST_MS });
  expect(plan).toEqual({ waiting: [], missing: [], ...(as && { [as]: ["n1"] }) });
});

const HOUR_MS = 3_600_000;

it.for([
  ["says whom it waits for", {}, { waiting: ["n1"] }, 0, { waitsFor: "n1" }],
  ["stays as it is", { waitsFor: "n1" }, { waiting: ["n1"] }, 0, undefined],
  ["is settled when that is no node", { waitsFor: "n1" }, {}, 0, { settled: "e2" }],
  ["is settled once", { settled: "e2" }, {}, 0, undefined],
  ["is probed while a node is away", {}, { missing: ["n1"] }, 0, { settled: "e2", waitsFor: "n1", probed: "e2" }],
  [
    "also for a process that has just started",
    { settled: "e2", waitsFor: "n1", probed: "e2" },
    { waiting: ["n1"] },
    0,
    undefined,
  ],
  ["until it is gone", { settled: "e2", waitsFor: "n1", probed: "e2" }, {}, 0, { settled: "e2" }],
  ["is probed after a restore", { cause: "history" }, {}, 0, { settled: "e2", probed: "e2", cause: "history" }],
  ["for an hour", { settled: "e2", cause: "history", probed: "e2" }, {}, HOUR_MS - 1, undefined],
  ["and no more", { settled: "e2", cause: "history", probed: "e2" }, {}, HOUR_MS, { settled: "e2", cause: "history" }],
] as const)("the record %s", ([, data, plan, settledMs, planned]) => {
  const metadata = { name: "berth-registry", namespace: "kube-system", uid: "u1", resourceVersion: "7" };
  const of = (more: object) =>
    decodeEpochRecord({ metadata, data: { epoch: "e2", settled: "e1", ...more } }, "the record");
  const found = planRecord(of(data), { waiting: [], missing: [], ...plan }, settledMs);
  expect(found).toEqual(planned && of(planned));
});
