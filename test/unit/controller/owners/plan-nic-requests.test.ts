import { expect, it } from "vitest";
import { isServedByBerth, planNicRequests } from "../../../../host/controller/owners/plan-nic-requests.ts";
import { applySettings, readTemplate } from "../../../../host/controller/owners/tracked-object.ts";
import type { DemandSettings } from "../../../../host/controller/types.ts";
import { messageOf } from "../../../../host/lib/describe.ts";
import { annotationsOf, SETTINGS } from "./workload-objects.ts";

const OURS = ["shop/ours", "shop/more", "net/ours", "kube-system/first"];
const THEIRS = ["kube-system/other", "shop/theirs"];
const providerOf = (name: string) => (OURS.includes(name) ? "berth" : THEIRS.includes(name) ? "foreign" : "unknown");

/** `nic/family subnets` of each, or the fault. */
function requestsOf(annotations: Readonly<Record<string, unknown>>, settings: Partial<DemandSettings>): string[] {
  const template = applySettings(readTemplate("shop", annotationsOf(annotations)), { ...SETTINGS, ...settings });
  if (template.kind === "fault") return [template.message];
  try {
    const requests = planNicRequests(template, { ...SETTINGS, ...settings }, providerOf);
    return requests.map(({ ifName, family, subnets }) => `${ifName}/${family} ${subnets.join()}`);
  } catch (error) {
    return [messageOf(error)];
  }
}

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";
const blue = { subnet: { ipv4: ["blue"] } };
const dual = { enableIPv4: true, enableIPv6: true };
const required = (key: string, field: string, family: 4 | 6) =>
  `annotation "ipam.vendor.io/${key}": field "${field}" is required because enableIPv${family} is true`;
const TWO_NICS = Object.entries({ eth0: "a", net1: "b" }).map(([nic, name]) => ({ interface: nic, ipv4: [name] }));
const EMPTY =
  'annotation "ipam.vendor.io/subnet": field "ipv6": found an empty list, want a list of at least one entry';
const ALLOW = "name both families, or set allowSingleFamily: true in vendor-conf";
const NETS = Array(32).fill("ours").join();
const IN_JSON = { ...blue, [NETWORKS]: [{ name: "ours", namespace: "net" }] };
const TOO_MANY = "found 33 NICs, want at most 32";
const many = (count: number) => Array.from({ length: count }, (_, index) => ({ interface: `n${index}`, ipv4: ["a"] }));
const WITHOUT = [...many(1), { interface: "b" }];

it.each<[what: string, annotations: object, settings: Partial<DemandSettings>, expected: string[]]>([
  ["one family", blue, {}, ["eth0/4 blue"]],
  ["both families", { subnet: { ipv4: ["a", "b"], ipv6: ["c"] } }, dual, ["eth0/4 a,b", "eth0/6 c"]],
  ["a Subnet twice", { subnet: { ipv4: ["a", "b", "a"] } }, {}, ["eth0/4 a,b"]],
  ["a family that is off", { subnet: { ipv4: ["a"], ipv6: ["c"] } }, {}, ["eth0/4 a"]],
  ["null for one", { subnets: [{ interface: "net1", ipv4: ["a"], ipv6: null }] }, {}, ["net1/4 a"]],
  ["an empty list for a family that is on", { subnet: { ipv4: ["a"], ipv6: [] } }, dual, [EMPTY]],
  ["only a family that is off", { subnet: { ipv6: ["c"] } }, {}, [required("subnet", "ipv4", 4)]],
  ["one family of two", blue, dual, [`${required("subnet", "ipv6", 6)}; ${ALLOW}`]],
  ["one family of two where that is allowed", blue, { ...dual, allowSingleFamily: true }, ["eth0/4 blue"]],
  ["another name of the first NIC", blue, { firstNic: "net0" }, ["net0/4 blue"]],
  ["a first NIC of another plugin", blue, { firstNic: undefined }, []],
  ["networks", { ...blue, [NETWORKS]: "ours, net/ours" }, {}, ["eth0/4 blue", "net1/4 blue", "net2/4 blue"]],
  ["a network of another plugin", { ...blue, [NETWORKS]: "theirs, ours" }, {}, ["eth0/4 blue", "net2/4 blue"]],
  ["a network that is not there", { ...blue, [NETWORKS]: "nowhere/ours, more" }, {}, ["eth0/4 blue", "net2/4 blue"]],
  ["a named NIC", { ...blue, [NETWORKS]: "ours@data, more" }, {}, ["eth0/4 blue", "data/4 blue", "net2/4 blue"]],
  ["one NIC named twice", { ...blue, [NETWORKS]: "ours@data, more@data" }, {}, ["eth0/4 blue", "data/4 blue"]],
  ["networks in JSON", IN_JSON, { firstNic: undefined }, ["net1/4 blue"]],
  ["a default network of Berth", { ...blue, [DEFAULT_NETWORK]: "first" }, {}, ["eth0/4 blue"]],
  ["a default network of another plugin", { ...blue, [DEFAULT_NETWORK]: "other" }, {}, []],
  ["a default network that is not there", { ...blue, [DEFAULT_NETWORK]: "nothing" }, {}, []],
  ["subnets", { subnets: TWO_NICS }, {}, ["eth0/4 a", "net1/4 b"]],
  ["subnets beside subnet", { ...blue, subnets: [{ interface: "net1", ipv4: ["b"] }] }, {}, ["net1/4 b"]],
  ["an entry without a family", { subnets: WITHOUT }, {}, [required("subnets", "[1].ipv4", 4)]],
  ["as many NICs as may be", { subnets: many(32) }, {}, many(32).map(({ interface: nic }) => `${nic}/4 a`)],
  ["a NIC too many", { subnets: many(33) }, {}, [`annotation "ipam.vendor.io/subnets": ${TOO_MANY}`]],
  ["a network too many", { ...blue, [NETWORKS]: NETS }, {}, [`annotation "${NETWORKS}": ${TOO_MANY}`]],
])("%s", (_what, annotations, settings, expected) => {
  expect(requestsOf({ ...annotations }, settings)).toEqual(expected);
});

const served = { type: "macvlan", ipam: { type: "berth" } };

it.each<[config: unknown, expected: boolean]>([
  [JSON.stringify(served), true],
  [JSON.stringify({ cniVersion: "1.0.0", name: "x", plugins: [{ type: "tuning" }, served] }), true],
  [JSON.stringify({ ...served, ipam: { type: "host-local" } }), false],
  [JSON.stringify({ type: "macvlan" }), false],
  [JSON.stringify({ ...served, padding: "x".repeat(65_536) }), false],
  // The nodes' own files have it, which the controller cannot read.
  [" \n", true],
  [undefined, true],
  // No pod can be attached by a value that cannot be understood.
  ["{", false],
  [JSON.stringify({ plugins: [] }), false],
  [JSON.stringify({ ...served, ipam: { type: "berth", no_such_key: 1 } }), false],
  [7, false],
])("a network with the configuration %j is Berth's: %s", (config, expected) => {
  expect(isServedByBerth({ metadata: { name: "lan", namespace: "shop" }, spec: { config } })).toBe(expected);
});

it("an object without a name is not Berth's", () => expect(isServedByBerth({ metadata: {} })).toBe(false));

it("an internal error is not taken for a foreign network", () => {
  const definition = { metadata: { name: "lan", namespace: "shop" }, get spec() { return expect.fail("a bug"); } }; // biome-ignore format: a row
  expect(() => isServedByBerth(definition)).toThrow("a bug");
});
