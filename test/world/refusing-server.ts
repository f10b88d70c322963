/**
 * A controller on an API server that refuses some of its writes, however long: no object is written more than ten
 * times in the first minute, or more than once in each later one, and no more than ten writes are refused in a second.
 * When the server accepts them, they are made within the longest pause.
 */
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, vi } from "vitest";
import { openCaches } from "../../host/controller/caches.ts";
import { startLeadership } from "../../host/controller/leadership.ts";
import { PoolWrites } from "../../host/controller/pool-writes.ts";
import type { StartController } from "../../host/controller/types.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import { ApiError, type KubeApi, type KubeCall } from "../../host/kubernetes/kube-api.ts";
import { REFUSALS_PER_SECOND, REST_MAX_MS } from "../../host/kubernetes/refused-writes.ts";
import { openLog } from "../../host/lib/log.ts";
import { ADDRESS_GATE } from "../../host/resources/pod.ts";
import { ADMITS_ALL } from "../fakes/admission/admission.ts";
import { MemoryApiServer } from "../fakes/memory-api-server.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";
import { UNKNOWN_OWNERS } from "../lab/cluster/controller.ts";
import { allocationObject, allocationSpec } from "../lab/cluster/objects.ts";

export const BERTH = "/apis/ipam.vendor.io/v1";
const CLAIMS = "/apis/k8s.cni.cncf.io/v1alpha1/namespaces/shop/ipamclaims";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
const PODS = "/api/v1/namespaces/shop/pods";
const SERVICES = "/api/v1/namespaces/shop/services";
const DISCOVERY = "/apis/discovery.k8s.io/v1";
const SLICES = `${DISCOVERY}/namespaces/shop/endpointslices`;
const NODES = "/api/v1/nodes";
export const MINUTE_MS = 60_000;
export const VERBS = ["POST", "PUT", "PATCH", "DELETE"] as const;
const REFUSALS = [400, 401, 403, 409, 413, 422, 500] as const;

