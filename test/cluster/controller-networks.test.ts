/**
 * The cluster's networks in the status of the Coordinator `default`, as the controller's part writes them on a real
 * API server. Calico and Cilium are their custom resources alone.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keepNetworks } from "../../host/controller/networks/networks-controller.ts";
import { ApiError } from "../../host/kubernetes/kube-api.ts";
import type { LabController, LabControllerOptions } from "../lab/cluster/controller.ts";
import { berthObject, COORDINATORS, CRDS, NAMESPACES, NODES } from "../lab/cluster/objects.ts";
import { applyKinds } from "../lab/cluster/workload-kinds.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { type KubeClient, KubeError, type KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs";
const SYSTEM = `${NAMESPACES}/kube-system`;

let world: World;
let client: KubeClient;
/** Prefixes of the API server's own ServiceCIDR: one of each family. */
let services: readonly string[];
const made: string[] = [];

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  ({ client } = world);
  services = (await client.get(SERVICE_CIDRS)).items.flatMap(({ spec }: KubeObject) => spec.cidrs);
  expect(services).toHaveLength(2);
});
beforeEach(() => make(COORDINATORS, berthObject("Coordinator", "", {}), "default"));
afterEach(async () => {
  await world.depose();
  for (const path of made.splice(0).reverse()) await remove(path);
});
afterAll(() => world?.stop());

/**
 * The part as the one that leads, which retries absent kinds often; `prepare` may stand between it and the API server.
 */
const start = (prepare?: LabControllerOptions["prepare"]): Promise<LabController> =>
  world.lead(
    { networks: (deps) => keepNetworks(deps, { missingKindRetryMs: 200 }) },
    prepare === undefined ? {} : { prepare },
  );

/** Makes the object, or makes it so; it is removed after the test. */
async function make(collection: string, object: object, name: string): Promise<void> {
  await client.apply(`${collection}/${name}`, { ...object, metadata: { name } });
  made.push(`${collection}/${name}`);
}

async function remove(path: string): Promise<void> {
  await client.delete(path, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
    if (!(error instanceof KubeError && error.status === 404)) throw error;
  });
}

const configMap = (name: string, data: object) =>
  make(`${SYSTEM}/configmaps`, { apiVersion: "v1", kind: "ConfigMap", data }, name);
const kubeadm = (ClusterConfiguration: string) => configMap("kubeadm-config", { ClusterConfiguration });
const serviceCidr = (cidr: string) =>
  make(SERVICE_CIDRS, { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", spec: { cidrs: [cidr] } }, "more");

async function controlPlanePod(name: string, component: string, command: string[]): Promise<void> {
  await client.create(`${SYSTEM}/pods`, {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, labels: { component, tier: "control-plane" } } },
    spec: { nodeName: "n1", containers: [{ name: component, image: "local/pause:1", command }] },
  });
  made.push(`${SYSTEM}/pods/${name}`);
}

/** A kind without rules, as another product installs it. Returns its path when it is served. */
async function makeKind(group: string, version: string, plural: string, kind: string): Promise<string> {
  await applyKinds(client, [{ group, version, plural, kind, scope: "Cluster" }]);
  made.push(`${CRDS}/${plural}.${group}`);
  return `/apis/${group}/${version}/${plural}`;
}

const statusNow = async (): Promise<KubeObject> => (await client.get(`${COORDINATORS}/default`)).status ?? {};

/** Waits until the status has all of this. */
const expectStatus = (expected: object): Promise<void> =>
  expect.poll(statusNow, { timeout: 30_000 }).toMatchObject(expected);

