/**
 * Networks of Spiderpool by their type, and settings of its coordinator. The golden conversion has macvlan and sriov.
 */
import { describe, expect, it } from "vitest";
import { cases } from "../../../../test/world/rows.ts";
import { convertFiles, yaml } from "../convert-files.ts";

const object = (kind: string, name: string, spec: object) => ({
  ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind },
  ...{ metadata: { name, ...(kind === "SpiderMultusConfig" ? { namespace: "shop" } : {}) }, spec },
});

const BERTH = { type: "berth", default_ipv4_ippool: ["p"] };
const POOLS = { ippools: { ipv4: ["p"] } };
const COORDINATOR = { type: "berth-coordinator" };

/** Returns the plugins, the annotations and the losses of a SpiderMultusConfig. */
function convertNetwork(spec: object) {
  const { manifests, findings } = convertFiles("spiderpool", yaml(object("SpiderMultusConfig", "lan", spec)));
  const definition = manifests.find(({ kind }) => kind === "NetworkAttachmentDefinition");
  const lost = findings.filter(({ level }) => level === "lost" || level === "problem");
  return {
    plugins: definition && JSON.parse(String(definition.spec.config)).plugins,
    annotations: definition?.metadata.annotations,
    lost: lost.map(({ field, found }) => `${field}: ${found}`),
  };
}

const MACVLAN = { cniType: "macvlan", enableCoordinator: false };
const vlan = (settings: object) => ({
  ...{ cniType: "vlan", vlan: { master: ["eth1"], ...settings }, enableCoordinator: false },
});
const IB = { resourceName: "x/ib", pkey: "0x5", linkState: "enable", rdmaIsolation: true };
const OVS = { vlan: 3, trunk: [{ minID: 2, maxID: 4 }], deviceID: "0000:01:00.1" };
const ifacer = { type: "berth-ifacer", interfaces: ["eth1"], vlanID: 5 };
const bridge = { type: "bridge", ipam: { type: "spiderpool" } };
const custom = JSON.stringify({ cniVersion: "0.3.1", name: "x", plugins: [bridge] });
const PLAIN = { ipam: { type: "berth" } };

/** The losses, after the resource behind "@". */
it.each(cases<[spec: object, ...plugins: object[]]>`
  ipvlan with a VLAN ${[{ cniType: "ipvlan", ipvlan: { master: ["eth1"], vlanID: 5, mtu: 0, ...POOLS } }, ifacer, { type: "ipvlan", master: "eth1.5", ipam: BERTH }, COORDINATOR]} => -
  vlan, whose plugin makes the device ${[vlan({ vlanID: 5, vlanMode: "manual" }), { type: "vlan", master: "eth1", vlanId: 5, ...PLAIN }]} => -
  vlan in mode auto ${[vlan({ vlanMode: "auto", rdmaResourceName: "r" }), { type: "vlan", master: "eth1", ...PLAIN }]}
    => spec.vlan.rdmaResourceName: "r" / spec.vlan.vlanMode: "auto"
  macvlan without IPAM ${[{ ...MACVLAN, macvlan: { master: ["eth1"] }, disableIPAM: true }, { type: "macvlan", master: "eth1", mode: "bridge" }]} => -
  ib-sriov ${[{ cniType: "ib-sriov", ibsriov: IB }, { type: "ib-sriov", pkey: "0x5", link_state: "enable", rdmaIsolation: true, ...PLAIN }, COORDINATOR]}
    => @x/ib
  ipoib ${[{ cniType: "ipoib", ipoib: { master: "ib0", ...POOLS } }, { type: "ipoib", master: "ib0", ipam: BERTH }, COORDINATOR]} => -
  ovs ${[{ cniType: "ovs", ovs: { bridge: "br1", ...OVS } }, { type: "ovs", bridge: "br1", ...OVS, ...PLAIN }, COORDINATOR]}
    => @ovs-cni.network.kubevirt.io/br1
  custom ${[{ cniType: "custom", customCNI: custom }, { type: "bridge", ...PLAIN }]} => -
  several masters without a bond ${[{ cniType: "macvlan", macvlan: { master: ["a", "b"] } }]} => spec.macvlan.bond: nothing
  a type without its settings ${[{ cniType: "ovs" }]} => spec.ovs: nothing
  a type that is none ${[{ cniType: "token-ring" }]} => spec.cniType: "token-ring"
  custom with broken JSON ${[{ cniType: "custom", customCNI: "{" }]} => spec.customCNI: the end of the text
`)("a SpiderMultusConfig: %s", (_title, [spec, ...plugins], told) => {
  const annotations = told.startsWith("@") ? { "k8s.v1.cni.cncf.io/resourceName": told.slice(1) } : undefined;
  const lost = annotations !== undefined || told === "-" ? [] : told.split(" / ");
  expect(convertNetwork(spec)).toEqual({ plugins: plugins.length > 0 ? plugins : undefined, annotations, lost });
});

describe("a SpiderCoordinator", () => {
  const settingsOf = (spec: object) => {
    const { manifests, findings } = convertFiles("spiderpool", yaml(object("SpiderCoordinator", "default", spec)));
    const texts = findings.map(({ level, field, text }) => `${level} ${field}: ${text}`);
    return { spec: manifests[0]?.spec, findings: texts };
  };

  const [TABLE, VETH] = [{ hostRuleTable: 501 }, { vethLinkAddress: "169.254.100.1", vethMTU: 1400 }];
  it.each<[spec: object, converted: object, field?: RegExp]>([
    [{}, TABLE, /hostRuleTable: 501/],
    [{ hostRuleTable: 99 }, { hostRuleTable: 200 }],
    [{ hostRuleTable: 252 }, { hostRuleTable: 256 }],
    [
      { mode: "disabled", txQueueLen: 0, podRPFilter: 0, vethLinkAddress: "" },
      Object.assign({ mode: "disable" }, TABLE),
    ],
    [{ podRPFilter: -5 }, { hostRPFilter: -1, hostRuleTable: 501 }, /changed spec.podRPFilter: hostRPFilter: -1/],
    [VETH, Object.assign({ ...VETH }, TABLE)],
    [{ podDefaultRouteNIC: "", podMACPrefix: "" }, TABLE],
  ])("%j", (spec, converted, field) => {
    const found = settingsOf(spec);
    expect(found.spec).toEqual(converted);
    if (field !== undefined) expect(found.findings.join("\n")).toMatch(field);
  });

  it("of another name has no effect", () => {
    const { manifests, findings } = convertFiles("spiderpool", yaml(object("SpiderCoordinator", "other", {})));
    const problems = findings.map(({ level, field }) => `${level} ${field}`);
    expect([manifests, problems]).toEqual([[], ["problem metadata.name"]]);
  });
});
