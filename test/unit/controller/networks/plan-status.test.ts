import { describe, expect, it } from "vitest";
import { MAX_CIDRS } from "../../../../host/config/coordinator-conf.ts";
import { MAX_WIDE_NETWORKS, type SourceState } from "../../../../host/controller/networks/finding.ts";
import { isStatus, MAX_FINDING_LENGTH, planStatus } from "../../../../host/controller/networks/plan-status.ts";
import type { ControlPlanePod, SourceStates } from "../../../../host/controller/networks/sources.ts";
import { readStatements } from "../../../../host/controller/networks/statement.ts";
import { decodeControlledCoordinator } from "../../../../host/controller/objects.ts";
import { cases } from "../../../world/rows.ts";

const seen = <T>(place: string, ...items: readonly T[]): SourceState<T> => ({
  ...{ place, items, isRead: true, problem: undefined },
});
const unread = <T>(place: string, problem?: string): SourceState<T> => ({ place, items: [], isRead: false, problem });

const service = (name: string, ...texts: string[]) => readStatements(`ServiceCIDR ${name}`, texts);
const pool = (name: string, cidr: string) => readStatements(`Calico's IPPool ${name}`, [cidr]);
const kubeadm = (podSubnet: string, serviceSubnet: string) => ({
  podSubnet: readStatements("kubeadm's podSubnet", [podSubnet]),
  serviceSubnet: readStatements("kubeadm's serviceSubnet", [serviceSubnet]),
});
const controlPlane = (component: string, name: string, clusterCidr: string, serviceRange: string): ControlPlanePod => ({
  component,
  clusterCidr: readStatements(`Pod ${name}, --cluster-cidr`, [clusterCidr]),
  serviceRange: readStatements(`Pod ${name}, --service-cluster-ip-range`, [serviceRange]),
});
const KCM = "kube-controller-manager";
const cilium = (ipam: string, cidr = "") => ({
  ...{ ipam, families: [4 as const], faults: [] },
  pools: readStatements("cilium-config", [cidr]),
});

/** Nothing is there, and all have been asked. */
const NOTHING: SourceStates = {
  serviceCidrs: seen("ServiceCIDR objects"),
  kubeadm: seen("ConfigMap kube-system/kubeadm-config"),
  controlPlane: seen("the control plane's pods"),
  calico: seen("Calico's IPPools"),
  calicoNative: seen("Calico's IPPools (projectcalico.org/v3)"),
  cilium: seen("ConfigMap kube-system/cilium-config"),
  ciliumPools: seen("CiliumPodIPPools"),
  nodes: [],
};

/** Sources that every cluster of today has. */
const SERVICES: SourceStates = {
  ...NOTHING,
  serviceCidrs: seen("ServiceCIDR objects", service("kubernetes", "10.96.0.0/12")),
};

const coordinator = (spec: object = {}, status: object = {}) =>
  decodeControlledCoordinator({
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", spec, status },
    metadata: { name: "default", uid: "u", resourceVersion: "7", generation: 1 },
  });

/** A source without a place has its own one. */
function world(base: SourceStates, changes: Partial<SourceStates>): SourceStates {
  const entries = Object.entries(changes).map(([key, source]) => {
    const own = Object.entries(NOTHING).find(([name]) => name === key)?.[1];
    return [key, "place" in source && source.place === "" ? { ...source, place: own.place } : source];
  });
  return { ...base, ...Object.fromEntries(entries) };
}

const planned = (sources: Partial<SourceStates>, spec: object = {}, status: object = {}) =>
  planStatus(coordinator(spec, status), world(SERVICES, sources));
const plan = (...about: Parameters<typeof planned>) => planned(...about)?.networks;

