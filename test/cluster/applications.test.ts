/**
 * Demands of workloads on Subnets, as the controller reads them from a real API server (docs/subnets.md): all kinds,
 * and two of other projects. No controller of Kubernetes runs: the test makes ReplicaSets, Jobs and pods, and writes
 * what their controllers would report.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type OpenPoolOwners, openPoolOwners } from "../../host/controller/owners/pool-owners.ts";
import type { DemandSettings } from "../../host/controller/types.ts";
import { type KubeApi, type KubeObject, METADATA, METADATA_LIST } from "../../host/kubernetes/kube-api.ts";
import { ObjectBudget } from "../../host/kubernetes/object-budget.ts";
import type { PoolOwner } from "../../host/resources/fields/subnet-pool.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import {
  createOwned,
  createPod,
  createWorkload,
  DEFINITIONS_CRD,
  definitionsCrd,
  type OwnerReference,
  podPath,
  podTemplate,
  type WorkloadOptions,
} from "../lab/cluster/objects.ts";
import { applyPodMakers, CLONE_SETS, ROLLOUTS } from "../lab/cluster/workload-kinds.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { recordLog } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

const APPS = "/apis/apps/v1/namespaces/shop";
const BATCH = "/apis/batch/v1/namespaces/shop";
const NETWORKS = "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions";
const SETTINGS: DemandSettings = { enableIPv4: true, enableIPv6: false, allowSingleFamily: false, firstNic: "eth0" };

let plane: ControlPlane;
let api: KubeApi;
let applications: OpenPoolOwners;

beforeAll(async () => {
  plane = await borrowPlane();
  await plane.client.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
  api = await connectClient(plane.kubeconfig, "applications");
  applications = openPoolOwners({
    api,
    budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
    log: recordLog().log,
    random: () => 0.5,
  });
  await applications.synced(AbortSignal.timeout(20_000));
});

afterAll(async () => {
  await applications?.close();
  await api?.close();
  await plane?.stop();
});

afterEach(() => expect(applications.problems).toEqual([]));

/** `kind/name nic/family subnets: count (reason)`, a former version's with a tilde before. */
function wanted(): string[] {
  return applications.demands(SETTINGS).demands.map(({ application, ifName, family, subnets, ...rest }) => {
    const { count, reason, isCurrent } = rest;
    const former = isCurrent ? "" : "~";
    return `${former}${application.kind}/${application.name} ${ifName}/${family} ${subnets.join()}: ${count} (${reason})`;
  });
}

const of = (name: string) => wanted().filter((text) => text.includes(`/${name} `));

/** Awaited by the event, not by polling. */
async function until(name: string, expected: readonly string[]): Promise<void> {
  const holds = () => JSON.stringify(of(name)) === JSON.stringify(expected);
  const unsubscribe: { call?: () => void } = {};
  try {
    await new Promise<void>((resolve) => {
      const check = () => holds() && resolve();
      unsubscribe.call = applications.subscribe(check);
      setTimeout(resolve, 20_000).unref();
      check();
    });
  } finally {
    unsubscribe.call?.();
  }
  expect(of(name)).toEqual(expected);
}

const create = async (
  path: string,
  apiVersion: string,
  kind: string,
  name: string,
  spec: object,
  owner?: OwnerReference,
): Promise<PoolOwner> => ({
  ...(await createOwned(plane.client, path, { apiVersion, kind }, name, spec, owner)),
  namespace: "shop",
});

const createSet = (kind: Parameters<typeof createWorkload>[1], name: string, options: WorkloadOptions) =>
  createWorkload(plane.client, kind, name, options);

const report = (path: string, status: object) => plane.client.patch(`${path}/status`, { status });
const livenessOf = (application: PoolOwner) => applications.readLiveness(application, AbortSignal.timeout(10_000));

