import { expect, it } from "vitest";
import {
  type AnnouncedNic,
  decidePod,
  MAX_PREFETCHED_NICS,
  ownerOfPod,
  planGroups,
} from "../../../host/ipam/plan-prefetch.ts";
import { decodePod, type Pod } from "../../../host/resources/pod.ts";

const HASH = "0123456789abcdef0123456789abcdef";

interface Parts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

function podOf({ metadata = {}, spec = {}, status = { phase: "Pending" } }: Parts = {}): Pod {
  const named = { namespace: "shop", name: "web-0", uid: "uid-1", ...metadata };
  return decodePod(
    { apiVersion: "v1", kind: "Pod", metadata: named, spec: { nodeName: "n1", ...spec }, status },
    "pod",
  );
}

const MIRROR = { "kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH };

const OF_NO_FILE = { "kubernetes.io/config.mirror": "x" };
const OF_ANOTHER = { "kubernetes.io/config.hash": "uid-2", "kubernetes.io/config.mirror": "uid-2" };
const ready = (status: string) => ({ type: "PodReadyToStartContainers", status });

it.each<[what: string, parts: Parts, decision: string]>([
  ["bound a moment ago", {}, "expected"],
  ["without a status", { status: {} }, "expected"],
  ["whose sandbox failed", { status: { phase: "Pending", conditions: [ready("False")] } }, "expected"],
  ["a static pod's mirror", { metadata: { annotations: MIRROR } }, "left: it is a mirror pod"],
  ["a mirror of no file", { metadata: { annotations: OF_NO_FILE } }, "left: it is a mirror pod"],
  ["of the node's network", { spec: { hostNetwork: true } }, "left: it uses the network of the node"],
  ["of another node", { spec: { nodeName: "n2" } }, "left: it is not bound to this node"],
  ["of no node", { spec: { nodeName: undefined } }, "left: it is not bound to this node"],
  ["without a UID", { metadata: { uid: undefined } }, "left: it has no UID"],
  ["that runs", { status: { phase: "Running" } }, "left: it runs"],
  ["cut off from its node", { status: { phase: "Unknown" } }, "left: it runs"],
  ["that has addresses", { status: { phase: "Pending", podIPs: [{ ip: "10.6.0.9" }] } }, "left: it has a sandbox"],
  ["whose sandbox is ready", { status: { phase: "Pending", conditions: [ready("True")] } }, "left: it has a sandbox"],
  ["being deleted", { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } }, "over: it is being deleted"],
  ["that succeeded", { status: { phase: "Succeeded" } }, "over: it is finished"],
  ["that was evicted", { status: { phase: "Failed", reason: "Evicted" } }, "over: it is finished"],
])("prefetch: a pod is prefetched when it has no sandbox yet and will get one one %s", (_, parts, wanted) => {
  const decision = decidePod(podOf(parts), "n1");
  expect(decision.kind === "expected" ? decision.kind : `${decision.kind}: ${decision.reason}`).toBe(wanted);
});

it.each([
  ["a pod", {}, "uid-1"],
  ["a mirror pod", { annotations: MIRROR }, HASH],
  ["a pod that was copied from a mirror pod", { annotations: { "kubernetes.io/config.hash": HASH } }, "uid-1"],
  ["a mirror pod of another file", { annotations: { ...MIRROR, "kubernetes.io/config.mirror": "other" } }, "uid-1"],
  ["a pod that says it is another one", { annotations: { "kubernetes.io/config.hash": "uid-2" } }, "uid-1"],
  ["a pod that says it is the mirror of another one", { annotations: OF_ANOTHER }, "uid-1"],
  ["a manifest", { uid: undefined }, undefined],
])(
  "static-pods: a static pod's addresses are kept under its configuration hash the owner of %s",
  (_, metadata, owner) => expect(ownerOfPod(podOf({ metadata }))).toBe(owner),
);

/** `eth0` is Berth's, `eth0-` another plugin's, `eth0?` asks for addresses. */
function nicOf(text: string): AnnouncedNic {
  const ipamConf = text.endsWith("-") ? undefined : ({ type: "berth" } as const);
  return { ifName: text.replace(/[-?]$/, ""), network: "lab", ipamConf, isAsking: text.endsWith("?") };
}

const together = { "ipam.vendor.io/ippools": "[]" };

it.each<[nics: string, annotations: Record<string, string>, groups: string]>([
  ["eth0", {}, "eth0"],
  ["eth0-", {}, ""],
  ["", {}, ""],
  ["eth0 net1", {}, "eth0 | net1"],
  ["eth0- net1", {}, "net1"],
  ["eth0 net1 net2", together, "eth0 net1 net2"],
  ["eth0- net1 net2", together, "net1 net2"],
  ["eth0- net1-", together, ""],
  ["eth0 net1", { "ipam.vendor.io/subnets": "[]" }, "eth0 net1"],
  ["eth0 net1", { "ipam.vendor.io/ippool": "{}" }, "eth0 | net1"],
  ["eth0? net1", {}, "net1"],
  ["eth0 net1?", together, "eth0"],
])("prefetch: only NICs whose configuration names ipam.type berth %s with %o", (nics, annotations, wanted) => {
  const announced = nics.split(" ").filter(Boolean).map(nicOf);
  const groups = planGroups(podOf({ metadata: { annotations } }), announced);
  const names = groups.map((group) => group.map(({ ifName }) => ifName).join(" "));
  expect(names).toEqual(wanted === "" ? [] : wanted.split(" | "));
});

it("a pod that announces more NICs than any has gets nothing ahead: its list of networks could empty a pool", () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => nicOf(`net${index}`));
  expect(planGroups(podOf({}), many(MAX_PREFETCHED_NICS))).toHaveLength(MAX_PREFETCHED_NICS);
  expect(planGroups(podOf({}), many(MAX_PREFETCHED_NICS + 1))).toEqual([]);
});
