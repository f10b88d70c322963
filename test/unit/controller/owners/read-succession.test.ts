import { expect, test } from "vitest";
import { readSuccession } from "../../../../host/controller/owners/read-succession.ts";
import type { Liveness } from "../../../../host/controller/types.ts";
import { ALLOCATIONS, MemoryApiServer, unreachable } from "../../../fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../../lab/cluster/objects.ts";
import { cases } from "../../../world/rows.ts";

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

const of = (of: string, more: object = {}) => ({ pods: { a: { of } }, ...more });
const more = (more: object) => ({ pods: { a: { more } } });
const NEXT = "Deployment/web/u2";

test.each(cases<Case>`
  the workload that has the pods by a ReplicaSet ${{ pods: { a: ofSet }, sets: adopted }} => u2
  the one that has some of them ${{ pods: { a: {}, b: { of: NEXT } } }} => u2
  none yet, while pods live without a controller ${{ pods: { a: {} } }} => orphaned
  none yet, while a ReplicaSet has none ${{ pods: { a: ofSet }, sets: { "web-5d/r1": "" } }} => orphaned
  none for another kind ${of("StatefulSet/web/u2")} => orphaned
  none for another name ${of("Deployment/db/u2")} => orphaned
  none for one that does not exist in the namespace ${of(NEXT, { liveness: "gone" })} => orphaned
  none for pods of another namespace ${of(NEXT, { namespace: "evil" })} => ended
  none when the pods still name the former one: they end with it ${of("Deployment/web/u1")} => ended
  none when their ReplicaSet is gone ${{ pods: { a: ofSet, b: {} } }} => ended
  none when another ReplicaSet has its name ${{ pods: { a: ofSet }, sets: { "web-5d/r2": "" } }} => ended
  none for another pod of the name ${{ pods: { a: { of: NEXT, uid: "later" } } }} => ended
  none for a pod that has finished ${more({ status: { phase: "Failed" } })} => ended
  none for a pod that is being deleted ${more({ metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } })} => ended
  none for an address that is only kept ${of(NEXT, { state: "Kept" })} => ended
  none yet after four pods in vain ${{ pods: { a: {}, b: {}, c: {}, d: {}, e: { of: NEXT } } }} => orphaned
`)("the pods of a workload that is gone show %s", async (_, given, wanted) => expect(await check(given)).toBe(wanted));

test("nothing is known while the API server does not answer", async () => {
  const api = new MemoryApiServer({ isOpen: true }).client(unreachable);
  const query = { api, application: former, allocations: ["10.6.0.1"], readLiveness: async () => "alive" as const };
  expect(await readSuccession({ ...query, signal: new AbortController().signal })).toBe("unknown");
});
