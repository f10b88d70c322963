/**
 * The collection's sweeps and checks on an API server in memory: its second reads before writes, and events in between.
 * The actions for states are in plan-collection.test.ts.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type OpenCaches, openCaches } from "../../../../host/controller/caches.ts";
import { COLLECTION_PAGE, GarbageCollector } from "../../../../host/controller/gc/garbage-collector.ts";
import type { ControllerDeps, Liveness } from "../../../../host/controller/types.ts";
import type { KubeEvent } from "../../../../host/kubernetes/events.ts";
import { ApiError, ApiUnavailable, type KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { NOTICE_ANNOTATION } from "../../../../host/resources/allocation-notice.ts";
import { API_VERSION } from "../../../../host/resources/fields/metadata.ts";
import { machineOf } from "../../../../host/resources/machine.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { NODES, PODS, POOLS, SERVES } from "../../../simulation/collections.ts";
import { recordLog } from "../../../world/recorded-log.ts";

/** As without a ConfigMap. */
const [GRACE_MS, COOLDOWN_MS, INTERVAL_MS, NODE_LOST_MS] = [60_000, 30_000, 300_000, 600_000];
const SILENCE_MS = 2 * INTERVAL_MS + NODE_LOST_MS;
const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "web", member: "web-0", interface: "eth0" };
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
/** So many that no sweep of a test compares the last one. */
const CROWD = [...Array.from({ length: 500 }, (_, index) => `a${index}`), "n1"];
const NODE_INFO = { machineID: "m", systemUUID: "u" };

let server: MemoryApiServer;
let caches: OpenCaches;
let gc: GarbageCollector;
let nowMs = 0;
let before: (call: KubeCall) => void = () => {};
let ownerGone: (uid: string) => void = () => {};
const liveness = new Map<string, Liveness>();
const events: KubeEvent[] = [];
const { log, lines } = recordLog();

beforeEach(async () => {
  before = () => {};
  liveness.clear();
  events.splice(0);
  server = new MemoryApiServer({ serves: SERVES, isOpen: true });
  const gate = async (call: KubeCall, commit: () => Record<string, unknown>) => {
    before(call);
    return commit();
  };
  const api = server.client(gate, (_path, deliver) => deliver());
  caches = openCaches({ api, configNamespace: "kube-system", log, random: () => 0.5 });
  await caches.synced();
  server.put(POOLS, "blue", { apiVersion: API_VERSION, kind: "IPPool", spec: { subnet: "10.6.0.0/16" } });
  const addresses = {
    readLiveness: async ({ uid }: { uid: string }) => liveness.get(uid) ?? "unknown",
    findUid: () => undefined,
    subscribe: (listener: (uid: string) => void) => {
      ownerGone = listener;
      return () => {};
    },
  };
  const pods = { period: undefined, wasSeen: () => true, hasReached: () => false };
  gc = new GarbageCollector({
    ...{ api, caches, log, random: () => 0.5, leading: new AbortController().signal },
    clock: { nowMs: () => nowMs, now: () => new Date() },
    events: { emit: (event: KubeEvent) => void events.push(event) },
    owners: { addresses, pods },
    promised: new Set(),
  } as unknown as ControllerDeps);
});
afterEach(async () => {
  await gc.close();
  await caches.close();
});

/** The due checks, a sweep, and the checks due at its end; the same after each of the times. */
async function sweep(...afterMs: readonly number[]): Promise<void> {
  for (const milliseconds of [0, ...afterMs]) {
    nowMs += milliseconds;
    await gc.checkDue();
    await gc.sweep();
    await gc.checkDue();
  }
}

function setNode(name: string, ready: "True" | "Unknown"): void {
  const status = { conditions: [{ type: "Ready", status: ready }] };
  server.put(NODES, name, { ...server.collection(NODES).get(name), status });
}

function putPod(name: string, annotations: object = {}): void {
  server.put(PODS, name, { metadata: { uid: name, namespace: "shop", annotations }, spec: { nodeName: "n1" } });
}

