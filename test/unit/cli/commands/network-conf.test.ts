import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { formatNetwork } from "../../../../host/cli/commands/network-conf.ts";
import { SUPPORTED_VERSIONS } from "../../../../host/cni/version.ts";
import { COORDINATOR_FLAGS, FlagError, type NetworkFlags } from "../../../../host/config/network-flags.ts";

const DEFAULTS = { cniVersion: "1.0.0", coordinator: true, settings: {} };
type Row = Omit<NetworkFlags, keyof typeof DEFAULTS> & Partial<NetworkFlags>;

function check(flags: Row, plugins: readonly object[]): void {
  const list = { cniVersion: flags.cniVersion ?? "1.0.0", name: "lan", plugins };
  expect(JSON.parse(formatNetwork("lan", { ...DEFAULTS, ...flags, conflist: true }))).toEqual(list);
}

const BERTH = { type: "berth" };
const COORDINATOR = { type: "coordinator" };
const SETTINGS = {
  ...{ mode: "underlay", tunePodRoutes: "false", detectGateway: "true", podMACPrefix: "0a:1b", hostRuleTable: "600" },
  ...{ hijackCIDR: "10.0.0.0/8,169.254.20.10", serviceCIDR: "[]", detectOptions: '{"onConflict": "next"}' },
};
const READ_SETTINGS = {
  ...{ mode: "underlay", tunePodRoutes: false, detectGateway: true, podMACPrefix: "0a:1b", hostRuleTable: 600 },
  ...{ hijackCIDR: ["10.0.0.0/8", "169.254.20.10"], serviceCIDR: [], detectOptions: { onConflict: "next" } },
};
const BOND = { mode: "active-backup", options: "miimon=100" };
const POOLS = { default_ipv4_ippool: ["a", "b-*"], default_ipv6_ippool: ["six"] };
const macvlan = (master: string) => ({ type: "macvlan", master, mode: "bridge", ipam: BERTH });
it.each<[name: string, flags: Row, ...plugins: object[]]>([
  ["macvlan on an interface", { type: "macvlan", master: ["eth0"] }, macvlan("eth0"), COORDINATOR],
  [
    "ipvlan on a VLAN by ifacer, without the coordinator",
    { type: "ipvlan", master: ["eth0"], vlan: "30", coordinator: false },
    { type: "ifacer", interfaces: ["eth0"], vlanID: 30 },
    { type: "ipvlan", master: "eth0.30", mode: "l2", ipam: BERTH },
  ],
  [
    "a VLAN on a bond of two interfaces, which is active-backup unless told otherwise",
    { type: "macvlan", master: ["eth0", "eth1"], vlan: "30", bondOptions: "miimon=100" },
    { type: "ifacer", interfaces: ["eth0", "eth1"], vlanID: 30, bond: BOND },
    macvlan("vendor_bond0.30"),
    COORDINATOR,
  ],
  [
    "a bridge with pools of both families",
    { type: "bridge", bridge: "cni0", ipv4Pool: ["a", "b-*"], ipv6Pool: ["six"] },
    { type: "bridge", bridge: "cni0", ipam: { ...BERTH, ...POOLS } },
    COORDINATOR,
  ],
  [
    "ptp in CNI 1.1, with an MTU",
    { type: "ptp", cniVersion: "1.1.0", mtu: "9000" },
    { type: "ptp", mtu: 9000, ipam: BERTH },
    COORDINATOR,
  ],
  [
    "settings of the coordinator: text, truth, number, list with commas, JSON",
    { type: "ptp", settings: SETTINGS },
    { type: "ptp", ipam: BERTH },
    { ...COORDINATOR, ...READ_SETTINGS },
  ],
])("makes %s", (_, flags, ...plugins) => check(flags, plugins));

it("makes a NetworkAttachmentDefinition with namespace and the resource of SR-IOV", () => {
  const flags: Row = { type: "sriov", vlan: "30", namespace: "shop", resourceName: "vendor.io/vf" };
  const { spec, ...object } = parse(formatNetwork("fast", { ...DEFAULTS, ...flags }));
  const annotations = { "k8s.v1.cni.cncf.io/resourceName": "vendor.io/vf" };
  const metadata = { name: "fast", namespace: "shop", annotations };
  expect(object).toEqual({ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata });
  const plugins = [{ type: "sriov", vlan: 30, ipam: BERTH }, COORDINATOR];
  expect(JSON.parse(spec.config)).toEqual({ cniVersion: "1.0.0", name: "fast", plugins });
});

