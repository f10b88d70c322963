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
  ["its agent has settled it", node("e2"), 0, false],
  ["its agent is at an earlier one", node("e1"), 0, true],
  ["its agent waits for another node", node("e2.written"), 0, true],
  ["its agent has never marked any", node(undefined), 0, false],
  ["it is out of service", node("e1", { taint: OUT_OF_SERVICE }), 0, false],
  ["it has just become silent", node("e1", { ready: "Unknown" }), 0, true],
  ["it was silent for almost so long", node("e1", { ready: "Unknown" }), LOST_MS - 1, true],
  ["it was silent for long enough", node("e1", { ready: "Unknown" }), LOST_MS, false],
] as const)("%s", ([, of, silentMs, isWaitedFor]) => {
  const plan = planEpoch({ epoch: "e2", nodes: [of], notReadyMs: () => silentMs, nodeLostMs: LOST_MS });
  expect(plan).toEqual(isWaitedFor ? ["n1"] : []);
});

it("the record says whom it waits for, and is settled when that is nobody", () => {
  const metadata = { name: "berth-registry", namespace: "kube-system", uid: "u1", resourceVersion: "7" };
  const record = decodeEpochRecord({ metadata, data: { epoch: "e2", settled: "e1" } }, "the record");
  expect(planRecord(record, ["n1"])).toEqual({ ...record, waitsFor: "n1" });
  expect(planRecord({ ...record, waitsFor: "n1" }, ["n1"])).toBe(undefined);
  expect(planRecord({ ...record, waitsFor: "n1" }, [])).toEqual({ ...record, settled: "e2" });
  expect(planRecord({ ...record, settled: "e2" }, [])).toBe(undefined);
});