const write = (address: string, spec: object): void =>
  void server.put(ALLOCATIONS, address, {
    ...{ apiVersion: API_VERSION, kind: "IPAllocation" },
    spec: { address, pool: "blue", prefixLength: 16, state: "Cooling", node: "n1", holders: [], ...spec },
  });

/** Of that pod, which may be there or not. */
function bind(address: string, pod: string, spec: Readonly<Record<string, unknown>> = {}): void {
  const holders = [{ namespace: "shop", pod, podUID: pod, interface: "eth0", node: spec.node ?? "n1" }];
  write(address, { state: "Bound", holders, ...spec });
}

const states = (): string[] => [...server.objects].map(([name, { spec }]) => `${name} ${spec.state}`);

async function expectStates(afterMs: number, ...wanted: readonly string[]): Promise<void> {
  await sweep(afterMs);
  expect(states()).toEqual(wanted);
}

it("node-lost: a pod and its node are gone: quarantine after a grace, with its last holder; pool and Node are told", async () => {
  bind("10.6.0.1", "gone", { workload: WEB });
  await expectStates(GRACE_MS - 1, "10.6.0.1 Bound");
  await sweep(1);
  expect(server.objects.get("10.6.0.1")?.spec).toMatchObject({
    ...{ state: "Quarantined", node: "n1", holders: [], workload: WEB },
    quarantine: { reason: "NodeLost", holder: { pod: "gone", interface: "eth0", node: "n1" } },
  });
  const told = events.map(({ regarding, reason }) => `${regarding.kind} ${regarding.name} ${reason}`);
  expect(told.sort()).toEqual(["IPPool blue NodeLost", "Node n1 NodeLost"]);
  await sweep();
  expect(gc.problems.filter((line) => line.startsWith('Node "n1" is lost'))).toHaveLength(1);
});

it("node-lost: two pods have ended, and no node is ready: quarantine, which no taint of the nodes ends", async () => {
  liveness.set("vm", "gone");
  setNode("n2", "Unknown");
  const holders = ["n1", "n2"].map((node) => ({ namespace: "shop", pod: node, podUID: node, interface: "eth0", node }));
  bind("10.6.0.1", "gone", { workload: { ...WEB, kind: "VirtualMachine", uid: "vm" }, holders });
  await expectStates(GRACE_MS, "10.6.0.1 Bound");
  await expectStates(SILENCE_MS - 1, "10.6.0.1 Bound");
  await expectStates(1, "10.6.0.1 Quarantined");
  expect(gc.problems.filter((line) => line.startsWith('Node "n1" is lost'))).toHaveLength(1);
  const taints = [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }];
  for (const name of ["n1", "n2"]) server.put(NODES, name, { spec: { taints }, status: { nodeInfo: NODE_INFO } });
  await expectStates(NODE_LOST_MS, "10.6.0.1 Quarantined");
});

it("node-lost: each address that no node can probe is named, whichever was checked last", async () => {
  const named = () => gc.problems.filter((line) => line.startsWith("No ready node can probe"));
  for (const [last, nextMs] of [[1, 3_000] as const, [2, NODE_LOST_MS - 3_000] as const]) {
    write(`10.6.0.${last}`, { state: "Quarantined", quarantine: { reason: "NodeLost", mac: "", parent: "" } });
    await gc.sweep();
    nowMs += nextMs;
  }
  await gc.checkDue();
  nowMs += 3_000;
  await gc.checkDue();
  expect(named()).toEqual(["No ready node can probe 10.6.0.1, 10.6.0.2 of lost nodes"]);
  server.remove("10.6.0.1");
  nowMs += NODE_LOST_MS;
  await gc.checkDue();
  expect(named()).toEqual(["No ready node can probe 10.6.0.2 of lost nodes"]);
});

it("conflict: another node is asked if the one that was has no link of its own, and has not found it silent", async () => {
  for (const name of ["n1", "n2"]) setNode(name, "True");
  putPod("there");
  bind("10.6.0.9", "there", { node: "n2" });
  const mac = "06:00:00:00:00:01";
  for (const [index, found] of [{ mac }, { mac, parent: "eth0" }, {}].entries())
    write(`10.6.0.${index + 1}`, { state: "Quarantined", quarantine: { reason: "Conflict", ...found } });
  await sweep(3 * NODE_LOST_MS);
  expect([...server.objects.values()].map(({ spec }) => spec.node)).toEqual(["n2", "n2", "n1", "n1"]);
});

