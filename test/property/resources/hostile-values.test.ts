/**
 * Whatever value stands wherever in a configuration: it is accepted or refused by the decoder's own error,
 * never by a crash inside a rule that took the value for granted.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { decodeNetConf } from "../../../host/cni/net-conf.ts";
import { decodeNamespaceAnnotations, decodePodAnnotations } from "../../../host/config/annotations.ts";
import { ConfigError } from "../../../host/config/config-error.ts";
import { decodeCoordinatorConf } from "../../../host/config/coordinator-conf.ts";
import { decodeIpamConf } from "../../../host/config/ipam-conf.ts";
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

const subjects: [title: string, decode: (value: unknown) => unknown, valid: object][] = [
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

type Path = readonly (string | number)[];

/** The paths of all values inside `value`, itself first. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...inner.flatMap(([key, child]) => pathsOf(child, [...path, key]))];
}

/** A copy of `value` with `patch` at the path. */
function replaceAt(value: unknown, [step, ...rest]: Path, patch: unknown): unknown {
  if (step === undefined) return patch;
  const inner = value as Record<string | number, unknown>;
  const child = replaceAt(inner[step], rest, patch);
  return Array.isArray(value) ? value.with(Number(step), child) : { ...inner, [step]: child };
}

const telling = fc.constantFrom<unknown[]>(
  ...[undefined, null, true, -1, 0, 4, 6, 1.5, 1e300, [], {}, [[]], [null]],
  ...["", " ", "a", "a".repeat(100), "a".repeat(300), "__proto__", "[", "1s", "\u0000"],
  ...["10.0.0.1", "fd00::1", "10.0.0.1-fd00::1", "10.0.0.9-10.0.0.1", "0.0.0.0/0", "::/0"],
);
const hostile = fc.oneof(telling, fc.jsonValue(), fc.array(telling), fc.dictionary(fc.string(), telling));

function accepts(decode: (value: unknown) => unknown, value: unknown): boolean {
  try {
    decode(value);
    return true;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof CniError) return false;
    throw error;
  }
}

describe.each(subjects)("%s", (_title, decode, valid) => {
  it("is accepted when it is right", () => {
    expect(accepts(decode, valid)).toBe(true);
  });
  it("is never a crash when two of its values are replaced", () => {
    const paths = fc.constantFrom(...pathsOf(valid));
    fc.assert(
      fc.property(paths, hostile, paths, hostile, (path, patch, otherPath, otherPatch) => {
        const once = replaceAt(valid, path, patch);
        const reachable = pathsOf(once).some((inner) => inner.join("\n") === otherPath.join("\n"));
        accepts(decode, reachable ? replaceAt(once, otherPath, otherPatch) : once);
      }),
      { numRuns: 1_000 },
    );
  });
});

it("any text is a manifest or refused", () => {
  const piece = fc.constantFrom("---\n", "kind: Pod\n", "*a", "&a ", ...'a: \n\t-[{]}"#!|');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      accepts((text) => decodeManifests(String(text), "x"), pieces.join(""));
    }),
    { numRuns: 2_000 },
  );
});

it("any annotations are accepted or refused", () => {
  const key = fc.oneof(
    fc.constantFrom("ippool", "default-ipv4-ippool", "default-route-nic", "ippool-ip-number"),
    fc.string(),
  );
  const some = fc.dictionary(
    key.map((name) => `ipam.vendor.io/${name}`),
    fc.oneof(fc.string(), fc.json()),
  );
  fc.assert(
    fc.property(some, fc.string(), (own, networks) => {
      accepts(() => decodePodAnnotations({ ...own, "k8s.v1.cni.cncf.io/networks": networks }), undefined);
      accepts(() => decodeNamespaceAnnotations(own), undefined);
    }),
  );
});