const MACVLAN = { type: "macvlan", master: ["eth0"] } as const;
const refused: [flags: Row, text: string][] = [
  [{ type: "macvlan" }, "--master: found nothing, want the node's interface under the pods' NICs"],
  [{ type: "bridge", master: ["eth0"] }, '--master: found ["eth0"], want no master with --type bridge'],
  [{ type: "ptp", bridge: "cni0" }, '--bridge: found "cni0", want --type bridge, not ptp'],
  [{ type: "bridge", vlan: "3" }, '--vlan: found "3", want --type macvlan, ipvlan or sriov, not bridge'],
  [{ ...MACVLAN, vlan: "5000" }, "--vlan: found 5000, want a whole number from 0 to 4094"],
  [{ type: "sriov", vlan: "4095", conflist: true }, '--vlan: found "4095", want a whole number from 0 to 4094'],
  [{ ...MACVLAN, mtu: "9k" }, '--mtu: found "9k", want a whole number from 68 to 65535'],
  [{ type: "sriov", mtu: "9000", conflist: true }, '--mtu: found "9000", want no --type sriov'],
  [{ ...MACVLAN, bondMode: "1" }, '--bond-mode: found "1", want at least two values of --master'],
  [{ ...MACVLAN, master: ["eth0", "eth1"], bondMode: "7" }, '--bond-mode: found "7", want a mode from 0 to 6'],
  [{ ...MACVLAN, master: ["eth0", "eth1"], bondOptions: "mimon=9" }, '--bond-options: found the entry "mimon=9", want'],
  [
    { ...MACVLAN, settings: { detectOptions: '{"window": "1h"}' } },
    "--detectOptions: found a window of 1h, want at most",
  ],
  [
    { ...MACVLAN, settings: { detectGateway: "true", detectOptions: '{"retry": 60, "window": "1s"}' } },
    "--detectOptions: found 60 requests, 1s apart",
  ],
  [{ ...MACVLAN, master: ["eth0", "eth0"] }, '--master: found "eth0", want another interface than entry [0]'],
  [{ ...MACVLAN, master: ["eth0/1"] }, '--master: found "eth0/1", want an interface name'],
  [{ ...MACVLAN, master: ["eth0", "eth1"], vlan: "300" }, "--vlan: found 300, which makes the device name"],
  [{ ...MACVLAN, ipv4Pool: ["Blue"] }, '--ipv4-pool: found "Blue", want a name of lower-case letters'],
  [{ ...MACVLAN, resourceName: "vendor.io/vf" }, '--resource-name: found "vendor.io/vf", want --type sriov'],
  [{ type: "sriov" }, "--resource-name: found nothing, want the resource of the SR-IOV device plugin"],
  [{ type: "sriov", resourceName: "vf" }, '--resource-name: found "vf", want prefix/name'],
  [{ ...MACVLAN, conflist: true, namespace: "shop" }, '--namespace: found "shop", want no --conflist'],
  [{ ...MACVLAN, namespace: "a.b" }, '--namespace: found "a.b", want the name of a namespace'],
  [{ ...MACVLAN, cniVersion: "2.0.0" }, '--cni-version: found "2.0.0", want one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0'],
  [{ ...MACVLAN, settings: { mode: "both" } }, '--coordinator-mode: found "both", want one of "auto"'],
  [
    { ...MACVLAN, settings: { mode: "auto" }, coordinator: false },
    '--coordinator-mode: found "auto", want no --no-coordinator',
  ],
];

it("docs/network.md lists the versions", () => {
  const versions = SUPPORTED_VERSIONS.map((version) => `\`${version}\``).join(", ");
  expect(readFileSync("docs/network.md", "utf8")).toContain(`| \`--cni-version\` | ${versions};`);
});

it.each(refused)("%j is refused: %s", (flags, text) => {
  const format = () => formatNetwork("lan", { ...DEFAULTS, ...flags });
  expect(format).toThrow(FlagError);
  expect(format).toThrow(text);
});

it("refuses a name that is none in Kubernetes", () => {
  expect(() => formatNetwork("Lan", { ...DEFAULTS, ...MACVLAN })).toThrow('NAME: found "Lan"');
});

it("has a flag with a description for every key of the coordinator but aliases", () => {
  expect(COORDINATOR_FLAGS.map(({ key }) => key)).toEqual(
    expect.arrayContaining(["mode", "detectGateway", "podMACPrefix", "hijackCIDR", "logOptions"]),
  );
  for (const { key, description } of COORDINATOR_FLAGS) expect(description, key).not.toBe("");
});