describe("the Coordinator", () => {
  it("is made when there is none, also again, and its networks are collected", async () => {
    await remove(`${COORDINATORS}/default`);
    await start();
    const isThere = () =>
      statusNow().then(
        (status) => status.phase !== undefined,
        () => false,
      );
    await until("it has a status", isThere);
    expect((await client.get(`${COORDINATORS}/default`)).spec).toEqual({ podCIDRType: "auto" });
    await expectStatus({ serviceCIDR: services });
    await remove(`${COORDINATORS}/default`);
    await until("it has a status again", isThere);
  });

  it("of an administrator stays as it is", async () => {
    const spec = { hostRuleTable: 600, podCIDRType: "none", serviceCIDR: ["10.7.0.0/16"] };
    await client.patch(`${COORDINATORS}/default`, { spec });
    const { metadata } = await client.get(`${COORDINATORS}/default`);
    await start();
    await expectStatus({ phase: "Synced", serviceCIDR: ["10.7.0.0/16"] });
    const now = await client.get(`${COORDINATORS}/default`);
    expect([now.metadata.uid, now.metadata.generation, now.spec]).toEqual([metadata.uid, metadata.generation, spec]);
  });

  it("of another name gets a status that it does not count", async () => {
    const controller = await start();
    await make(COORDINATORS, berthObject("Coordinator", "", { mode: "underlay" }), "mine");
    const statusOf = async () => (await client.get(`${COORDINATORS}/mine`)).status ?? {};
    await until("it has a status", async () => (await statusOf()).phase === "NotReady");
    expect((await statusOf()).reason).toBe(
      'This Coordinator is ignored: only the one named "default" is used. Move its settings there and delete it',
    );
    expect(controller.problems("networks").join()).toContain('Coordinator "mine"');
    await expectStatus({ serviceCIDR: services });
  });
});

describe("service networks", () => {
  it("are those of all ServiceCIDR objects; a second one comes and goes", async () => {
    await client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "none" } });
    await start();
    await expectStatus({ phase: "Synced", serviceCIDR: services, overlayPodCIDR: [] });
    expect((await statusNow()).reason).toBe(
      "serviceCIDR: of ServiceCIDR kubernetes; overlayPodCIDR: none, since podCIDRType is none",
    );
    await serviceCidr("172.31.0.0/24");
    const [v4 = "", v6 = ""] = services;
    await expectStatus({ phase: "Synced", serviceCIDR: [v4, "172.31.0.0/24", v6] });
    await remove(`${SERVICE_CIDRS}/more`);
    await expectStatus({ phase: "Synced", serviceCIDR: services });
  });
});