it("conflict: a ready node that was asked and finds no silence is no lack of one, though there is no other", async () => {
  setNode("n1", "True");
  write("10.6.0.1", { state: "Quarantined", quarantine: { reason: "Conflict", mac: "06:00:00:00:00:01" } });
  await sweep(3 * NODE_LOST_MS);
  expect(gc.problems).toEqual([]);
});

it("node-lost: a node whose machine has another name now is named with it, at once and in quarantine", async () => {
  server.put(NODES, "new", { status: { conditions: [{ type: "Ready", status: "True" }], nodeInfo: NODE_INFO } });
  const machine = machineOf({ machineId: "m", systemUuid: "u" });
  const holder = { namespace: "shop", pod: "gone", podUID: "gone", interface: "eth0", machine };
  bind("10.6.0.1", "gone", { holders: [{ ...holder, node: "n1" }] });
  bind("10.6.0.2", "gone", { node: "new", holders: [{ ...holder, node: "new" }] });
  const named = 'Node "n1" is gone, and its machine is node "new" now: 1 of its addresses is in use or';
  for (const afterMs of [0, GRACE_MS]) {
    await sweep(afterMs);
    expect(gc.problems.filter((line) => line.startsWith(named))).toHaveLength(1);
  }
  expect(states()[0]).toBe("10.6.0.1 Quarantined");
});

it("node-lost: a ready node's agent is told once, until it has done nothing for long", async () => {
  setNode("n1", "True");
  bind("10.6.0.1", "gone");
  const notice = () => Object(server.collection(NODES).get("n1")?.metadata).annotations?.[NOTICE_ANNOTATION];
  await sweep(GRACE_MS - 1);
  expect(notice()).toBeUndefined();
  await sweep(1);
  const told = notice();
  expect(told).toMatch(/ 10\.6\.0\.1$/);
  await sweep(SILENCE_MS - 1);
  expect([notice(), states()]).toEqual([told, ["10.6.0.1 Bound"]]);
  await expectStates(1, "10.6.0.1 Quarantined");
});

it("node-lost: a node that comes back in between starts over", async () => {
  setNode("n1", "Unknown");
  bind("10.6.0.1", "gone");
  await sweep(GRACE_MS / 2);
  setNode("n1", "True");
  setNode("n1", "Unknown");
  await expectStates(GRACE_MS / 2, "10.6.0.1 Bound");
  await expectStates(GRACE_MS / 2, "10.6.0.1 Quarantined");
});

it("retention: an address kept for an owner that is gone cools at once, and is free when no agent frees it", async () => {
  for (const [index, uid] of ["web", "alive", "unknown"].entries())
    write(`10.6.0.${index + 1}`, { state: "Kept", workload: { ...WEB, uid } });
  liveness.set("alive", "alive").set("web", "gone");
  ownerGone("web");
  await gc.checkDue();
  nowMs += GRACE_MS;
  await gc.checkDue();
  expect(states()).toEqual(["10.6.0.1 Cooling", "10.6.0.2 Kept", "10.6.0.3 Kept"]);
  expect(server.objects.get("10.6.0.1")?.spec.workload).toBeUndefined();
  await expectStates(GRACE_MS, "10.6.0.2 Kept", "10.6.0.3 Kept");
});

it("retention: kinds whose owners cannot be looked up are named, with the number of addresses that they keep", async () => {
  for (const name of CROWD) setNode(name, "True");
  const keep = (at: number, kind: string) =>
    write(`10.6.0.${at}`, { state: "Kept", workload: { ...WEB, kind, uid: `${at}` } });
  for (const at of [1, 3]) keep(at, "VirtualMachine");
  keep(2, "StatefulSet.kruise.io");
  const sentence = (kind: string, count: number): string =>
    `Whether owners of the kind ${kind} still want their retained addresses is unknown: they stay unless they are deleted (${count})`;
  await sweep();
  expect(gc.problems).toEqual([sentence("VirtualMachine", 2), sentence("StatefulSet.kruise.io", 1)]);
  liveness.set("1", "alive").set("2", "gone");
  for (const end of [() => bind("10.6.0.3", "vm"), () => server.remove("10.6.0.3")]) {
    keep(3, "VirtualMachine");
    await sweep();
    expect(gc.problems).toEqual([sentence("VirtualMachine", 1)]);
    end();
    await sweep();
    expect(gc.problems).toEqual([]);
  }
});