describe("a Deployment", () => {
  it("wants its replicas, more while it is rolled out, and nothing when it is gone", async () => {
    const path = `${APPS}/deployments/web`;
    const application = await createSet("Deployment", "web", { subnet: "blue", replicas: 50 });
    await until("web", ["Deployment/web eth0/4 blue: 51 (50 replicas and 1 more)"]);
    const status = { observedGeneration: 1, replicas: 50, updatedReplicas: 50 };
    await report(path, status);
    await plane.client.patch(path, { spec: { template: { metadata: { labels: { version: "2" } } } } });
    const surging = ["Deployment/web eth0/4 blue: 63 (50 replicas and 13 more while it is rolled out (maxSurge))"];
    await until("web", surging);
    await report(path, { observedGeneration: 2, replicas: 63, updatedReplicas: 26 });
    await report(path, { replicas: 50, updatedReplicas: 50 });
    await until("web", ["Deployment/web eth0/4 blue: 51 (50 replicas and 1 more)"]);
    expect(await livenessOf(application)).toBe("alive");
    expect(await livenessOf({ ...application, uid: "another" })).toBe("gone");
    await plane.client.delete(path);
    await until("web", []);
    expect(await livenessOf(application)).toBe("gone");
  });
});

it("a ReplicaSet without an owner, a StatefulSet and a DaemonSet want their pods", async () => {
  const set = await createSet("ReplicaSet", "alone", { subnet: "blue", replicas: 2 });
  const ordered = await createSet("StatefulSet", "ordered", {
    subnet: "blue",
    replicas: 3,
  });
  const daemon = await createSet("DaemonSet", "daemon", { subnet: "blue" });
  await until("alone", ["ReplicaSet/alone eth0/4 blue: 3 (2 replicas and 1 more)"]);
  await until("ordered", ["StatefulSet/ordered eth0/4 blue: 4 (3 replicas and 1 more)"]);
  await until("daemon", ["DaemonSet/daemon eth0/4 blue: 1 (0 nodes and 1 more)"]);
  const status = { currentNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0, desiredNumberScheduled: 4 };
  await report(`${APPS}/daemonsets/daemon`, status);
  await until("daemon", ["DaemonSet/daemon eth0/4 blue: 5 (4 nodes and 1 more)"]);
  for (const application of [set, ordered, daemon]) expect(await livenessOf(application)).toBe("alive");
});

