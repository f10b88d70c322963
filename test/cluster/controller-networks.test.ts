/**
 * The cluster's networks in the status of the Coordinator `default`, as the controller's part writes them on a real API server. Calico and
 * Cilium are their custom resources alone.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ClusterResources } from "../../host/agent/cluster/resources.ts";
import { effectiveSettings } from "../../host/agent/definitions.ts";
import { ApiError } from "../../host/kubernetes/kube-api.ts";
import { openLog } from "../../host/lib/log.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import { COORDINATORS, CRDS, type NetworksWorld, openNetworksWorld, SERVICE_CIDRS, SYSTEM } from "./networks-world.ts";
import { until } from "./registry-world.ts";

let world: NetworksWorld;

beforeAll(async () => {
  world = await openNetworksWorld();
});
beforeEach(() =>
  world.make(COORDINATORS, { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", spec: {} }, "default"),
);
afterEach(() => world.clean());
afterAll(() => world?.stop());

describe("the Coordinator", () => {
  it("is made when there is none, also again, and its networks are collected", async () => {
    await world.remove(`${COORDINATORS}/default`);
    await world.start();
    const isThere = () =>
      world.statusNow().then(
        (status) => status.phase !== undefined,
        () => false,
      );
    await until("it has a status", isThere);
    expect((await world.client.get(`${COORDINATORS}/default`)).spec).toEqual({ podCIDRType: "auto" });
    await world.expectStatus({ serviceCIDR: world.services });
    await world.remove(`${COORDINATORS}/default`);
    await until("it has a status again", isThere);
  });

  it("of an administrator stays as it is", async () => {
    const spec = { hostRuleTable: 600, podCIDRType: "none", serviceCIDR: ["10.7.0.0/16"] };
    await world.client.patch(`${COORDINATORS}/default`, { spec });
    const { metadata } = await world.client.get(`${COORDINATORS}/default`);
    await world.start();
    await world.expectStatus({ phase: "Synced", serviceCIDR: ["10.7.0.0/16"] });
    const now = await world.client.get(`${COORDINATORS}/default`);
    expect([now.metadata.uid, now.metadata.generation, now.spec]).toEqual([metadata.uid, metadata.generation, spec]);
  });

  it("of another name is told that it does not count", async () => {
    const controller = await world.start();
    await world.make(
      COORDINATORS,
      { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", spec: { mode: "underlay" } },
      "mine",
    );
    const statusOf = async () => (await world.client.get(`${COORDINATORS}/mine`)).status ?? {};
    await until("it has a status", async () => (await statusOf()).phase === "NotReady");
    expect((await statusOf()).reason).toBe(
      'This Coordinator is ignored: only the one named "default" is used. Move its settings there and delete it',
    );
    expect(controller.problems("networks").join()).toContain('Coordinator "mine"');
    await world.expectStatus({ serviceCIDR: world.services });
  });
});

describe("service networks", () => {
  it("are those of all ServiceCIDR objects; a second one comes and goes", async () => {
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "none" } });
    await world.start();
    await world.expectStatus({ phase: "Synced", serviceCIDR: world.services, overlayPodCIDR: [] });
    expect((await world.statusNow()).reason).toBe(
      "serviceCIDR: of ServiceCIDR kubernetes; overlayPodCIDR: none, since podCIDRType is none",
    );
    await world.make(
      SERVICE_CIDRS,
      { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", spec: { cidrs: ["172.31.0.0/24"] } },
      "more",
    );
    const [v4 = "", v6 = ""] = world.services;
    await world.expectStatus({ phase: "Synced", serviceCIDR: [v4, "172.31.0.0/24", v6] });
    await world.remove(`${SERVICE_CIDRS}/more`);
    await world.expectStatus({ phase: "Synced", serviceCIDR: world.services });
  });

  it("are kubeadm's, then the arguments of the API server, when that kind is not served", async () => {
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "none" } });
    await world.kubeadm("networking: {serviceSubnet: 10.111.0.0/16}");
    await world.controlPlanePod("kube-apiserver-n1", "kube-apiserver", [
      "kube-apiserver",
      "--service-cluster-ip-range",
      "10.112.0.0/16",
    ]);
    await world.start((api) => {
      api.before = async ({ path, method }) => {
        if (path !== SERVICE_CIDRS) return;
        throw new ApiError({ status: 404, reason: "NotFound", operation: `${method} ${path}`, message: "unknown" });
      };
    });
    await world.expectStatus({ phase: "Synced", serviceCIDR: ["10.111.0.0/16"] });
    await world.remove(`${SYSTEM}/configmaps/kubeadm-config`);
    await world.expectStatus({ phase: "Synced", serviceCIDR: ["10.112.0.0/16"] });
    await world.remove(`${SYSTEM}/pods/kube-apiserver-n1`);
    await world.expectStatus({
      phase: "NotReady",
      serviceCIDR: [],
      reason: expect.stringContaining("pods of kube-apiserver"),
    });
  });

  it("that may not be read are named, and what was known stays", async () => {
    const status = { phase: "Synced", reason: "", serviceCIDR: ["10.99.0.0/16"], overlayPodCIDR: [] };
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "none" } });
    await world.client.patch(`${COORDINATORS}/default/status`, { status });
    const controller = await world.start((api) => {
      api.before = async ({ path, method }) => {
        if (path !== SERVICE_CIDRS) return;
        throw new ApiError({ status: 403, reason: "Forbidden", operation: `${method} ${path}`, message: "no right" });
      };
    });
    await world.expectStatus({ phase: "NotReady", serviceCIDR: ["10.99.0.0/16"] });
    const { reason } = await world.statusNow();
    expect(reason).toContain(
      "serviceCIDR: ServiceCIDR objects cannot be read: Cannot follow ServiceCIDR objects: no right",
    );
    expect(controller.problems("networks")).toContain(`Coordinator "default" is not ready: ${reason}`);
  });
});

describe("pod networks", () => {
  it("are the cluster's: of kubeadm, else of the controller manager, else of the nodes", async () => {
    await world.kubeadm("networking: {podSubnet: '10.244.0.0/16,fd00:10:244::/56'}");
    await world.controlPlanePod("kube-controller-manager-n1", "kube-controller-manager", [
      "kcm",
      "--v=2",
      "--cluster-cidr",
      "10.245.0.0/16",
    ]);
    const share = { podCIDR: "10.246.1.0/24", podCIDRs: ["10.246.1.0/24"] };
    await world.make("/api/v1/nodes", { apiVersion: "v1", kind: "Node", spec: share }, "n1");
    await world.start();
    await world.expectStatus({
      phase: "Synced",
      overlayPodCIDR: ["10.244.0.0/16", "fd00:10:244::/56"],
      serviceCIDR: world.services,
    });
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/33}");
    await world.expectStatus({
      ...{ phase: "NotReady", overlayPodCIDR: ["10.244.0.0/16", "fd00:10:244::/56"] },
      reason: expect.stringContaining('networking.podSubnet: "10.244.0.0/33" is not a network in CIDR form'),
    });
    await world.remove(`${SYSTEM}/configmaps/kubeadm-config`);
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.245.0.0/16"] });
    await world.remove(`${SYSTEM}/pods/kube-controller-manager-n1`);
    await world.expectStatus({
      phase: "Synced",
      overlayPodCIDR: ["10.246.1.0/24"],
      reason: expect.stringContaining("of the Nodes' own shares"),
    });
    await world.remove("/api/v1/nodes/n1");
    await world.expectStatus({
      phase: "NotReady",
      overlayPodCIDR: [],
      reason: expect.stringContaining("Nodes (spec.podCIDRs)"),
    });
  });

  it("are Calico's as soon as its kind and a pool are there, and the cluster's again without them", async () => {
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    await world.start();
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    const pools = await world.makeKind("crd.projectcalico.org", "v1", "ippools", "IPPool");
    const pool = (cidr: string, rest: object = {}) => ({
      ...{ apiVersion: "crd.projectcalico.org/v1", kind: "IPPool", spec: { cidr, ...rest } },
    });
    await world.make(pools, pool("192.168.0.0/16"), "default-ipv4-ippool");
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16"] });
    await world.make(pools, pool("192.169.0.0/16", { disabled: true }), "old");
    await world.make(pools, pool("192.170.0.0/16", { allowedUses: ["LoadBalancer"] }), "outside");
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16", "192.169.0.0/16"] });
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "cluster" } });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "auto" } });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16", "192.169.0.0/16"] });
    await world.remove(`${CRDS}/ippools.crd.projectcalico.org`);
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
  });

  it("are Cilium's: of its settings, or of its pools", async () => {
    const settings = (data: object) =>
      world.make(`${SYSTEM}/configmaps`, { apiVersion: "v1", kind: "ConfigMap", data }, "cilium-config");
    await settings({ ipam: "cluster-pool", "cluster-pool-ipv4-cidr": "10.0.0.0/8", "enable-ipv6": "false" });
    await world.start();
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.0.0.0/8"] });
    await settings({ ipam: "multi-pool", "enable-ipv6": "false" });
    await world.expectStatus({
      phase: "NotReady",
      reason: expect.stringContaining('Cilium with ipam "multi-pool" names no network'),
    });
    const pools = await world.makeKind("cilium.io", "v2alpha1", "ciliumpodippools", "CiliumPodIPPool");
    const spec = { ipv4: { cidrs: ["10.10.0.0/16", "10.20.0.0/16"], maskSize: 27 } };
    await world.make(pools, { apiVersion: "cilium.io/v2alpha1", kind: "CiliumPodIPPool", spec }, "default");
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.10.0.0/16", "10.20.0.0/16"] });
    const calico = await world.makeKind("projectcalico.org", "v3", "ippools", "IPPool");
    await world.make(
      calico,
      { apiVersion: "projectcalico.org/v3", kind: "IPPool", spec: { cidr: "192.168.0.0/16" } },
      "p",
    );
    await world.expectStatus({
      phase: "NotReady",
      reason: expect.stringContaining("are both installed; set podCIDRType to the one that counts"),
    });
    await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "calico" } });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["192.168.0.0/16"] });
  });
});

it("an agent hears of it without a restart", async () => {
  await world.client.patch(`${COORDINATORS}/default`, { spec: { podCIDRType: "none" } });
  const { client: api } = await world.start();
  const log = openLog("test", "silent");
  const resources = new ClusterResources({
    ...{ api, log, node: "n1", configNamespace: "kube-system", random: Math.random },
    ...{ onChange: () => {}, onPod: () => {}, onWanted: () => {} },
  });
  resources.start();
  try {
    const settings = () => effectiveSettings(undefined, resources.state.snapshot);
    const hasServices = (networks: readonly string[]) => () =>
      settings().serviceCIDR.map(formatPrefix).join() === networks.join();
    await until("the agent has the services", hasServices(world.services));
    await world.make(
      SERVICE_CIDRS,
      { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", spec: { cidrs: ["172.31.1.0/24"] } },
      "more",
    );
    const [v4 = "", v6 = ""] = world.services;
    await until("the agent has the new ones, too", hasServices([v4, "172.31.1.0/24", v6]));
    await world.client.patch(`${COORDINATORS}/default`, { spec: { serviceCIDR: ["10.53.0.0/16"] } });
    await until("the agent has the specification's", hasServices(["10.53.0.0/16"]));
  } finally {
    await resources.close();
  }
});

describe("the status", () => {
  it("has what the specification says, key by key, and is not written when it says so already", async () => {
    const spec = { overlayPodCIDR: ["10.50.0.0/16"] };
    await world.client.patch(`${COORDINATORS}/default`, { spec });
    const controller = await world.start();
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.50.0.0/16"], serviceCIDR: world.services });
    expect(controller.api.takeWrites()).toEqual(["PATCH"]);
    // Sources speak, and nothing follows from it: this is of no key that is looked for.
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    await world.client.patch(`${COORDINATORS}/default`, { metadata: { annotations: { who: "cares" } } });
    await world.client.patch(`${COORDINATORS}/default`, { spec: { overlayPodCIDR: ["10.52.0.0/16"] } });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.52.0.0/16"] });
    expect(controller.api.takeWrites()).toEqual(["PATCH"]);
  });

  it("that somebody edits is written again", async () => {
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    await world.start();
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    await world.client.patch(`${COORDINATORS}/default/status`, {
      status: { overlayPodCIDR: ["0.0.0.0/0"], phase: null },
    });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
  });

  it("is not written over an object that has changed meanwhile: the precondition refuses, and it looks again", async () => {
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    let isFirst = true;
    let carriedOut = 0;
    await world.start((api) => {
      api.before = async ({ method }) => {
        if (method !== "PATCH" || !isFirst) return;
        isFirst = false;
        await world.client.patch(`${COORDINATORS}/default`, { spec: { overlayPodCIDR: ["10.51.0.0/16"] } });
      };
      api.after = async ({ method }) => {
        if (method === "PATCH") carriedOut++;
      };
    });
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.51.0.0/16"] });
    // The status can be seen before its writer has the answer.
    await until("the answer has come", () => carriedOut > 0);
    expect([isFirst, carriedOut]).toEqual([false, 1]);
  });

  it("is tried again when it cannot be written", async () => {
    let failures = 2;
    const controller = await world.start((api) => {
      api.before = async ({ method, path }) => {
        if (method !== "PATCH" || failures-- <= 0) return;
        throw new ApiError({ status: 422, reason: "Invalid", operation: `${method} ${path}`, message: "not today" });
      };
    });
    const problem = 'Writing the status of Coordinator "default" failed: not today';
    await until("the problem is told", () => controller.problems("networks").includes(problem));
    await world.expectStatus({ serviceCIDR: world.services });
    await until("the problem has gone", () => !controller.problems("networks").includes(problem));
  });

  it("is left alone by one who leads no more", async () => {
    const controller = await world.start();
    await world.expectStatus({ serviceCIDR: world.services });
    controller.resign();
    controller.api.takeWrites();
    await world.kubeadm("networking: {podSubnet: 10.244.0.0/16}");
    // The next one sees the same change, and writes: by then the first would have.
    const next = await world.start();
    await world.expectStatus({ phase: "Synced", overlayPodCIDR: ["10.244.0.0/16"] });
    expect(controller.api.takeWrites()).toEqual([]);
    expect(next.api.takeWrites()).toEqual(["PATCH"]);
  });
});