it("retention: all addresses are looked through once for owners that are gone at once", async () => {
  const looks = vi.spyOn(caches.allocations.items, "values");
  for (let index = 0; index < 300; index++) ownerGone(`web-${index}`);
  await gc.checkDue();
  await gc.checkDue();
  expect(looks).toHaveBeenCalledTimes(1);
});

it("retention: addresses kept for a NIC that the member's pod does not have cool, and those that it announces stay", async () => {
  setNode("n1", "True");
  liveness.set("web", "alive");
  putPod("web-0", { [NETWORKS]: "lan@net1" });
  bind("10.6.0.1", "web-0", { workload: WEB });
  write("10.6.0.2", { state: "Kept", workload: { ...WEB, interface: "zz9" } });
  write("10.6.0.3", { state: "Kept", workload: { ...WEB, interface: "net1" } });
  write("10.6.0.4", { state: "Kept", workload: { ...WEB, member: "web-1", interface: "zz9" } });
  await sweep(SILENCE_MS - 1);
  expect(states()).toContain("10.6.0.2 Kept");
  await expectStates(1, "10.6.0.1 Bound", "10.6.0.2 Cooling", "10.6.0.3 Kept", "10.6.0.4 Kept");
});

const [IPPOOL, ONLY_SIX] = ["ipam.vendor.io/ippool", '{"ipv6": ["b"]}'];
const BOTH = '{"ipv4": ["a"], "ipv6": ["b"]}';
const SIX = "fd00-0000-0000-0000-0000-0000-0000-0001";

it.each<[title: string, conf: string, annotations: object, isKept: boolean, kept?: string, live?: string]>([
  ["IPv6 only by settings", "enableIPv4: false", { [IPPOOL]: BOTH }, false],
  ["IPv6 only by the pod's annotation", "{}", { [IPPOOL]: ONLY_SIX }, false],
  ["IPv6 only by pools that are no defaults any more", "{}", {}, false],
  ["IPv6 only by an entry of the NIC", "{}", { [`${IPPOOL}s`]: `[${ONLY_SIX}]` }, false],
  ["still both", "{}", { [IPPOOL]: BOTH }, true],
  ["still both by an entry of the NIC", "{}", { [`${IPPOOL}s`]: `[${BOTH}]` }, true],
  ["unreadable", "{}", { [IPPOOL]: "{" }, true],
  ["IPv4 only", "enableIPv6: false", { [IPPOOL]: BOTH }, false, SIX, "10.6.0.1"],
])(
  "retention: the other family of a member's NIC, which now is %s",
  async (_, conf, annotations, isKept, kept = "10.6.0.1", live = SIX) => {
    server.put(MAPS, "vendor-conf", { metadata: { namespace: "kube-system" }, data: { "conf.yml": conf } });
    liveness.set("web", "alive");
    setNode("n1", "True");
    putPod("web-0", annotations);
    const spec = (name: string) => ({ workload: WEB, address: name === SIX ? "fd00::1" : name });
    bind(live, "web-0", spec(live));
    write(kept, { state: "Kept", ...spec(kept) });
    await sweep(SILENCE_MS - 1);
    expect(states()).toContain(`${kept} Kept`);
    await expectStates(1, `${live} Bound`, `${kept} ${isKept ? "Kept" : "Cooling"}`);
  },
);