describe("pod networks", () => {
  it("are the cluster's: of kubeadm, else of the controller manager, else of the nodes", async () => {
    await kubeadm("networking: {podSubnet: '10.244.0.0/16,fd00:10:244::/56'}");
    await controlPlanePod("kube-controller-manager-n1", "kube-controller-manager", [
      "kcm",
      "--v=2",
      "--cluster-cidr",
      "10.245.0.0/16",
    ]);
    const share = { podCIDR: "10.246.1.0/24", podCIDRs: ["10.246.1.0/24"] };
    await make(NODES, { apiVersion: "v1", kind: "Node", spec: share }, "n1");
    await start();
    await expectStatus({
      phase: "Synced",
      overlayPodCIDR: ["10.244.0.0/16", "fd00:10:244::/56"],
      serviceCIDR: services,
    });
    await kubeadm("networking: {podSubnet: 10.244.0.0/33}");
    await expectStatus({
      ...{ phase: "NotReady", overlayPodCIDR: ["10.244.0.0/16", "fd00:10:244::/56"] },
      reason: expect.stringContaining('networking.podSubnet: "10.244.0.0/33" is not a network in CIDR form'),
    });
    await remove(`${SYSTEM}/configmaps/kubeadm-config`);
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.245.0.0/16"] });
    await remove(`${SYSTEM}/pods/kube-controller-manager-n1`);
    await expectStatus({
      phase: "Synced",
      overlayPodCIDR: ["10.246.1.0/24"],
      reason: expect.stringContaining("of the Nodes' own shares"),
    });
    await remove(`${NODES}/n1`);
    await expectStatus({
      phase: "NotReady",
      overlayPodCIDR: [],
      reason: expect.stringContaining("Nodes (spec.podCIDRs)"),
    });
  });

  it("are Calico's as soon as its kind and a pool are there, and the cluster's again without them", async () => {
    await kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    await start();
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    const pools = await makeKind("crd.projectcalico.org", "v1", "ippools", "IPPool");
    const pool = (cidr: string, rest: object = {}) => ({
      ...{ apiVersion: "crd.projectcalico.org/v1", kind: "IPPool", spec: { cidr, ...rest } },
    });
    await make(pools, pool("192.168.0.0/16"), "default-ipv4-ippool");
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16"] });
    await make(pools, pool("192.169.0.0/16", { disabled: true }), "old");
    await make(pools, pool("192.170.0.0/16", { allowedUses: ["LoadBalancer"] }), "outside");
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16", "192.169.0.0/16"] });
    await client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "cluster" } });
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    await client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "auto" } });
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16", "192.169.0.0/16"] });
    await remove(`${CRDS}/ippools.crd.projectcalico.org`);
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
  });

  it("are Cilium's: of its settings, or of its pools", async () => {
    const settings = (data: object) => configMap("cilium-config", data);
    await settings({ ipam: "cluster-pool", "cluster-pool-ipv4-cidr": "10.0.0.0/8", "enable-ipv6": "false" });
    await start();
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.0.0.0/8"] });
    await settings({ ipam: "multi-pool", "enable-ipv6": "false" });
    await expectStatus({
      phase: "NotReady",
      reason: expect.stringContaining('Cilium with ipam "multi-pool" names no network'),
    });
    const pools = await makeKind("cilium.io", "v2alpha1", "ciliumpodippools", "CiliumPodIPPool");
    const spec = { ipv4: { cidrs: ["10.10.0.0/16", "10.20.0.0/16"], maskSize: 27 } };
    await make(pools, { apiVersion: "cilium.io/v2alpha1", kind: "CiliumPodIPPool", spec }, "default");
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.10.0.0/16", "10.20.0.0/16"] });
    const calico = await makeKind("projectcalico.org", "v3", "ippools", "IPPool");
    await make(calico, { apiVersion: "projectcalico.org/v3", kind: "IPPool", spec: { cidr: "192.168.0.0/16" } }, "p");
    await expectStatus({
      phase: "NotReady",
      reason: expect.stringContaining("are both installed; set podCIDRType to the one that counts"),
    });
    await client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "calico" } });
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16"] });
  });
});

describe("the status", () => {
  it("is not written over an object that has changed meanwhile: the precondition refuses, and it is compared again", async () => {
    await kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    let isFirst = true;
    let carriedOut = 0;
    await start((api) => {
      api.before = async ({ method }) => {
        if (method !== "PATCH" || !isFirst) return;
        isFirst = false;
        await client.patch(`${COORDINATORS}/default`, { spec: { overlayPodCIDR: ["10.51.0.0/16"] } });
      };
      api.after = async ({ method }) => {
        if (method === "PATCH") carriedOut++;
      };
    });
    await expectStatus({ phase: "Synced", overlayPodCIDR: ["10.51.0.0/16"] });
    // The status can be seen before its writer has the answer.
    await until("the answer has come", () => carriedOut > 0);
    expect([isFirst, carriedOut]).toEqual([false, 1]);
  });

  it("is tried again when it cannot be written", async () => {
    let failures = 2;
    const controller = await start((api) => {
      api.before = async ({ method, path }) => {
        if (method !== "PATCH" || failures-- <= 0) return;
        throw new ApiError({ status: 422, reason: "Invalid", operation: `${method} ${path}`, message: "not today" });
      };
    });
    const problem = 'Writing the status of Coordinator "default" failed: not today';
    await until("the problem is reported", () => controller.problems("networks").includes(problem));
    await expectStatus({ serviceCIDR: services });
    await until("the problem has gone", () => !controller.problems("networks").includes(problem));
  });
});
