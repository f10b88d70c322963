/** The decoders of configurations that people and tenants write. */
import { decodeNetConf, pluginKeys } from "../../../host/cni/net-conf.ts";
import { decodePodAnnotations } from "../../../host/config/annotations.ts";
import { decodeCoordinatorConf } from "../../../host/config/coordinator-conf.ts";
import { decodeIfacerConf } from "../../../host/config/ifacer-conf.ts";
import { decodeIpamConf } from "../../../host/config/ipam-conf.ts";
import * as networks from "../../../host/config/network-definition.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";

const selector = { matchLabels: { a: "b" }, matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] };
const metadata = { name: "x", labels: { a: "b" }, annotations: { c: "d" }, ownerReferences: [], uid: "u" };
const addresses = {
  ipVersion: 4,
  subnet: "10.0.0.0/24",
  ips: ["10.0.0.1", "10.0.0.5-10.0.0.9"],
  excludeIPs: ["10.0.0.6"],
  gateway: "10.0.0.254",
  routes: [{ dst: "10.1.0.0/16", gw: "10.0.0.253" }],
  addressSpace: "lab",
};
const coordinator = {
  type: "coordinator",
  mode: "auto",
  tune_mode: "auto",
  podDefaultRouteNic: "net1",
  podMACPrefix: "0a:1b",
  hijackCIDR: ["10.0.0.1"],
  hostRuleTable: 500,
  hostRPFilter: 0,
  detectOptions: { retry: 3, retries: 3, window: "1s" },
  logOptions: { logLevel: "info", logFile: "/var/log/vendor/a" },
};
const object = (kind: string, rest: object, apiVersion = "ipam.vendor.io/v1") => {
  return { apiVersion, kind, metadata, ...rest };
};
const placement = { podAffinity: selector, nodeName: ["n"], multusName: ["a/b"] };
const pool = { ...addresses, ...placement, cooldown: "1s", default: true };
const [ips, routes] = [[{ address: "10.0.0.1/24" }], [{ dst: "::/0" }]];
const prevResult = { interfaces: [{ name: "a" }], ips, routes, dns: {} };
const netConf = {
  ...{ cniVersion: "1.1.0", name: "n", type: "t", prevResult, args: { cni: { ips: ["::1"] } } },
  runtimeConfig: { ips: ["10.0.0.1"], mac: "0a:00:00:00:00:01" },
  "cni.dev/valid-attachments": [{ containerID: "a", ifname: "b" }],
};
const resource = (value: unknown) => decodeManifests(JSON.stringify(value) ?? "null", "x");

/** Its decoder, and a valid value. */
export const subjects: [title: string, decode: (value: unknown) => unknown, valid: object][] = [
  ["IPPool", resource, object("IPPool", { spec: pool })],
  ["Subnet", resource, object("Subnet", { spec: addresses })],
  ["ReservedIP", resource, object("ReservedIP", { spec: { ipVersion: 4, ips: ["10.0.0.1"], addressSpace: "" } })],
  ["Coordinator", resource, object("Coordinator", { spec: { ...coordinator, podCIDRType: "auto" } })],
  ["Pod", resource, object("Pod", { spec: { nodeName: "n" }, status: { phase: "Running" } }, "v1")],
  ["Namespace", resource, object("Namespace", {}, "v1")],
  ["ConfigMap", resource, object("ConfigMap", { data: { "conf.yml": "{}" }, metadata: { name: "vendor-conf" } }, "v1")],
  ["a coordinator entry", (value) => decodeCoordinatorConf(value, "x"), coordinator],
  ["vendor-conf", (value) => decodeVendorConf(value, "x"), { enableIPv4: true, garbageCollection: { grace: "1s" } }],
  ["the ipam object", (value) => decodeIpamConf(value, "x"), { type: "berth", default_ipv4_ippool: ["a", "b*"] }],
  ["a network configuration", (value) => decodeNetConf(JSON.stringify(value) ?? ""), netConf],
];

/** Everything that is asked of a network definition. */
export function readDefinition(text: string): void {
  const { plugins } = networks.decodeAttachedNetwork(text, "n", "x");
  networks.findMac(plugins);
  networks.takesMac(plugins);
  networks.isNicDispensable(plugins);
  networks.losesMainRoutes(plugins);
  networks.findIpamConf(plugins);
  networks.findCoordinatorSettings(plugins);
  for (const { entry, place } of plugins)
    if (entry.type === "ifacer") decodeIfacerConf(pluginKeys({ raw: entry }), place);
}

const ifacer = { type: "ifacer", interfaces: ["e0", "e1"], vlanID: 7, bond: { mode: 2, options: "miimon=1" } };
const macvlan = { type: "macvlan", mac: "0a:00:00:00:00:01", ipam: { type: "berth", default_ipv4_ippool: ["a"] } };
const definition = { name: "n", plugins: [ifacer, macvlan, coordinator, { type: "sbr", capabilities: { mac: true } }] };
subjects.push(["a network definition", (value) => readDefinition(JSON.stringify(value) ?? ""), definition]);

const annotations: [key: string, valid: unknown][] = [
  ["subnet", { ipv4: ["a"], ipv6: ["b"] }],
  ["subnets", [{ interface: "a", ipv4: ["a"] }]],
  ["ippool", { ipv4: ["a*"] }],
  ["ippools", [{ interface: "a", ipv4: ["a"], cleangateway: true }, { interface: "b" }]],
  ["routes", [{ dst: "10.0.0.0/8", gw: "10.0.0.1" }]],
];
for (const [key, valid] of annotations) {
  const decodeText = (value: unknown) =>
    decodePodAnnotations({ [`ipam.vendor.io/${key}`]: JSON.stringify(value) ?? "" });
  subjects.push([`annotation ${key}`, decodeText, valid as object]);
}
