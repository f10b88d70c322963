import { afterEach, describe, expect, it } from "vitest";
import { openPoolOwners } from "../../../../host/controller/owners/pool-owners.ts";
import { ApiError, ApiUnavailable, type KubeCall, METADATA } from "../../../../host/kubernetes/kube-api.ts";
import { ObjectBudget } from "../../../../host/lib/object-budget.ts";
import type { PoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { type Gate, HeldCalls, MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";
import { BLUE, pod, SETTINGS, type Wanted, workload } from "./workload-objects.ts";

const DEPLOYMENTS = "/apis/apps/v1/deployments";
const SETS = "/apis/apps/v1/replicasets";
const PODS = "/api/v1/pods";
const NETWORKS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Options {
  readonly prepare?: (cluster: MemoryApiServer) => void;
  readonly gate?: Gate;
}

async function open({ prepare = () => {}, gate }: Options = {}) {
  const cluster = new MemoryApiServer({ isOpen: true });
  prepare(cluster);
  const applications = openPoolOwners({
    api: cluster.client(gate, (_path, deliver) => deliver()),
    budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
    log: recordLog().log,
    random: () => 0.5,
  });
  closing.push(() => applications.close());
  let notifications = 0;
  applications.subscribe(() => notifications++);
  const names = () =>
    applications.demands(SETTINGS).demands.map(({ application: { name }, ifName }) => `${name} ${ifName}`);
  return { cluster, applications, names, notifications: () => notifications };
}

const signal = () => AbortSignal.timeout(5_000);

/** All lists are complete, and all is watched. */
async function openWatched(options: Options = {}) {
  const opened = await open(options);
  await opened.applications.synced(signal());
  await until(() => opened.cluster.watches === 8);
  return opened;
}
const deployment = (wanted: Wanted = {}) => ({ ...workload("Deployment", wanted) });
const clones = { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1", name: "top", uid: "uid-top" };

describe("applications", () => {
  it("are reported when they come, change and go, and not when nothing of them has changed", async () => {
    const { applications, cluster, names, notifications } = await openWatched();
    const put = (wanted?: Wanted) => void cluster.put(DEPLOYMENTS, "web", deployment(wanted));
    const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1 };
    put();
    expect([notifications(), names()]).toEqual([1, ["web eth0"]]);
    put({ status: { ...status, readyReplicas: 1 } });
    const before = applications.demands(SETTINGS);
    put({ status: { ...status, readyReplicas: 1 } });
    put({ own: { note: "x" }, status });
    expect(notifications()).toBe(1);
    expect(applications.demands(SETTINGS)).toBe(before);
    put({ spec: { replicas: 2 } });
    expect(notifications()).toBe(2);
    put({ annotations: {} });
    expect([notifications(), names()]).toEqual([3, []]);
    put();
    cluster.remove("web", DEPLOYMENTS);
    expect([notifications(), names()]).toEqual([5, []]);
  });

  it("have pods that are ending, of all kinds, until these are gone", async () => {
    const { applications, cluster, names, notifications } = await openWatched();
    cluster.put(DEPLOYMENTS, "web", deployment());
    const ending = () => [...applications.ending].map(([namespace, pods]) => `${namespace}: ${[...pods].join()}`);
    const metadata = { deletionTimestamp: "2026-11-20T04:00:00Z" };
    cluster.put(PODS, "a", { ...pod({ name: "a", owner: { kind: "ReplicaSet" } }) });
    cluster.put(PODS, "b", { ...pod({ name: "b", owner: { kind: "ReplicaSet" }, annotations: {}, metadata }) });
    expect([ending(), notifications()]).toEqual([[], 1]);
    cluster.put(PODS, "a", { ...pod({ name: "a", owner: { kind: "ReplicaSet" }, metadata }) });
    cluster.put(PODS, "c", { ...pod({ name: "c", owner: clones, metadata }) });
    expect([ending(), notifications(), names()]).toEqual([["shop: a,c"], 3, ["web eth0", "top eth0"]]);
    cluster.remove("a", PODS);
    cluster.remove("c", PODS);
    expect([ending(), notifications()]).toEqual([[], 5]);
  });

  it("are reported when a network becomes Berth's, and not when it only changes", async () => {
    const web = deployment({ annotations: { ...BLUE, "k8s.v1.cni.cncf.io/networks": "lan" } });
    const { cluster, names, notifications } = await openWatched({
      prepare: (prepared) => void prepared.put(DEPLOYMENTS, "web", web),
    });
    const define = (ipam: string, mtu: number) => {
      const config = JSON.stringify({ type: "macvlan", mtu, ipam: { type: ipam } });
      cluster.put(NETWORKS, "lan", { metadata: { namespace: "shop" }, spec: { config } });
    };
    const before = notifications();
    define("berth", 1_500);
    expect([notifications() - before, names()]).toEqual([1, ["web eth0", "web net1"]]);
    define("berth", 9_000);
    expect(notifications() - before).toBe(1);
    define("host-local", 9_000);
    expect([notifications() - before, names()]).toEqual([2, ["web eth0"]]);
  });
});

describe("a read", () => {
  const shop = { apiVersion: "apps/v1", namespace: "shop" };
  const web: PoolOwner = { ...shop, kind: "Deployment", name: "web", uid: "uid-web" };
  const error = (status: number, reason: string) => new ApiError({ status, reason, operation: "GET", message: "no" });

  it.each<[what: string, answer: object, expected: string]>([
    ["the object", { metadata: { uid: "uid-web" } }, "alive"],
    ["another of its name", { metadata: { uid: "uid-other" } }, "gone"],
    ["no such object", error(404, "NotFound"), "gone"],
    ["no such kind", error(404, ""), "unknown"],
    ["no right", error(403, "Forbidden"), "unknown"],
    ["no answer", new ApiUnavailable("GET", "no"), "unknown"],
    ["nonsense", { metadata: {} }, "unknown"],
  ])("at a Deployment, answered with %s: %#", async (_what, answer, expected) => {
    const looks: KubeCall[] = [];
    const { applications } = await open({
      gate: async (call, commit) => {
        if (!call.path.includes("/namespaces/")) return commit();
        looks.push(call);
        if (answer instanceof Error) throw answer;
        return { ...answer };
      },
    });
    expect(await applications.readLiveness(web, signal())).toBe(expected);
    expect(looks.map(({ method, path, accept }) => [method, path, accept])).toEqual([
      ["GET", "/apis/apps/v1/namespaces/shop/deployments/web", METADATA],
    ]);
  });

  const other: PoolOwner = { ...shop, ...clones };

  it("of another kind says whether it has a pod or a ReplicaSet", async () => {
    const { applications, cluster } = await openWatched();
    const look = () => applications.readLiveness(other, signal());
    expect(await look()).toBe("gone");
    cluster.put(PODS, "a", { ...pod({ owner: clones }) });
    expect(await look()).toBe("alive");
    cluster.remove("a", PODS);
    expect(await look()).toBe("gone");
    cluster.put(SETS, "b", { ...workload("ReplicaSet", { owner: clones, spec: { replicas: 0 } }) });
    expect(await look()).toBe("alive");
  });

  it("of another kind says nothing while anything is unread", async () => {
    const held = new HeldCalls(SETS);
    const { applications } = await open({ gate: held.gate });
    expect(await applications.readLiveness(other, signal())).toBe("unknown");
    held.release();
    await applications.synced(signal());
    expect(await applications.readLiveness(other, signal())).toBe("gone");
  });

  it("of another kind says nothing while an object cannot be used, and names it", async () => {
    const { applications, cluster } = await openWatched();
    cluster.put(SETS, "bad", { ...workload("ReplicaSet", { spec: { replicas: -1 } }) });
    const problem = expect.stringContaining("Of replicasets, shop/bad cannot be used: ReplicaSet");
    expect(applications.problems).toEqual([problem]);
    expect(await applications.readLiveness(other, signal())).toBe("unknown");
    cluster.remove("bad", SETS);
    expect([applications.problems, await applications.readLiveness(other, signal())]).toEqual([[], "gone"]);
  });
});