const own = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });
export const SERVES = {
  [`${BERTH}/ippools`]: own("IPPool"),
  [`${BERTH}/subnets`]: own("Subnet"),
  [`${BERTH}/reservedips`]: own("ReservedIP"),
  [`${BERTH}/ipallocations`]: own("IPAllocation"),
  [`${BERTH}/ippoolusages`]: own("IPPoolUsage"),
  [`${BERTH}/coordinators`]: own("Coordinator"),
  [NODES]: { apiVersion: "v1", kind: "Node" },
  [PODS]: { apiVersion: "v1", kind: "Pod", everywhere: "/api/v1/pods" },
  [SERVICES]: { apiVersion: "v1", kind: "Service", everywhere: "/api/v1/services" },
  [SLICES]: { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", everywhere: `${DISCOVERY}/endpointslices` },
  [MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
  [`${BERTH}/addressranges`]: own("AddressRange"),
  [`${BERTH}/rangemembers`]: own("RangeMember"),
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
  [CLAIMS]: { apiVersion: "k8s.cni.cncf.io/v1alpha1", kind: "IPAMClaim" },
};

/** Time goes by itself only for promises. */
export function fakeTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
}

/** Everything that waits for promises has run. */
async function flush(): Promise<void> {
  for (let round = 0; round < 2; round++) await turn();
}

/** Something for each controller to write. */
function fill(server: MemoryApiServer, hasCoordinator: boolean): void {
  const berth = (plural: string, name: string, object: object) => server.put(`${BERTH}/${plural}`, name, object);
  for (const [name, subnet] of Object.entries({ plain: "10.1.0.0/24", other: "10.2.0.0/24" }))
    berth("ippools", name, { spec: { subnet } });
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const finalizers = ["ipam.vendor.io/in-use"];
  berth("ippools", "leaving", { metadata: { deletionTimestamp, finalizers }, spec: { subnet: "10.3.0.0/24" } });
  berth("ippools", "shared", { spec: { subnet: "10.9.0.0/24", source: { range: "lan" } } });
  server.put(MAPS, "berth-address-ranges", { metadata: { namespace: "kube-system" } });
  server.put("/api/v1/namespaces", "kube-system", {});
  berth("subnets", "blue", { spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.99"] } });
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "old", uid: "gone" };
  const generated = { subnet: "blue", application, interface: "eth0", wanted: 1, reason: "1 replica", reclaim: true };
  berth("ippools", "unused", { metadata: { finalizers }, spec: { subnet: "10.6.0.0/24", ips: [], generated } });
  berth("ippoolusages", "gone", { status: {} });
  berth("ippoolusages", "plain", { status: {} });
  if (hasCoordinator) berth("coordinators", "default", { spec: {} });
  berth("coordinators", "ignored", { spec: {} });
  server.put(NODES, "n1", { status: { addresses: [{ address: "10.1.0.7" }], conditions: [READY] } });
  const epoch = { epoch: "e1", settled: "", cause: "first", definition: "d", waitsFor: "" };
  server.put(MAPS, "berth-registry", { data: epoch });
  server.put(MAPS, "vendor-conf", { data: { "conf.yml": "maxAddressesPerNamespace: 1\n" } });
  server.put(CLAIMS, "nic", { metadata: { namespace: "shop" }, spec: { network: "lan", interface: "net1" } });
  const annotations = { "k8s.v1.cni.cncf.io/networks": "lan" };
  const metadata = { namespace: "shop", uid: "u1", labels: { app: "web" }, annotations };
  server.put(PODS, "web-0", { metadata, spec: { nodeName: "n1" }, status: { conditions: [READY] } });
  const gated = { nodeName: "", schedulingGates: [{ name: ADDRESS_GATE }] };
  server.put(PODS, "gated", { metadata: { namespace: "shop", uid: "u2" }, spec: gated, status: { phase: "Pending" } });
  const target = { "ipam.vendor.io/service-network": "shop/lan", "ipam.vendor.io/service-selector": "app=web" };
  const service = { namespace: "shop", uid: "u3", annotations: target };
  server.put(SERVICES, "lan", { metadata: service, spec: { ipFamilies: ["IPv4"], ports: [{ port: 80 }] } });
  const workload = { kind: "IPAMClaim", namespace: "shop", name: "nic", uid: "uid-nic", member: "nic" } as const;
  allocate(server, "10.1.0.1", { workload });
  const set = { kind: "StatefulSet", namespace: "shop", name: "gone", uid: "s0", member: "gone-0" } as const;
  allocate(server, "10.1.0.2", { state: "Kept", holders: [], workload: set });
  allocate(server, "10.1.0.3", { node: "lost", holders: [{ ...HOLDER, node: "lost" }] });
  allocate(server, "10.2.0.1", { node: "lost", holders: [{ ...HOLDER, node: "lost" }] });
}

const NAMING = {
  ...{ kind: "IPAMClaim", apiVersion: "k8s.cni.cncf.io/v1alpha1", namespace: "bank", name: "vm", uid: "vm" },
  ...{ labels: {}, annotations: {}, requested: ["10.2.0.50"] },
};
const READY = { type: "Ready", status: "True" };
const HOLDER = { node: "n1", namespace: "shop", pod: "web-0", podUid: "u1", containerId: "c1", ifName: "net1" };

function allocate(server: MemoryApiServer, address: string, changes: object): void {
  const spec = allocationSpec(address, { pool: "plain", node: "n1", holders: [HOLDER], ...changes } as object);
  const { metadata, ...object } = allocationObject(spec) as { metadata: { name: string } };
  server.put(`${BERTH}/ipallocations`, metadata.name, { ...object, metadata });
}

interface Sent {
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly isRefused: boolean;
}

interface Refusing {
  readonly verbs: readonly KubeCall["method"][];
  readonly status: number;
  readonly forMs: number;
  readonly hasCoordinator: boolean;
  /** The paths that it refuses to write. Default: all. */
  readonly only?: RegExp;
  /** Time by which watches are late. Default: 0. */
  readonly lateMs?: number;
}

/** The calls of one controller while the server refuses the verbs, and for two minutes more. `more`: of the world. */
export async function play(
  start: StartController,
  { verbs, status, forMs, hasCoordinator, only = /./, lateMs = 0 }: Refusing,
  more?: (server: MemoryApiServer, owners: ScriptedPoolOwners) => void,
) {
  const admission = { ...ADMITS_ALL, hasStatus: () => true };
  const server = new MemoryApiServer({ serves: SERVES, isOpen: true, nowMs: () => Date.now(), admission });
  fill(server, hasCoordinator);
  const owners = new ScriptedPoolOwners();
  owners.want("web", "w1", {});
  owners.end("gone");
  more?.(server, owners);
  const begunMs = performance.now();
  const sent: Sent[] = [];
  const client = server.client(async (call, commit) => {
    if (call.method === "GET") return commit();
    const atMs = performance.now() - begunMs;
    // A name that is taken is no refusal.
    const isMeant = verbs.includes(call.method) && only.test(call.path) && atMs < forMs;
    const isRefused = isMeant && (call.method !== "POST" || status !== 409);
    const { metadata } = (call.body ?? {}) as { metadata?: { name?: string } };
    const path = call.method === "POST" ? `${call.path}/${metadata?.name}` : call.path.replace(/\/status$/, "");
    sent.push({ atMs, method: call.method, path, isRefused });
    if (isRefused) {
      const [operation, reason] = [`${call.method} ${call.path}`, status === 500 ? "InternalError" : ""];
      throw new ApiError({ status, reason, operation, message: "every object needs the label team" });
    }
    return commit();
  });
  const late: KubeApi["watch"] = (watch) =>
    client.watch({ ...watch, onEvent: (event) => void setTimeout(() => watch.onEvent(event), lateMs) });
  const api: KubeApi = { call: (call) => client.call(call), watch: late };
  const log = openLog("test", "silent");
  const random = () => 0.5;
  const caches = openCaches({ api, configNamespace: "kube-system", log, random });
  const synced = caches.synced();
  for (let left = 50; left > 0 && caches.unread.length > 0; left--) await flush();
  await synced;
  const asked = vi.spyOn(owners, "demands");
  const events: KubeEvent[] = [];
  const leading = new AbortController();
  const nowMs = () => performance.now();
  const leadership = startLeadership(
    { part: start },
    {
      ...{ api, caches, log, random, leading: leading.signal },
      owners: {
        addresses: { ...UNKNOWN_OWNERS, readLiveness: async () => "gone", findNaming: () => [NAMING] },
        pools: owners,
        pods: { period: undefined, wasSeen: () => false, hasReached: () => false },
      },
      events: { emit: (event) => void events.push(event), close: async () => {} },
      clock: { nowMs, now: () => new Date() },
      poolWrites: new PoolWrites({ nodes: () => 1, nowMs }),
    },
  );
  // Of this the notices tell.
  server.remove("10.2.0.1");
  allocate(server, "10.2.0.9", {
    workload: { kind: "StatefulSet", namespace: "shop", name: "db", uid: "s", member: "db-0" },
  });
  await vi.advanceTimersByTimeAsync(forMs + 2 * MINUTE_MS);
  leading.abort(new Error("The test ends"));
  await leadership.close();
  await caches.close();
  return { sent, events, passes: asked.mock.calls.length };
}

export function check(sent: readonly Sent[], { forMs, status }: Refusing): void {
  // Conflicts do not count.
  const refused = sent.filter(({ isRefused }) => isRefused && status !== 409);
  for (const { atMs } of refused) {
    const within = refused.filter((each) => each.atMs >= atMs && each.atMs < atMs + 1_000);
    expect(within.length).toBeLessThanOrEqual(REFUSALS_PER_SECOND);
  }
  for (const [path, all] of Map.groupBy(sent, (each) => each.path)) {
    const own = all.filter(({ isRefused }) => isRefused);
    const [first] = own;
    if (first === undefined) continue;
    const upTo = (fromMs: number) => own.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + MINUTE_MS).length;
    expect([path, upTo(first.atMs)], "in the first minute").toSatisfy(([, count]) => count <= 10);
    for (let fromMs = first.atMs + MINUTE_MS; fromMs < forMs; fromMs += MINUTE_MS)
      expect([path, upTo(fromMs)], "later").toSatisfy(([, count]) => count <= 1);
    // After a conflict the watch is to tell of a change, which may be long.
    if (status === 409) continue;
    const isMade = all.some(({ atMs, isRefused }) => !isRefused && atMs >= forMs && atMs < forMs + 1.2 * REST_MAX_MS);
    expect([path, isMade], "when it is accepted").toEqual([path, true]);
  }
}

/** Returns the verbs and kinds that are refused at first; expects that each refusal rests. */
export async function refusedKinds(start: StartController): Promise<string> {
  const run = async (each: Refusing): Promise<readonly Sent[]> => {
    const { sent } = await play(start, each);
    check(sent, each);
    return sent;
  };
  const refused = await run({ verbs: VERBS, status: 403, forMs: 20 * MINUTE_MS, hasCoordinator: true });
  await run({ verbs: VERBS, status: 409, forMs: 5 * MINUTE_MS, hasCoordinator: false });
  const refusing = fc.record({
    verbs: fc.subarray([...VERBS], { minLength: 1 }),
    status: fc.constantFrom(...REFUSALS),
    forMs: fc.integer({ min: 1_000, max: 12 * MINUTE_MS }),
    hasCoordinator: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(refusing, (each) => run(each).then(() => {})),
    { numRuns: 8 },
  );
  const kinds = refused.map(({ method, path }) => `${method} ${path.split("/").at(-2)}`);
  return [...new Set(kinds)].sort().join(", ");
}
