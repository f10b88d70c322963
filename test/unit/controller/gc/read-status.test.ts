import { expect, it } from "vitest";
import type { NodeStatus, PodStatus } from "../../../../host/controller/gc/plan-collection.ts";
import { nodeStatus, podStatus } from "../../../../host/controller/gc/read-status.ts";
import { type PodFacts, podFacts } from "../../../../host/ipam/leak.ts";
import { OUT_OF_SERVICE } from "../../../../host/resources/node.ts";
import { decodePod } from "../../../../host/resources/pod.ts";

it.each<[what: string, machine: string | undefined, taints: readonly string[], status: NodeStatus]>([
  ["that is the one", "m1", [], "ready"],
  ["of which the record says nothing", undefined, [], "ready"],
  ["whose name another one has", "m2", [], "absent"],
  ["whose name another one has, which is out of service", "m2", [OUT_OF_SERVICE], "absent"],
  ["that is out of service", "m1", [OUT_OF_SERVICE], "outOfService"],
])("node-lost: the status of a machine %s", (_what, machine, taints, status) => {
  expect(nodeStatus({ machine: "m1", taints, ready: "True" }, machine)).toBe(status);
  expect(nodeStatus({ machine: undefined, taints: [], ready: "True" }, machine)).toBe("ready");
  expect(nodeStatus(undefined, machine)).toBe("absent");
});

const HASH = "0123456789abcdef0123456789abcdef";
const found = (uid: string, phase = "Running"): PodFacts =>
  podFacts(decodePod({ metadata: { namespace: "shop", name: "web", uid }, status: { phase } }, "web"));

it.each<[what: string, podUid: string, found: PodFacts | undefined, node: NodeStatus, status: PodStatus]>([
  ["that is there", "u1", found("u1"), "absent", "alive"],
  ["that has ended", "u1", found("u1", "Succeeded"), "ready", "finished"],
  ["whose name another one has", "u1", found("u2"), "ready", "replaced"],
  ["that is gone", "u1", undefined, "ready", "absent"],
  ["that is static, on a node that is there", HASH, undefined, "notReady", "unknown"],
  ["that is static, on a node that is gone", HASH, undefined, "absent", "absent"],
  ["that is static, on a node out of service", HASH, undefined, "outOfService", "absent"],
])("static-pods: the status of a pod %s", (_what, podUid, pod, node, status) => {
  const holder = { namespace: "shop", pod: "web", podUid, ifName: "eth0", node: "n1" };
  expect(podStatus(holder, pod, node)).toBe(status);
});