it("a Job and a CronJob want what may run at once, and a Job that has ended nothing", async () => {
  const spec = {
    parallelism: 3,
    completions: 9,
    template: podTemplate("once", { subnet: "blue", restartPolicy: "Never" }),
  };
  const job = await create(`${BATCH}/jobs`, "batch/v1", "Job", "once", spec);
  await until("once", ["Job/once eth0/4 blue: 4 (parallelism 3 and 1 more)"]);
  await plane.client.patch(`${BATCH}/jobs/once`, { spec: { suspend: true } });
  await until("once", ["Job/once eth0/4 blue: 1 (0 while it is suspended and 1 more)"]);
  await plane.client.patch(`${BATCH}/jobs/once`, { spec: { suspend: false } });
  const at = { startTime: "2026-01-01T00:00:00Z" };
  const ended = ["FailureTarget", "Failed"].map((type) => ({
    ...{ type, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" },
  }));
  await report(`${BATCH}/jobs/once`, { ...at, conditions: ended });
  await until("once", []);
  expect(await livenessOf(job)).toBe("gone");
  const jobTemplate = { spec };
  const cron = { schedule: "0 0 1 1 *", jobTemplate };
  const owner = await create(`${BATCH}/cronjobs`, "batch/v1", "CronJob", "nightly", cron);
  await until("nightly", ["CronJob/nightly eth0/4 blue: 4 (parallelism 3 and 1 more)"]);
  await create(`${BATCH}/jobs`, "batch/v1", "Job", "run-1", spec, owner);
  await create(`${BATCH}/jobs`, "batch/v1", "Job", "by-hand", spec, owner);
  await until("nightly", ["CronJob/nightly eth0/4 blue: 7 (parallelism 6 of 2 Jobs and 1 more)"]);
  expect([of("run-1"), of("by-hand"), await livenessOf(owner)]).toEqual([[], [], "alive"]);
});

describe("kinds of other projects", () => {
  beforeAll(() => applyPodMakers(plane.client));

  it("a Rollout wants what its ReplicaSets do, and lives as long as it has one", async () => {
    const owner = await create(ROLLOUTS, "argoproj.io/v1alpha1", "Rollout", "canary", {});
    expect(await livenessOf(owner)).toBe("gone");
    await createSet("ReplicaSet", "canary-1", { subnet: "blue", replicas: 4, owner });
    await createSet("ReplicaSet", "canary-2", { subnet: "blue", replicas: 1, owner });
    await until("canary", ["Rollout/canary eth0/4 blue: 6 (5 replicas and 1 more)"]);
    expect(await livenessOf(owner)).toBe("alive");
    for (const name of ["canary-1", "canary-2"]) await plane.client.delete(`${APPS}/replicasets/${name}`);
    await until("canary", []);
    expect(await livenessOf(owner)).toBe("gone");
  });

  it("a CloneSet wants what its pods do, without those that have ended or use the network of the node", async () => {
    const owner = await create(CLONE_SETS, "apps.kruise.io/v1alpha1", "CloneSet", "clones", {});
    const annotations = { subnet: { ipv4: ["blue"] } };
    const pod = (name: string, hostNetwork = false) =>
      createPod(plane.client, { name, node: "n1", owner, annotations, hostNetwork });
    const pods = [await pod("c-1"), await pod("c-2")];
    await pod("c-host", true);
    await until("clones", ["CloneSet/clones eth0/4 blue: 3 (2 pods and 1 more)"]);
    await report(podPath({ namespace: "shop", name: "c-1" }), { phase: "Succeeded" });
    await until("clones", ["CloneSet/clones eth0/4 blue: 2 (1 pod and 1 more)"]);
    expect(await livenessOf(owner)).toBe("alive");
    for (const each of pods) await plane.client.delete(podPath(each), { gracePeriodSeconds: 0 });
    await until("clones", []);
    expect(await livenessOf(owner)).toBe("gone");
  });
});

it("networks decide which NICs `subnet` is for, also when they come later", async () => {
  const networks = { "k8s.v1.cni.cncf.io/networks": "ours, theirs, ours@data" };
  await createSet("Deployment", "many", { subnet: "blue", replicas: 1, annotations: networks });
  await until("many", ["Deployment/many eth0/4 blue: 2 (1 replica and 1 more)"]);
  await plane.client.apply(
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${DEFINITIONS_CRD}`,
    definitionsCrd(),
  );
  await expect.poll(() => plane.client.get(NETWORKS).catch(() => undefined), { timeout: 20_000 }).toBeDefined();
  const define = (name: string, ipam: string) => {
    const spec = { config: JSON.stringify({ cniVersion: "1.0.0", type: "macvlan", ipam: { type: ipam } }) };
    return plane.client.create(NETWORKS, {
      ...{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata: { name }, spec },
    });
  };
  await define("ours", "berth");
  await define("theirs", "host-local");
  const nics = () =>
    applications
      .demands(SETTINGS)
      .demands.flatMap((demand) => (demand.application.name === "many" ? demand.ifName : []));
  await expect.poll(nics, { timeout: 20_000 }).toEqual(["eth0", "net1", "data"]);
});

it("of pods of other kinds the API server sends the metadata only, in lists and in watches", async () => {
  await createPod(plane.client, { name: "plain", node: "n1" });
  const list = await api.call({ method: "GET", path: "/api/v1/pods", accept: METADATA_LIST });
  const seen: KubeObject[] = [...(list.items as KubeObject[])];
  const listed = seen.length;
  const done = new AbortController();
  const onEvent = ({ object }: { object: KubeObject }) => {
    seen.push(object);
    done.abort();
  };
  const query = { resourceVersion: "0" };
  const watch = api.watch({ path: "/api/v1/pods", query, accept: METADATA, onEvent, signal: done.signal });
  await expect(watch).rejects.toThrow();
  expect([listed > 0, seen.length > listed]).toEqual([true, true]);
  for (const object of seen)
    expect([object.spec, object.status, typeof object.metadata]).toEqual([undefined, undefined, "object"]);
});