describe("service networks", () => {
  const services = (sources: Partial<SourceStates>) =>
    planStatus(coordinator({ podCIDRType: "none" }), world(NOTHING, sources))?.networks;
  const [kube, second] = [service("kubernetes", "fd00::/108", "10.96.0.0/12"), service("second", "10.200.0.0/16")];
  const api = (name: string, range: string) => controlPlane("kube-apiserver", name, "", range);
  const kcm = controlPlane(KCM, "kcm", "", "10.2.0.0/16");
  const both = [api("api-1", "10.1.0.0/16,fd00::/108"), api("api-2", "fd00::/108,10.1.0.0/16")];
  /** The networks, and whose they are. */
  it.each(cases<Partial<SourceStates>>`
    of all ServiceCIDRs, in one order ${{ serviceCidrs: seen("", second, kube), kubeadm: seen("", kubeadm("", "10.1.0.0/16")) }}
      => 10.96.0.0/12 10.200.0.0/16 fd00::/108 of ServiceCIDR kubernetes, ServiceCIDR second
    of kubeadm where that kind is unknown ${{ kubeadm: seen("", kubeadm("", "10.96.0.0/12,fd00::/108")), controlPlane: seen("", api("api", "10.1.0.0/16")) }}
      => 10.96.0.0/12 fd00::/108 of kubeadm's serviceSubnet
    of the API server's arguments ${{ controlPlane: seen("", kcm, ...both) }}
      => 10.1.0.0/16 fd00::/108 of Pod api-1, --service-cluster-ip-range, Pod api-2, --service-cluster-ip-range
    of the controller manager's arguments ${{ controlPlane: seen("", api("api", ""), kcm) }}
      => 10.2.0.0/16 of Pod kcm, --service-cluster-ip-range
  `)("%s", (_, sources, wanted) => {
    const [networks = "", place = ""] = wanted.split(" of ");
    expect(services(sources)).toEqual({
      ...{ phase: "Synced", serviceCIDR: networks.split(" "), overlayPodCIDR: [] },
      reason: `serviceCIDR: of ${place}; overlayPodCIDR: none, since podCIDRType is none`,
    });
  });

  it("that no source has: the reason names all sources", () =>
    expect(services({})).toMatchObject({
      ...{ phase: "NotReady", serviceCIDR: [] },
      reason:
        "serviceCIDR: nothing in ServiceCIDR objects, ConfigMap kube-system/kubeadm-config (networking.serviceSubnet), " +
        "pods of kube-apiserver (--service-cluster-ip-range), pods of kube-controller-manager (--service-cluster-ip-range); " +
        "overlayPodCIDR: none, since podCIDRType is none",
    }));

  it("of two API servers that differ are a conflict, which names both", () => {
    const pods = ["10.1.0.0/16", "10.2.0.0/16"].map((range, index) => api(`api-${index}`, range));
    const says = (at: number) => `Pod api-${at}, --service-cluster-ip-range says 10.${at + 1}.0.0/16`;
    expect(services({ controlPlane: seen("", ...pods) })).toMatchObject({
      ...{ phase: "NotReady", reason: expect.stringContaining(`serviceCIDR: ${says(0)}, ${says(1)}`) },
    });
  });

  it("that are malformed are named, and not passed over for another source", () => {
    const status = services({
      serviceCidrs: seen("", service("kubernetes", "10.96.0.0/12", "10.96.0.0/33")),
      kubeadm: seen("", kubeadm("", "10.1.0.0/16")),
    });
    expect(status).toMatchObject({ phase: "NotReady", serviceCIDR: [] });
    expect(status?.reason).toContain(
      'serviceCIDR: ServiceCIDR kubernetes: "10.96.0.0/33" is not a network in CIDR form',
    );
  });
});

