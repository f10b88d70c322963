import { expect, test } from "vitest";
import { readSuccession } from "../../../../host/controller/owners/read-succession.ts";
import type { Liveness } from "../../../../host/controller/types.ts";
import { ALLOCATIONS, MemoryApiServer, unreachable } from "../../../fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../../lab/cluster/objects.ts";

const APPS = { apiVersion: "apps/v1" };
const former = { ...APPS, kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };

const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "u1", member: "a" };

interface Case {
  /** The pods that have an address each. `of`: their controllers, `kind/name/uid`; `more`: over the rest of a pod. */
  readonly pods: Readonly<Record<string, { readonly of?: string; readonly uid?: string; readonly more?: object }>>;
  /** By name and UID of ReplicaSets: their controllers. */
  readonly sets?: Readonly<Record<string, string>>;
  readonly state?: "Bound" | "Kept";
  readonly namespace?: string;
  readonly liveness?: Liveness;
}

function references(of = "") {
  const [kind, name, uid] = of.split("/");
  return of === "" ? [] : [{ ...APPS, kind, name, uid, controller: true }];
}

async function check({ pods, sets = {}, state = "Bound", namespace = "shop", liveness = "alive" }: Case) {
  const cluster = new MemoryApiServer({ isOpen: true });
  const allocations = Object.entries(pods).map(([name, { of, uid = `uid-${name}`, more = {} }], at) => {
    const address = `10.6.0.${at + 1}`;
    const holder = { namespace, pod: name, podUid: `uid-${name}`, ifName: "eth0", node: "n1" };
    const spec = allocationSpec(address, { state, ...(state === "Bound" ? { holders: [holder] } : { workload }) });
    cluster.put(ALLOCATIONS, address, allocationObject(spec));
    const metadata = { namespace: "shop", name, uid, ownerReferences: references(of) };
    const pod = { apiVersion: "v1", kind: "Pod", spec: {}, ...more };
    const { metadata: extra = {} } = more as { metadata?: object };
    cluster.put(`/api/v1/namespaces/${namespace}/pods`, name, { ...pod, metadata: { ...metadata, ...extra } });
    return address;
  });
  for (const [set, of] of Object.entries({ "other/r0": "", ...sets })) {
    const [name = "", uid] = set.split("/");
    const metadata = { namespace: "shop", name, uid, ownerReferences: references(of) };
    cluster.put("/apis/apps/v1/namespaces/shop/replicasets", name, { ...APPS, kind: "ReplicaSet", metadata });
  }
  const found = await readSuccession({
    ...{ api: cluster.client(), application: former, allocations },
    readLiveness: async () => liveness,
    signal: new AbortController().signal,
  });
  return typeof found === "object" ? found.uid : found;
}

const adopted = { "web-5d/r1": "Deployment/web/u2" };
const ofSet = { of: "ReplicaSet/web-5d/r1" };

test.each<readonly [string, string, Case]>([
  ["the workload that has the pods by a ReplicaSet", "u2", { pods: { a: ofSet }, sets: adopted }],
  ["the one that has them itself", "u2", { pods: { a: { of: "Deployment/web/u2" } } }],
  ["the one that has some of them", "u2", { pods: { a: {}, b: { of: "Deployment/web/u2" } } }],
  ["none yet, while pods live without a controller", "orphaned", { pods: { a: {} } }],
  ["none yet, while a ReplicaSet has none", "orphaned", { pods: { a: ofSet }, sets: { "web-5d/r1": "" } }],
  ["none for another kind", "orphaned", { pods: { a: { of: "StatefulSet/web/u2" } } }],
  ["none for another name", "orphaned", { pods: { a: { of: "Deployment/db/u2" } } }],
  [
    "none for one that does not exist in the namespace",
    "orphaned",
    { pods: { a: { of: "Deployment/web/u2" } }, liveness: "gone" },
  ],
  ["none for pods of another namespace", "ended", { pods: { a: { of: "Deployment/web/u2" } }, namespace: "evil" }],
  [
    "none when the pods still name the former one: they end with it",
    "ended",
    { pods: { a: { of: "Deployment/web/u1" } } },
  ],
  ["none when their ReplicaSet is gone", "ended", { pods: { a: ofSet, b: {} } }],
  ["none when another ReplicaSet has its name", "ended", { pods: { a: ofSet }, sets: { "web-5d/r2": "" } }],
  ["none without a pod", "ended", { pods: {} }],
  ["none for another pod of the name", "ended", { pods: { a: { of: "Deployment/web/u2", uid: "later" } } }],
  ["none for a pod that has finished", "ended", { pods: { a: { more: { status: { phase: "Failed" } } } } }],
  [
    "none for a pod that is being deleted",
    "ended",
    { pods: { a: { more: { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } } } } },
  ],
  ["none for an address that is only kept", "ended", { pods: { a: { of: "Deployment/web/u2" } }, state: "Kept" }],
  [
    "none yet after four pods in vain",
    "orphaned",
    { pods: { a: {}, b: {}, c: {}, d: {}, e: { of: "Deployment/web/u2" } } },
  ],
])("the pods of a workload that is gone show %s", async (_, wanted, given) => {
  expect(await check(given)).toBe(wanted);
});

test("nothing is known while the API server does not answer", async () => {
  const api = new MemoryApiServer({ isOpen: true }).client(unreachable);
  const query = { api, application: former, allocations: ["10.6.0.1"], readLiveness: async () => "alive" as const };
  expect(await readSuccession({ ...query, signal: new AbortController().signal })).toBe("unknown");
});
