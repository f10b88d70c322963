import { describe, expect, it } from "vitest";
import { type CachedDefinition, decodeCachedDefinition } from "../../../../host/agent/cluster/cached-definition.ts";
import { announce, ClusterDefinitions } from "../../../../host/agent/cluster/networks.ts";
import type { NodeNetwork } from "../../../../host/agent/request/definitions.ts";
import { decodePodAnnotations } from "../../../../host/config/annotations.ts";
import { findCoordinatorSettings } from "../../../../host/config/network-definition.ts";
import { decodeManifests } from "../../../../host/resources/manifest.ts";
import { assembleSnapshot } from "../../../../host/resources/snapshot.ts";
import { cases } from "../../../world/rows.ts";

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";

const MACVLAN = { type: "macvlan", master: "eth1", ipam: { type: "berth", default_ipv4_ippool: ["blue"] } };

function nodeNetwork(name: string, plugins: readonly object[], file = `${name}.conflist`): NodeNetwork {
  const placed = plugins.map((entry) => ({ entry: { type: "", ...entry }, place: `file "${file}"` }));
  return { name, path: `/etc/cni/net.d/${file}`, plugins: placed, coordinator: findCoordinatorSettings(placed) };
}

const LAN = nodeNetwork("lan", [MACVLAN, { type: "coordinator", mode: "underlay" }], "10-lan.conflist");

function attachment(place: string, config: object | string): [string, CachedDefinition] {
  const [namespace = "", name = ""] = place.split("/");
  const text = typeof config === "string" ? config : JSON.stringify(config);
  const object = { kind: "NetworkAttachmentDefinition", metadata: { namespace, name }, spec: { config: text } };
  return [place, decodeCachedDefinition(object)];
}

interface Cluster {
  readonly node?: readonly NodeNetwork[];
  readonly attachments?: readonly [string, CachedDefinition][];
  readonly coordinator?: object;
}

function definitionsOf({ node = [LAN], attachments = [], coordinator }: Cluster): ClusterDefinitions {
  const manifest = {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" } },
    spec: coordinator ?? {},
  };
  const resources = decodeManifests(JSON.stringify(manifest), "test");
  const snapshot = assembleSnapshot([{ source: "test", resources: coordinator === undefined ? [] : resources }]);
  return new ClusterDefinitions({
    node: { networks: node, find: (network) => node.find(({ name }) => name === network), problems: [] },
    resources: { attachments: new Map(attachments), snapshot },
  });
}

function podOf(annotations: Record<string, string>) {
  return { ...{ namespace: "shop", name: "web-0", labels: {} }, annotations: decodePodAnnotations(annotations) };
}

/** `eth0 lan of shop/lan berth blue asks`: NIC, network, its definition, the IPAM with its pools, whether it asks. */
function nicsOf(annotations: Record<string, string>, cluster: Cluster): string {
  const nics = definitionsOf(cluster).nicsOf(podOf(annotations));
  const texts = nics.map((nic) => {
    const { ifName, network, ipamConf, isAsking } = announce(nic);
    const { attachment } = nic;
    const ipam = ipamConf && [ipamConf.type, ...(ipamConf.default_ipv4_ippool ?? [])].join(" ");
    const words = [ifName, network, attachment && `of ${attachment}`, ipam, isAsking && "asks"];
    return words.filter(Boolean).join(" ");
  });
  return texts.join(", ");
}

const GREEN = attachment("shop/green", { cniVersion: "1.0.0", name: "inner", plugins: [MACVLAN] });
const FOREIGN = attachment("infra/green", { cniVersion: "1.0.0", ...MACVLAN, ipam: { type: "host-local" } });