describe("pod networks", () => {
  it.each<[type: string, what: string, sources: Partial<SourceStates>, networks: string[], reason: string]>([
    ["auto", "of Calico", { calico: seen("", pool("b", "10.8.0.0/16"), pool("a", "10.7.0.0/16")), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, ["10.7.0.0/16", "10.8.0.0/16"], "of Calico's IPPool a, Calico's IPPool b"], // biome-ignore format: one row
    ["auto", "of Calico in its other group", { calicoNative: seen("", pool("a", "10.7.0.0/16")) }, ["10.7.0.0/16"], "of Calico's IPPool a"], // biome-ignore format: one row
    ["auto", "of Cilium", { cilium: seen("", cilium("cluster-pool", "10.0.0.0/8")), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, ["10.0.0.0/8"], "of cilium-config"], // biome-ignore format: one row
    ["auto", "of kubeadm without either", { kubeadm: seen("", kubeadm("10.244.0.0/16,fd00::/48", "")) }, ["10.244.0.0/16", "fd00::/48"], "of kubeadm's podSubnet"], // biome-ignore format: one row
    ["cluster", "of kubeadm although Calico is there", { calico: seen("", pool("a", "10.7.0.0/16")), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, ["10.244.0.0/16"], "of kubeadm's podSubnet"], // biome-ignore format: one row
    ["cluster", "of the controller manager", { controlPlane: seen("", controlPlane(KCM, "kcm", "10.244.0.0/16", "")), nodes: [{ name: "n1", podCidrs: ["10.9.0.0/24"] }] }, ["10.244.0.0/16"], "of Pod kcm, --cluster-cidr"], // biome-ignore format: one row
    ["cluster", "of the controller manager, whatever other components are told", { controlPlane: seen("", controlPlane("kube-apiserver", "api", "10.9.0.0/16", ""), controlPlane(KCM, "kcm", "10.244.0.0/16", "")) }, ["10.244.0.0/16"], "of Pod kcm, --cluster-cidr"], // biome-ignore format: one row
    ["cluster", "of the nodes, if nothing else", { nodes: [{ name: "n1", podCidrs: ["10.9.0.0/24", "fd00::/64"] }, { name: "n2", podCidrs: ["10.9.1.0/24"] }, { name: "n3", podCidrs: [] }] }, ["10.9.0.0/23", "fd00::/64"], "of the Nodes' own shares (spec.podCIDRs), since no source names the cluster's network"], // biome-ignore format: one row
    ["calico", "of Calico although Cilium is there", { calico: seen("", pool("a", "10.7.0.0/16")), cilium: seen("", cilium("cluster-pool", "10.0.0.0/8")) }, ["10.7.0.0/16"], "of Calico's IPPool a"], // biome-ignore format: one row
    ["cilium", "of the cluster, which Cilium goes by", { cilium: seen("", cilium("kubernetes", "10.0.0.0/8")), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, ["10.244.0.0/16"], "of kubeadm's podSubnet"], // biome-ignore format: one row
    ["cilium", "of Cilium's pools in the families that are on", { cilium: seen("", cilium("multi-pool")), ciliumPools: seen("", [...readStatements("p", ["10.5.0.0/16"]).map((each) => ({ ...each, family: 4 as const })), ...readStatements("p", ["fd00::/64"]).map((each) => ({ ...each, family: 6 as const }))]) }, ["10.5.0.0/16"], "of p"], // biome-ignore format: one row
  ])("%s: %s", (podCIDRType, _, sources, networks, reason) =>
    expect(plan(sources, { podCIDRType })).toEqual({
      ...{ phase: "Synced", overlayPodCIDR: networks, serviceCIDR: ["10.96.0.0/12"] },
      reason: `serviceCIDR: of ServiceCIDR kubernetes; overlayPodCIDR: ${reason}`,
    }),
  );

  it.each<[type: string, what: string, sources: Partial<SourceStates>, reason: string]>([
    ["auto", "nothing at all", {}, "overlayPodCIDR: nothing in Calico's IPPools, Calico's IPPools (projectcalico.org/v3), ConfigMap kube-system/cilium-config, ConfigMap kube-system/kubeadm-config (networking.podSubnet), pods of kube-controller-manager (--cluster-cidr), Nodes (spec.podCIDRs)"], // biome-ignore format: one row
    ["calico", "no Calico", { kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, "overlayPodCIDR: nothing in Calico's IPPools, Calico's IPPools (projectcalico.org/v3)"], // biome-ignore format: one row
    ["cilium", "no Cilium", { kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, "overlayPodCIDR: nothing in ConfigMap kube-system/cilium-config"], // biome-ignore format: one row
    ["auto", "Calico and Cilium", { calico: seen("", pool("a", "10.7.0.0/16")), cilium: seen("", cilium("cluster-pool", "10.0.0.0/8")) }, "overlayPodCIDR: Calico's IPPools and ConfigMap kube-system/cilium-config are both installed; set podCIDRType to the one that counts"], // biome-ignore format: one row
    ["auto", "Cilium without networks, which is not the cluster's", { cilium: seen("", cilium("cluster-pool")), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) }, 'overlayPodCIDR: Cilium with ipam "cluster-pool" names no network: nothing in ConfigMap kube-system/cilium-config (cluster-pool-ipv4-cidr, cluster-pool-ipv6-cidr)'], // biome-ignore format: one row
    ["auto", "Cilium in a cloud", { cilium: seen("", cilium("eni")) }, 'overlayPodCIDR: ConfigMap kube-system/cilium-config: with ipam "eni" pods have no networks of their own; set podCIDRType to none'], // biome-ignore format: one row
    ["auto", "Cilium's settings of another form", { cilium: seen("", { ...cilium(""), faults: ["cilium-config: bad"] }) }, "overlayPodCIDR: cilium-config: bad"], // biome-ignore format: one row
    ["cluster", "controller managers that differ", { controlPlane: seen("", controlPlane(KCM, "a", "10.1.0.0/16", ""), controlPlane(KCM, "b", "10.2.0.0/16", "")) }, "overlayPodCIDR: Pod a, --cluster-cidr says 10.1.0.0/16, Pod b, --cluster-cidr says 10.2.0.0/16"], // biome-ignore format: one row
    ["cluster", "a node's share that is none", { nodes: [{ name: "n1", podCidrs: ["10.9.0.0/24"] }, { name: "n2", podCidrs: ["x"] }] }, 'overlayPodCIDR: Node n2, spec.podCIDRs: "x" is not a network in CIDR form'], // biome-ignore format: one row
    ["cluster", "more wide networks than there may be", { nodes: Array.from({ length: MAX_WIDE_NETWORKS + 1 }, (_, index) => ({ name: `n${index}`, podCidrs: [`10.${4 * index}.0.0/15`] })) }, `overlayPodCIDR: Nodes (spec.podCIDRs): ${MAX_WIDE_NETWORKS + 1} networks wider than /16 (IPv6: /48); at most ${MAX_WIDE_NETWORKS} are allowed`], // biome-ignore format: one row
    ["cluster", "more nodes than a pod may have routes", { nodes: Array.from({ length: MAX_CIDRS + 1 }, (_, index) => ({ name: `n${index}`, podCidrs: [`10.${index >> 7}.${(index & 127) * 2}.0/24`] })) }, `overlayPodCIDR: Nodes (spec.podCIDRs): ${MAX_CIDRS + 1} networks; at most ${MAX_CIDRS} are allowed`], // biome-ignore format: one row
  ])("%s: %s", (podCIDRType, _, sources, reason) =>
    expect(plan(sources, { podCIDRType })).toEqual({
      ...{ phase: "NotReady", overlayPodCIDR: [], serviceCIDR: ["10.96.0.0/12"] },
      reason: `${reason}; serviceCIDR: of ServiceCIDR kubernetes`,
    }),
  );
});

describe("the specification's value", () => {
  it("wins, key by key", () => {
    expect(plan({}, { overlayPodCIDR: ["10.5.0.0/16", "10.6.0.7"] })).toEqual({
      ...{ phase: "Synced", overlayPodCIDR: ["10.5.0.0/16", "10.6.0.7/32"], serviceCIDR: ["10.96.0.0/12"] },
      reason: "serviceCIDR: of ServiceCIDR kubernetes; overlayPodCIDR: as the specification says",
    });
    const spec = { serviceCIDR: ["10.1.0.0/16"], podCIDRType: "none" };
    const synced = { phase: "Synced", serviceCIDR: ["10.1.0.0/16"], overlayPodCIDR: [] };
    expect(plan({ serviceCidrs: unread("ServiceCIDR objects") }, spec)).toMatchObject(synced);
  });

  it("is nothing when the list is empty", () =>
    expect(plan({}, { serviceCIDR: [], podCIDRType: "none" })).toMatchObject({ serviceCIDR: ["10.96.0.0/12"] }));

  it("that cannot be read is the reason, and the known one stays", () =>
    expect(plan({}, { mode: "sideways" }, { serviceCIDR: ["10.1.0.0/16"] })).toEqual({
      ...{ phase: "NotReady", overlayPodCIDR: [], serviceCIDR: ["10.1.0.0/16"] },
      reason: expect.stringContaining('The specification is invalid: field "spec.mode": found "sideways"'),
    }));
});

describe("a source that has not answered", () => {
  it("is waited for, also when one after it has", () => {
    const seenKubeadm = seen("", kubeadm("10.244.0.0/16", "10.1.0.0/16"));
    expect(plan({ serviceCidrs: unread("ServiceCIDR objects"), kubeadm: seenKubeadm })).toBeUndefined();
    expect(plan({ calico: unread("Calico's IPPools"), kubeadm: seenKubeadm })).toBeUndefined();
    expect(plan({ cilium: unread("cilium-config"), calico: seen("", pool("a", "10.7.0.0/16")) })).toBeUndefined();
    const seenCilium = seen("", cilium("cluster-pool", "10.0.0.0/8"));
    expect(plan({ calico: unread("Calico's IPPools"), cilium: seenCilium })).toBeUndefined();
  });

  it("is not waited for when it is not needed", () => {
    const found = { calico: unread<never>("Calico's IPPools"), kubeadm: seen("", kubeadm("10.244.0.0/16", "")) };
    const own = { ciliumPools: unread<never>("pools"), cilium: seen("", cilium("cluster-pool", "10.0.0.0/8")) };
    expect([plan(found, { podCIDRType: "cluster" })?.phase, plan(own)?.phase]).toEqual(["Synced", "Synced"]);
  });

  it("is named with its problem if it cannot be read; the value found before stays", () => {
    const before = { phase: "Synced", serviceCIDR: ["10.1.0.0/16"], overlayPodCIDR: ["10.2.0.0/16"], reason: "" };
    const sources = {
      serviceCidrs: unread<never>("ServiceCIDR objects", "Forbidden"),
      calico: seen("", pool("a", "nonsense")),
    };
    expect(plan(sources, {}, before)).toEqual({
      ...{ phase: "NotReady", serviceCIDR: ["10.1.0.0/16"], overlayPodCIDR: ["10.2.0.0/16"] },
      reason:
        "serviceCIDR: ServiceCIDR objects cannot be read: Forbidden; " +
        'overlayPodCIDR: Calico\'s IPPool a: "nonsense" is not a network in CIDR form',
    });
  });

  it("keeps nothing of a status that was edited and is invalid", () => {
    const sources = { serviceCidrs: unread<never>("ServiceCIDR objects", "Forbidden") };
    for (const serviceCIDR of [["10.1.0.0/16", "x"], ["10.1.0.0/16", 7], 3])
      expect(plan(sources, {}, { serviceCIDR })).toMatchObject({ serviceCIDR: [] });
  });
});

const OWN = { kubeadm: seen("", kubeadm("10.244.0.0/16", "")) };

it.each<[what: string, sources: Partial<SourceStates>, spec: object, ready: object]>([
  ["true with the networks' sources", OWN, {}, { isTrue: true, reason: "Synced" }],
  ["false until a source can be read", { calico: unread("x", "no") }, {}, { reason: "SourceUnread", isPassing: true }],
  ["false until the networks that no source has are named", {}, {}, { reason: "NetworksUnknown", isPassing: false }],
  ["false for both reasons", { serviceCidrs: unread("x", "no") }, {}, { reason: "NetworksUnknown", isPassing: false }],
  ["false with the fault", {}, { mode: "x" }, { reason: "InvalidSpecification", isPassing: false }],
])("the condition Ready is %s", (_, sources, spec, wanted) => {
  const { networks, ready } = planned(sources, spec) ?? expect.unreachable();
  expect(ready).toMatchObject({ type: "Ready", isTrue: false, ...wanted, message: networks.reason });
});

it("networks found before go when all sources say that there are none", () => {
  const before = { phase: "Synced", serviceCIDR: ["10.96.0.0/12"], overlayPodCIDR: ["10.2.0.0/16"], reason: "" };
  expect(plan({}, {}, before)).toMatchObject({ phase: "NotReady", overlayPodCIDR: [] });
});

it("the reason fits into the status whatever it is about", () => {
  const status = plan({
    serviceCidrs: unread("ServiceCIDR objects", "\ud83d\ude00".repeat(2_000)),
    calico: unread("Calico's IPPools", "y".repeat(2_000)),
  });
  expect([...(status?.reason ?? "")].length).toBeLessThanOrEqual(1_024);
  expect(status?.reason.isWellFormed()).toBe(true);
  expect(status?.reason).toContain(`${"y".repeat(MAX_FINDING_LENGTH - 100)}`);
});

it("a status that says it already is not written again", () => {
  const planned = plan(OWN);
  if (planned === undefined) return expect.unreachable();
  expect(isStatus(coordinator({}, planned), planned)).toBe(true);
  expect(isStatus(coordinator({}, { ...planned, reason: "" }), planned)).toBe(false);
  expect(isStatus(coordinator({}, { ...planned, serviceCIDR: [] }), planned)).toBe(false);
  expect(isStatus(coordinator(), planned)).toBe(false);
});