it("known-stays: what workloads and Nodes have of a pool stays while its specification is invalid", async () => {
  const spec = { subnet: "10.6.0.0/16", ips: ["10.6.0.9-10.6.0.1"] };
  server.put(POOLS, "blue", { apiVersion: API_VERSION, kind: "IPPool", spec });
  liveness.set("web", "gone");
  const node = { kind: "Node", name: "n1", uid: "n1", member: "n1" };
  for (const [address, workload] of Object.entries({ "10.6.0.1": WEB, "10.6.0.2": node }))
    write(address, { state: "Kept", node: "-", workload });
  await expectStates(GRACE_MS, "10.6.0.1 Kept", "10.6.0.2 Kept");
  server.put(POOLS, "blue", { apiVersion: API_VERSION, kind: "IPPool", spec: { ...spec, ips: [] } });
  await expectStates(0, "10.6.0.1 Kept", "10.6.0.2 Kept");
  await expectStates(GRACE_MS, "10.6.0.1 Cooling", "10.6.0.2 Cooling");
});

it("pool-changes: an allocation of a pool that is gone stays, and is reported", async () => {
  setNode("n1", "True");
  putPod("web");
  bind("10.7.0.1", "web", { pool: "old" });
  await expectStates(10 * INTERVAL_MS, "10.7.0.1 Bound");
  expect(gc.problems).toEqual(['There is no IPPool "old", and 1 of its addresses is in use']);
});

it("leak: addresses whose pods may not be read stay, and are counted with the reason until they may", async () => {
  for (const name of CROWD) setNode(name, "True");
  for (const last of [1, 2]) bind(`10.6.0.${last}`, "gone");
  for (const then of ["Unknown", "True"] as const) {
    setNode("n1", "Unknown");
    lines.splice(0);
    for (const status of [403, 401]) {
      const message = `GET ${PODS}/gone was answered with ${status}`;
      before = ({ path }) => {
        if (path.endsWith("/gone")) throw new ApiError({ status, reason: "", operation: "GET", message });
      };
      await expectStates(10 * GRACE_MS, "10.6.0.1 Bound", "10.6.0.2 Bound");
      expect(gc.problems).toEqual([`2 of the addresses cannot be checked or collected now: ${message}`]);
    }
    expect(lines.filter((line) => line.startsWith("warn Collecting an allocation failed"))).toHaveLength(4);
    before = () => {};
    setNode("n1", then);
    await expectStates(0, "10.6.0.1 Bound", "10.6.0.2 Bound");
    expect(gc.problems).toEqual([]);
  }
});

it("leak: an object that is written right before it is collected stays, and its time begins again", async () => {
  bind("10.6.0.1", "gone");
  write("10.6.0.2", {});
  await sweep();
  before = ({ method, path }) => {
    if (method === "PUT" || method === "DELETE")
      server.edit(path.split("/").at(-1) ?? "", (spec) => ({ ...spec, prefixLength: 24 }));
  };
  await sweep(GRACE_MS);
  before = () => {};
  await expectStates(GRACE_MS - 1, "10.6.0.1 Bound", "10.6.0.2 Cooling");
  await expectStates(1, "10.6.0.1 Quarantined");
});

it("leak: a node that comes back right before the write keeps its addresses, whatever the caches say", async () => {
  setNode("n1", "Unknown");
  bind("10.6.0.1", "gone");
  await sweep();
  let isAsked = false;
  before = ({ method, path }) => {
    if (method !== "GET" || path !== `${NODES}/n1`) return;
    isAsked = true;
    setNode("n1", "True");
  };
  await sweep(GRACE_MS);
  expect([isAsked, states()]).toEqual([true, ["10.6.0.1 Bound"]]);
});

it("leak: of more than a page, nothing is half done when the API server goes, and the rest goes later", async () => {
  const count = COLLECTION_PAGE + 20;
  for (let index = 0; index < count; index++) write(`10.6.${index >> 8}.${index & 255}`, {});
  await sweep();
  nowMs += Math.max(GRACE_MS, COOLDOWN_MS);
  let deletions = 0;
  before = ({ method, path }) => {
    if (method === "DELETE" && ++deletions > 40) throw new ApiUnavailable(`DELETE ${path}`, "The API server is away");
  };
  await expect(gc.sweep()).rejects.toThrow("The API server is away");
  expect(server.objects.size).toBe(count - 40);
  before = () => {};
  await gc.sweep();
  expect(server.objects.size).toBe(0);
});