describe("the NICs of a pod", () => {
  const both = [GREEN, FOREIGN];
  const core = attachment("kube-system/core", { type: "ipvlan", ipam: { type: "berth" } });
  const json = JSON.stringify([
    { name: "green", namespace: "infra" },
    { name: "green", interface: "data", ips: ["10.6.0.9"] },
  ]);
  const bad = { ...MACVLAN, ipam: { type: "berth", default_ipv4_ippool: [] } };
  const lanOf = (...plugins: object[]): Cluster => ({ node: [nodeNetwork("lan", plugins)] });
  it.each(cases<[annotations: Record<string, string>, cluster: Cluster]>`
    is one without annotations: on the node's first network ${[{}, { node: [LAN, nodeNetwork("other", [])] }]}
      => eth0 lan berth blue
    none is known of a node without definitions ${[{}, { node: [] }]} => eth0
    the comma list: names of the pod's own namespace and of others, with and without interface ${[{ [NETWORKS]: "green, infra/green@lan7" }, { attachments: both }]}
      => eth0 lan berth blue, net1 inner of shop/green berth blue, lan7 green of infra/green
    the JSON list ${[{ [NETWORKS]: json }, { attachments: both }]}
      => eth0 lan berth blue, net1 green of infra/green, data inner of shop/green berth blue asks
    a default network replaces the node's ${[{ [DEFAULT_NETWORK]: "shop/green" }, { attachments: both }]}
      => eth0 inner of shop/green berth blue
    a default network without a namespace is the meta plugin's ${[{ [DEFAULT_NETWORK]: "core" }, { attachments: [core] }]}
      => eth0 core of kube-system/core berth
    a definition without text means the node's network of its name ${[{ [NETWORKS]: "lan" }, { attachments: [attachment("shop/lan", "")] }]}
      => eth0 lan berth blue, net1 lan of shop/lan berth blue
    an ipam object that the ADD will refuse claims nothing ${[{}, lanOf(bad)]} => eth0 lan
    Berth may stand behind any plugin of the list ${[{}, lanOf({ type: "ifacer" }, MACVLAN)]} => eth0 lan berth blue
    addresses in the arguments of a plugin are asked for by name ${[{}, lanOf({ ...MACVLAN, args: { cni: { ips: ["10.6.0.9"] } } })]}
      => eth0 lan berth blue asks
  `)("%s", (_what, [annotations, cluster], nics) => expect(nicsOf(annotations, cluster)).toBe(nics));

  it("of a definition that is larger than is used is not known, nor taken from the node's own files, and the definition is named", () => {
    const text = JSON.stringify({ ...MACVLAN, name: "lan", padding: "x".repeat(65_536) });
    const definitions = definitionsOf({ attachments: [attachment("shop/lan", text)] });
    expect(definitions.attached("shop", "lan")).toBeUndefined();
    const why =
      /^NetworkAttachmentDefinition "shop\/lan" cannot be used: spec\.config has 65\d{3} bytes, want at most 65536$/;
    expect(definitions.problems).toEqual([expect.stringMatching(why)]);
  });

  it("a definition that is not there, or not to be understood, has no plugins", () => {
    const attachments = [attachment("shop/bad", "{"), attachment("shop/odd", { name: "x" })];
    expect(nicsOf({ [NETWORKS]: "gone,bad,odd" }, { attachments })).toBe(
      "eth0 lan berth blue, net1 gone of shop/gone, net2 bad of shop/bad, net3 odd of shop/odd",
    );
    const { problems } = definitionsOf({ attachments });
    expect(problems).toEqual([
      expect.stringContaining('NetworkAttachmentDefinition "shop/bad", spec.config: Malformed JSON'),
      expect.stringContaining('NetworkAttachmentDefinition "shop/odd", spec.config: found'),
    ]);
  });
});

describe("a meta plugin on the node", () => {
  const multus = (rest: object) => nodeNetwork("multus", [{ type: "multus", ...rest }], "00-multus.conf");
  const attachments = [attachment("kube-system/core", { name: "core", plugins: [MACVLAN] })];
  it.each<[what: string, rest: object, nic: string]>([
    ["delegates: a list", { delegates: [{ name: "inline", plugins: [MACVLAN] }] }, "eth0 inline berth blue"],
    ["delegates: one plugin", { delegates: [{ name: "single", ...MACVLAN }] }, "eth0 single berth blue"],
    ["clusterNetwork: a definition", { clusterNetwork: "core" }, "eth0 core berth blue"],
    ["clusterNetwork: a network of the node", { clusterNetwork: "lan" }, "eth0 lan berth blue"],
    ["a file, wherever it is", { clusterNetwork: "/host/etc/cni/net.d/10-lan.conflist" }, "eth0 lan berth blue"],
    ["the name of a file", { clusterNetwork: "10-lan.conflist" }, "eth0 lan berth blue"],
    ["nothing: the first network is not known", {}, "eth0"],
    ["a delegate that is none", { delegates: [3] }, "eth0"],
    ["a file that is not there", { clusterNetwork: "/x/20-lan.conflist" }, "eth0"],
  ])("%s", (_what, rest, nic) => expect(nicsOf({}, { node: [multus(rest), LAN], attachments })).toBe(nic));

  it("its namespace is where a default network without one is looked for", () => {
    const node = [multus({ multusNamespace: "net", clusterNetwork: "lan" }), LAN];
    const own = [attachment("net/core", { name: "mine", plugins: [MACVLAN] }), ...attachments];
    expect(nicsOf({ [DEFAULT_NETWORK]: "core" }, { node, attachments: own })).toMatch(/^eth0 mine /);
  });
});

