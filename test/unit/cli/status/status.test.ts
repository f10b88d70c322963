import { expect, it } from "vitest";
import { describeStatus } from "../../../../host/cli/status/describe-status.ts";
import { poolsWorstFirst, readStatus, type StatusRecord } from "../../../../host/cli/status/read-status.ts";
import { ApiError, type KubeApi, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";

const NOW = new Date("2026-11-26T12:00:00Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString();

const berthPod = (component: string, name: string, isReady: boolean) => ({
  metadata: { namespace: "berth", name, labels: { "app.kubernetes.io/component": component } },
  spec: { nodeName: "n1", containers: [{ image: "berth:1" }] },
  status: { phase: "Running", conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
});
const SET = { observedGeneration: 2, desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 2 };
const lease = (holder: string, renewedAgo: number, annotations: object = { "ipam.vendor.io/notifier": holder }) => ({
  metadata: { name: "x", annotations },
  spec: { holderIdentity: holder, leaseDurationSeconds: 30, renewTime: ago(renewedAgo) },
});
const event = (kind: string, name: string, more: object = {}) => ({
  ...{ involvedObject: { kind, name, namespace: kind === "Pod" ? "shop" : "" }, reason: "PoolExhausted" },
  ...{ message: "No address is free", type: "Warning", action: "Allocate", eventTime: ago(60) },
  ...more,
});

/** A server with these collections; one without objects is forbidden. */
interface Server {
  readonly [path: string]: readonly object[] | undefined;
}

const WELL: Server = {
  "/api/v1/pods": [berthPod("agent", "a1", true), berthPod("agent", "a2", true), berthPod("controller", "c-1", true)],
  "/apis/apps/v1/daemonsets": [{ metadata: { generation: 2 }, status: SET }],
  "/apis/coordination.k8s.io/v1/namespaces/berth/leases": [lease("other", 1, {}), lease("c-1_0a1b", 5)],
  "/api/v1/events": [],
};

function read(changes: Server = {}, waiting: readonly string[] = []): Promise<StatusRecord> {
  const objects: Server = { ...WELL, ...changes };
  const call = async ({ path }: { path: string }): Promise<KubeObject> => {
    const found = objects[path];
    if (found === undefined) throw new ApiError({ status: 403, reason: "", operation: path, message: "no" });
    return { metadata: { resourceVersion: "1" }, items: found };
  };
  const api: KubeApi = { call, watch: async () => {} };
  const pools = async () => [
    { name: "blue", total: "10", used: "9", states: { Quarantined: 1 } },
    { name: "full", total: "4", used: "4", states: {} },
    { name: "odd", refused: "is invalid: no", states: { Quarantined: 2 } },
  ];
  const versions = async () => [{ component: "agent", version: "1", count: 2 }];
  const waitingPods = async () => waiting.map((name) => ({ namespace: "shop", name }));
  return readStatus({ api, source: { pools, versions, waitingPods }, now: NOW });
}

it("is ready when all agents are, of one revision, and a ready controller leads", async () => {
  expect(await read()).toMatchObject({
    isReady: true,
    agents: { wanted: 2, ready: 2, updated: 2, notReady: [] },
    controllers: { wanted: 1, ready: 1, leader: "c-1" },
    quarantined: 3,
    problems: [],
  });
});

const set = (changes: object, generation = 2) => ({
  "/apis/apps/v1/daemonsets": [{ metadata: { generation }, status: { ...SET, ...changes } }],
});
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/berth/leases";
it.each<[string, Server, boolean]>([
  ["an agent is not", set({ numberReady: 1 }), false],
  ["an agent is of an older revision", set({ updatedNumberScheduled: 1 }), false],
  ["the DaemonSet's change has not been seen", set({}, 3), false],
  ["there is no agent", set({ desiredNumberScheduled: 0, numberReady: 0 }), false],
  ["none leads", { [LEASES]: [] }, false],
  ["the leader is silent", { [LEASES]: [lease("c-1_0a1b", 121)] }, false],
  ["the leader's clock was years ahead once", { [LEASES]: [lease("c-1_0a1b", -99_999_999)] }, false],
  ["the Lease may not be read", { [LEASES]: undefined }, true],
  ["the DaemonSet may not be read", { "/apis/apps/v1/daemonsets": undefined }, true],
  ["no controller is", { "/api/v1/pods": [berthPod("controller", "c-1", false)] }, false],
])("when %s: %s", async (_, changes, isReady) => expect((await read(changes)).isReady).toBe(isReady));

it("waiting are pods that have not started and were refused; each once, by its newest event", async () => {
  const events = [
    event("Pod", "waits", { eventTime: ago(90), message: "older" }),
    event("Pod", "waits", { series: { lastObservedTime: ago(10) }, message: "newest" }),
    event("Pod", "runs"),
    event("Pod", "normal", { type: "Normal" }),
    event("Node", "n0", { action: "Restore", eventTime: ago(3_601) }),
    event("Node", "n0", { action: "Restore", eventTime: ago(3_599) }),
    event("Node", "n1", { reason: "NodeNetworkRestored", action: "Restore", message: "rule 900" }),
  ];
  const found = await read({ "/api/v1/events": events }, ["waits", "normal", "new"]);
  const pod = { time: ago(10), reason: "PoolExhausted", text: "newest", kind: "Pod", namespace: "shop", name: "waits" };
  const node = { time: ago(60), reason: "NodeNetworkRestored", text: "rule 900", namespace: "", name: "n1" };
  expect([found.waiting, found.repairs]).toMatchObject([[pod], [node, { time: ago(3_599) }]]);
});

it("refused pools come first, then the fullest", async () => {
  const pools = [
    { name: "b", total: "10", used: "5", states: {} },
    { name: "a", total: "10", used: "5", states: {} },
    { name: "empty", total: "0", used: "0", states: {} },
    { name: "bad", refused: "is invalid", states: {} },
    { name: "huge", total: String(2n ** 64n), used: String(2n ** 64n - 2n), states: {} },
  ];
  expect(poolsWorstFirst(pools).map(({ name }) => name)).toEqual(["bad", "huge", "a", "b", "empty"]);
});

it("the screen has for everything the command that shows more", async () => {
  const events = [event("Pod", "web-0"), event("Node", "n1", { action: "Restore", message: "rule 900" })];
  const pods = [berthPod("agent", "a1", false), berthPod("controller", "c-1", true)];
  const status = await read({ ...set({ numberReady: 1 }), "/api/v1/pods": pods, "/api/v1/events": events }, ["web-0"]);
  const lines = describeStatus(status, "kubectl berth");
  expect(lines.map((line) => (typeof line === "string" ? line : `${line.style}: ${line.text}`))).toEqual([
    "red: agents       1 of 2 ready",
    "  a1: Running, not ready, 0 restarts, node n1  → kubectl describe pod -n berth a1",
    "green: controllers  1 of 1 ready, c-1 leads",
    "versions     agent 1 (2)  → kubectl berth version",
    "pools        3, the fullest first  → kubectl berth pools -o wide",
    "red:   odd is invalid: no",
    "red:   full: 4 of 4 used, 100%",
    "  blue: 9 of 10 used, 90%",
    "yellow: conflicts    3 addresses in quarantine  → kubectl berth allocations --state quarantined",
    "yellow: repairs      1 in the last hour  → kubectl berth check",
    `  node n1, ${ago(60)}: rule 900`,
    "yellow: waiting      1 pod has no address  → kubectl berth allocations",
    "  shop/web-0: PoolExhausted: No address is free  → kubectl berth explain web-0 -n shop",
    "What is wrong, and what to do about it  → kubectl berth check",
  ]);
});