describe("the NIC of a request", () => {
  const chained = (mode: string) => ({ name: "green", plugins: [MACVLAN, { type: "coordinator", mode }] });
  const cluster: Cluster = {
    attachments: [attachment("shop/green", chained("underlay")), attachment("infra/green", chained("overlay"))],
    coordinator: { mode: "disable", hostRuleTable: 700 },
  };
  const pod = podOf({ [NETWORKS]: "green,infra/green" });
  const nic = (ifName: string, network: string, of = pod) => ({ ifName, network, pod: of });

  const namesOf = (of: Cluster, ...[ifName, network, its]: Parameters<typeof nic>) =>
    definitionsOf(of).definitionOf(nic(ifName, network, its)).networkNames;
  const settingsOf = (of: Cluster, ifName: string, network: string) =>
    definitionsOf(of).definitionOf(nic(ifName, network)).settings;
  const ofGreen = podOf({ [NETWORKS]: "green" });

  it("two definitions of one name in two namespaces are not mixed up", () => {
    expect(namesOf(cluster, "net1", "green")).toEqual(["green", "shop/green", "green"]);
    expect(namesOf(cluster, "net2", "green")).toEqual(["green", "infra/green", "green"]);
    expect(settingsOf(cluster, "net1", "green").mode).toBe("underlay");
    expect(settingsOf(cluster, "net2", "green").mode).toBe("overlay");
  });

  it("an interface that nothing announces is told by its network only where that is one", () => {
    expect(namesOf(cluster, "odd0", "green")).toEqual(["green"]);
    expect(namesOf(cluster, "odd0", "green", ofGreen)).toContain("shop/green");
  });

  it("another name inside the text: the definition's names and the inner one mean the network", () =>
    expect(namesOf({ attachments: [GREEN] }, "net1", "inner", ofGreen)).toEqual(["inner", "shop/green", "green"]));

  it("a definition that the watch does not have yet is named by the pod", () =>
    expect(namesOf({}, "net1", "green", ofGreen)).toContain("shop/green"));

  it("a network of the node has its own name, and no namespace", () => {
    expect(namesOf(cluster, "eth0", "lan")).toEqual(["lan"]);
    expect(
      definitionsOf(cluster).definitionOf({ ifName: "eth0", network: "lan", pod: undefined }).networkNames,
    ).toEqual(["lan"]);
  });

  it("the definition wins over the Coordinator, which wins over the defaults", () => {
    expect(settingsOf(cluster, "eth0", "lan")).toMatchObject({ mode: "underlay", hostRuleTable: 700 });
    expect(settingsOf(cluster, "eth0", "none")).toMatchObject({ mode: "disable", hostRuleTable: 700 });
    expect(settingsOf({}, "eth0", "none")).toMatchObject({ mode: "auto", hostRuleTable: 500 });
  });

  it("a coordinator follows, or none does", () => {
    const definitions = definitionsOf({ ...cluster, attachments: [GREEN] });
    expect(definitions.definitionOf(nic("eth0", "lan")).isCoordinated).toBe(true);
    expect(definitions.definitionOf(nic("net1", "inner", ofGreen)).isCoordinated).toBe(false);
  });

  it("a coordinator's entry that it will refuse itself says nothing", () => {
    const wrong = { name: "green", plugins: [MACVLAN, { type: "coordinator", mode: "sideways" }] };
    expect(settingsOf({ attachments: [attachment("shop/green", wrong)] }, "net1", "green").mode).toBe("auto");
  });
});
