/**
 * Input that is invalid, contradicts itself or is made to do harm: each ends in a finding that names object, field,
 * found and wanted value.
 */
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../../host/config/config-error.ts";
import { isDnsSubdomain } from "../../../../host/config/fields/names.ts";
import { cases } from "../../../../test/world/rows.ts";
import type { ConversionPlan } from "../../conversion-plan.ts";
import { MAX_INPUT_DEPTH } from "../../input.ts";
import { formatManifests, isLossy, planFiles } from "../../output.ts";
import { convertFiles, yaml } from "../convert-files.ts";

/** `level field: found: text` of the findings at these levels. */
function linesOf({ findings }: ConversionPlan, ...levels: string[]): string[] {
  return findings
    .filter(({ level }) => levels.length === 0 || levels.includes(level))
    .map(({ level, object, field, found, text }) => `${level} ${object} ${field}: ${found}: ${text}`);
}

const names = ({ manifests }: ConversionPlan): string[] =>
  manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

const pool = (name: string, spec: object, more: object = {}) => ({
  ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name } },
  ...{ spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.20"], ...spec }, ...more },
});
const whereaboutsPool = (name: string, range: string, allocations: object) => ({
  ...{ apiVersion: "whereabouts.cni.cncf.io/v1alpha1", kind: "IPPool", metadata: { name, namespace: "kube-system" } },
  spec: { range, allocations },
});
const definition = (name: string, config: unknown, namespace = "shop") => ({
  ...{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata: { name, namespace } },
  spec: { config: typeof config === "string" ? config : JSON.stringify(config) },
});
const macvlan = (name: string, ipam: object) => ({ cniVersion: "0.3.1", name, type: "macvlan", master: "eth1", ipam });
const whereabouts = (name: string, ipam: object) => definition(name, macvlan(name, { type: "whereabouts", ...ipam }));

it.each([
  ["in.yaml", "a: [1\n", /file "in.yaml": Malformed YAML: .*line 2/],
  ["in.yaml", "a: 1\na: 2\n", /Malformed YAML: Map keys must be unique/],
  ["in.conf", '{"type": "macvlan"', /file "in.conf": Malformed JSON at line 1, column 19/],
  ["in.conflist", '{"type": 1, "type": 2}', /the key "type" a second time/],
])("a file that cannot be read ends the conversion: %s: %s", (path, text, message) => {
  const run = () => convertFiles("whereabouts", [{ path, text }]);
  expect(run).toThrow(ConfigError);
  expect(run).toThrow(message);
});

const seven = (spec: object, more: object = {}) => pool("bad", { subnet: "10.7.0.0/24", ...spec }, more);
const near = { matchExpressions: [{ key: "a", operator: "Near" }] };
const single = Array.from({ length: 1_025 }, (_, at) => `10.8.${at >> 7}.${(at & 127) * 2}`);

it.each(cases<object>`
  an invalid network ${seven({ subnet: "10.7.0.0/33" })}
    => SpiderIPPool "bad" spec.subnet: "10.7.0.0/33": want a network in CIDR form
  a mapped network ${seven({ subnet: "::ffff:10.7.0.0/120", ips: [] })} => not converted: Berth wants
  a subnet inside of another one ${pool("inner", { subnet: "10.6.0.0/28", ips: [] })}
    => its subnet 10.6.0.0/28 partly overlaps 10.6.0.0/24 of IPPool "good"
  an unknown operator ${seven({ ips: [], nodeAffinity: near })}
    => spec.nodeAffinity.matchExpressions[0].operator: "Near"
  too many ranges ${seven({ subnet: "10.8.0.0/16", ips: single })} => ips has 1025 ranges, want 1024 at most
  a record of addresses that is no JSON ${seven({}, { status: { allocatedIPs: "{" } })}
    => the addresses in use cannot be read
`)("one object that cannot be converted leaves the others: %s", (_title, bad, finding) => {
  const plan = convertFiles("spiderpool", yaml(pool("good", {}), bad));
  expect(linesOf(plan, "problem").join("\n")).toContain(finding);
  expect(names(plan)).toContain("IPPool good");
  expect(isLossy(plan)).toBe(true);
});

describe("parts of an object that Berth would refuse", () => {
  it("are left out, and named", () => {
    const to = (dst: string, gw: string) => ({ dst, gw });
    const [kept, second] = [to("10.1.2.3/16", "10.6.0.2"), to("10.1.0.0/16", "10.6.0.3")];
    const spec = {
      ips: ["10.6.0.10-10.6.0.20", "10.6.0.15-10.6.0.30", "10.5.0.1", "10.6.0.250-10.6.1.7", "x", "10.6.0.9-10.6.0.1"],
      ...{ excludeIPs: ["10.5.0.0/24", "10.6.0.12"], gateway: "10.9.0.1" },
      routes: [kept, second, to("10.2.0.0/16", "10.7.0.1"), to("nowhere", "10.6.0.1")],
    };
    const plan = convertFiles("spiderpool", yaml(pool("p", spec)));
    expect(plan.manifests[0]?.spec).toEqual({
      ...{ subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.30", "10.6.0.250-10.6.0.255"] },
      ...{ excludeIPs: ["10.6.0.12"], routes: [to("10.1.0.0/16", "10.6.0.2")] },
    });
    expect(linesOf(plan)).toEqual([
      'problem SpiderIPPool "p" spec.ips[2]: "10.5.0.1": left out: outside of 10.6.0.0/24',
      'problem SpiderIPPool "p" spec.ips[3]: "10.6.0.250-10.6.1.7": cut to 10.6.0.250-10.6.0.255: the rest is outside of 10.6.0.0/24',
      'problem SpiderIPPool "p" spec.ips[4]: "x": left out: want an address or a range first-last',
      'problem SpiderIPPool "p" spec.ips[5]: "10.6.0.9-10.6.0.1": left out: want an address or a range first-last',
      'problem SpiderIPPool "p" spec.routes[3].dst: "nowhere": left out: want a network in CIDR form',
      `lost SpiderIPPool "p" spec.gateway: "10.9.0.1": Berth's gateways and next hops are inside the subnet, 10.6.0.0/24`,
      'lost SpiderIPPool "p" spec.routes[1]: "10.1.0.0/16": a second route to the same network',
      `lost SpiderIPPool "p" spec.routes[2].gw: "10.7.0.1": Berth's gateways and next hops are inside the subnet, 10.6.0.0/24`,
      'unneeded SpiderIPPool "p" spec.excludeIPs[0]: "10.5.0.0/24": left out: outside of 10.6.0.0/24',
    ]);
  });

  it("a router with a link-local address stays, and addresses that no pod can have are not converted", () => {
    const ranges = { subnet: "fd00:6::/64", ips: ["fd00:6::10"] };
    const six = { ...ranges, gateway: "fe80::1", routes: [{ dst: "fd01::/64", gw: "fe80::2" }] };
    const plan = convertFiles("spiderpool", yaml(pool("six", six), pool("loop", { subnet: "127.10.0.0/24", ips: [] })));
    expect(plan.manifests.map(({ spec }) => spec)).toEqual([six]);
    const problem = 'problem SpiderIPPool "loop" spec.subnet: "127.10.0.0/24": not converted: Berth wants unicast';
    expect(linesOf(plan)).toEqual([expect.stringContaining(problem)]);
  });

  it("a pool without a list of addresses has none, as in Spiderpool", () =>
    expect(convertFiles("spiderpool", yaml(pool("p", { ips: null }))).manifests[0]?.spec.ips).toEqual([]));
});

describe("names", () => {
  it("that Kubernetes refuses are changed, and stay apart", () => {
    const pools = ["Blue_Pool", "blue-pool", "---", "x".repeat(300)].map((name) => pool(name, {}));
    const plan = convertFiles("spiderpool", yaml(...pools));
    expect(plan.manifests.filter(({ metadata }) => !isDnsSubdomain(metadata.name))).toEqual([]);
    expect(new Set(names(plan)).size).toBe(4);
    const named = 'SpiderIPPool "Blue_Pool" metadata.name: "Blue_Pool": named blue-pool';
    expect(linesOf(plan, "changed").join("\n")).toContain(named);
  });

  it("of two objects that differ are a problem, of two equal ones not", () => {
    expect(linesOf(convertFiles("spiderpool", yaml(pool("p", {}), pool("p", {}))))).toEqual([]);
    const plan = convertFiles("spiderpool", yaml(pool("p", {}), pool("p", { disable: true })));
    expect(linesOf(plan)).toEqual([
      'problem SpiderIPPool "p" metadata.name: "p": another object of this name is in file "in.yaml", line 1; that one is converted',
    ]);
    expect(plan.manifests[0]?.spec.disable).toBeUndefined();
  });

  it("of networks make address spaces that stay apart", () => {
    const ranges = ["___", "Far_Side", "far-side", "FAR.SIDE", "a".repeat(80)].map((network_name, at) =>
      whereabouts(`n${at}`, { range: "10.6.0.0/24", network_name }),
    );
    const plan = convertFiles("whereabouts", yaml(...ranges));
    const spaces = plan.manifests.filter(({ kind }) => kind === "IPPool").map(({ spec }) => spec.addressSpace);
    expect(new Set(spaces).size).toBe(5);
    expect(linesOf(plan, "problem")).toEqual([]);
  });

  it("of a workload cannot add lines to a patch, nor leave the directory", () => {
    const workload = (name: string, kind = "Deployment") => ({
      ...{ apiVersion: "apps/v1", kind, metadata: { name, namespace: "shop" } },
      spec: { template: { metadata: { annotations: { "ipam.spidernet.io/ippool": '{"ipv4":["p"],"ipv6":["q"]}' } } } },
    });
    const workloads = [workload("x\nspec: {}"), workload("../../x"), workload("ok"), workload("x", "A\nB")];
    const plan = convertFiles("spiderpool", yaml(...workloads));
    expect(plan.patches.map(({ name }) => name)).toEqual(["ok"]);
    expect(linesOf(plan, "problem")).toHaveLength(2);
    const odd = planFiles(plan).filter(({ path }) => !/^[\w.-]+(?:\/[\w.-]+)*$/.test(path) || path.includes(".."));
    expect(odd).toEqual([]);
  });
});

describe("addresses in use", () => {
  it("by two pods are a problem; both records count once", () => {
    const of = (name: string, pod: string) =>
      pool(name, { ips: [] }, { status: { allocatedIPs: JSON.stringify({ "10.6.0.10": { pod, podUid: "u" } }) } });
    const plan = convertFiles("spiderpool", yaml(of("a", "shop/web-0"), of("b", "shop/web-1")));
    expect(linesOf(plan)).toEqual([
      'problem SpiderIPPool "b" : "10.6.0.10": the address is in use twice: by shop/web-0 and shop/web-1',
    ]);
    const used = { address: "10.6.0.10", addressSpace: "", holder: "shop/web-0", source: 'SpiderIPPool "a"' };
    expect(plan.used).toEqual([used]);
  });

  it("by two containers on two nodes, too", () => {
    const file = (node: string, id: string) => ({ path: `${node}/networks/lan/10.6.0.9`, text: `${id}\r\neth0`, node });
    expect(linesOf(convertFiles("host-local", [file("n1", "c1"), file("n2", "c2")]))).toEqual([
      'problem network "lan" : "10.6.0.9": the address is in use twice: by container c1 eth0 and container c2 eth0',
    ]);
  });

  it("at offsets that whereabouts cannot have are problems", () => {
    const holder = { id: "c", podref: "shop/p" };
    const offsets = { "0": holder, "256": holder, "-1": holder, ["9".repeat(40)]: holder, x: holder };
    const plan = convertFiles("whereabouts", yaml(whereaboutsPool("p", "10.6.0.0/24", offsets)));
    expect(linesOf(plan, "problem")).toHaveLength(4);
    expect(plan.used.map(({ address }) => address)).toEqual(["10.6.0.0"]);
  });

  it("of a block of Calico beyond its network, or without attributes, are problems", () => {
    const spec = { cidr: "10.6.0.0/31", allocations: [0, 5, 0], attributes: [{ handle_id: "h" }], unallocated: [] };
    const block = { apiVersion: "crd.projectcalico.org/v1", kind: "IPAMBlock", metadata: { name: "b" }, spec };
    const plan = convertFiles("calico", yaml(block));
    expect(linesOf(plan, "problem")).toEqual([
      'problem IPAMBlock "b" spec.allocations[1]: 5: want an index below 1, the number of attributes',
      'problem IPAMBlock "b" spec.allocations[2]: 0: outside of 10.6.0.0/31',
    ]);
    expect(plan.used.map(({ address }) => address)).toEqual(["10.6.0.0", "10.6.0.1"]);
  });

  it("are more than a ReservedIP has room for: there are several, and they are the same each time", () => {
    const many = Array.from({ length: 2_500 }, (_, at) => [`${at * 2}`, { id: `c${at}`, podref: `shop/p${at}` }]);
    const pools = yaml(whereaboutsPool("p", "10.6.0.0/16", Object.fromEntries(many)));
    const plan = convertFiles("whereabouts", pools);
    expect(names(plan).slice(0, 3)).toEqual(["", "-2", "-3"].map((end) => `ReservedIP whereabouts-in-use-v4${end}`));
    expect(plan.used).toHaveLength(2_500);
  });

  it("of pods count in a converted pool only; a finished pod has none, nor has one on the host's network", () => {
    const pod = (name: string, ip: string, status: object = {}, spec: object = {}) => ({
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "shop" }, spec },
      status: { phase: "Running", podIPs: [{ ip }], ...status },
    });
    const others = [pod("c", "10.6.0.6", { phase: "Succeeded" }), pod("d", "10.6.0.7", {}, { hostNetwork: true })];
    const pods = [pod("a", "10.6.0.5"), pod("b", "10.9.0.5"), ...others];
    const plan = convertFiles("whereabouts", yaml(whereabouts("lan", { range: "10.6.0.0/24" }), ...pods));
    expect(plan.used.map(({ address, holder }) => `${address} ${holder}`)).toEqual(["10.6.0.5 shop/a"]);
  });
});

describe("pools that the cluster has", () => {
  const metadata = { name: "old", creationTimestamp: "2026-11-20T04:00:00Z" };
  const existing = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata };

  it("are not overlapped in part", () => {
    const plan = convertFiles("spiderpool", yaml(pool("p", {})), [{ ...existing, spec: { subnet: "10.6.0.0/16" } }]);
    expect(names(plan)).toEqual([]);
    expect(linesOf(plan, "problem").join()).toContain('partly overlaps 10.6.0.0/16 of IPPool "old"');
  });

  it("may have the same subnet, or be the ones of an earlier conversion", () => {
    const same = { ...existing, spec: { subnet: "10.6.0.0/24" } };
    const earlier = { ...existing, metadata: { name: "p" }, spec: { subnet: "10.6.0.0/25" } };
    for (const one of [same, earlier])
      expect(names(convertFiles("spiderpool", yaml(pool("p", {})), [one]))).toEqual(["IPPool p"]);
  });
});

describe("network definitions", () => {
  const deep = `{"type":"macvlan","x":${"[".repeat(MAX_INPUT_DEPTH + 1)}${"]".repeat(MAX_INPUT_DEPTH + 1)}}`;
  const config = macvlan("n", { type: "whereabouts", range: "10.6.0.0/24" });
  it.each(cases<object>`
    broken JSON ${definition("n", "{")} => problem NetworkAttachmentDefinition "shop/n" spec.config: … Malformed JSON
    deep nesting ${definition("n", deep)} => deeper nesting: not converted
    no range ${whereabouts("n", {})} => spec.config: "n": not converted: no pool could be made
    a range that is none ${whereabouts("n", { range: "10.6.0.0" })}
      => spec.config.ipam.range: "10.6.0.0": want a network in CIDR form
    ends that are none ${whereabouts("n", { range: "10.6.0.0/24", range_start: "x" })}
      => spec.config.ipam.range_start: "x-": left out
    a gateway of no range's family ${whereabouts("n", { range: "10.6.0.0/24", gateway: "fd00::1" })}
      => lost … spec.config.ipam.gateway: "fd00::1"
    a route of no range's family ${whereabouts("n", { range: "10.6.0.0/24", routes: [{ dst: "fd00::/8" }] })}
      => lost … spec.config.ipam.routes[0].dst: "fd00::/8"
    a name that Kubernetes refuses ${definition("N_1", config)} => metadata: "shop/N_1-berth": not converted
    an old version of CNI ${definition("n", { ...config, cniVersion: "0.2.0" })}
      => changed … spec.config.cniVersion: "0.2.0": written as 0.3.1
    a second plugin with its IPAM ${definition("n", { ...{ cniVersion: "1.0.0", name: "n" }, plugins: [config, config] })}
      => problem … spec.config.plugins[1].ipam: "whereabouts": not converted: want one plugin
    an unknown key ${whereabouts("n", { range: "10.6.0.0/24", colour: "blue" })}
      => lost … spec.config.ipam.colour: "blue": this field is unknown
  `)("with %s", (_title, object, finding) => {
    const lines = linesOf(convertFiles("whereabouts", yaml(object)));
    const parts = finding.split(" … ");
    expect(lines.filter((line) => parts.every((part) => line.includes(part)))).not.toEqual([]);
  });

  it("with the whole of IPv6 as range are no work", () => {
    const used = { "340282366920938463463374607431768211455": { id: "c", podref: "a/b" } };
    const input = yaml(whereabouts("n", { range: "::/0" }), whereaboutsPool("p", "::/0", used));
    const plan = convertFiles("whereabouts", input);
    expect(plan.used.map(({ address }) => address)).toEqual(["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
  });

  it("with one name in two namespaces have two pools, and one pool if the addresses are the same", () => {
    const inNamespace = (namespace: string, range: string) =>
      definition("lan", macvlan("lan", { type: "whereabouts", range }), namespace);
    const two = convertFiles("whereabouts", yaml(inNamespace("a", "10.6.0.0/24"), inNamespace("b", "10.7.0.0/24")));
    const lan = "NetworkAttachmentDefinition lan-berth";
    expect(names(two)).toEqual(["IPPool a-lan-v4", "IPPool b-lan-v4", lan, lan]);
    const one = convertFiles("whereabouts", yaml(inNamespace("a", "10.6.0.0/24"), inNamespace("b", "10.6.0.0/24")));
    expect(names(one)[0]).toBe("IPPool a-lan-v4");
    expect(formatManifests(one.manifests).match(/"a-lan-v4"/g)).toHaveLength(2);
  });
});

describe("a workload keeps its network", () => {
  const workload = {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "shop" } },
    spec: { template: { metadata: { annotations: { "k8s.v1.cni.cncf.io/networks": "lan, far/lan" } } } },
  };
  const ipam = { range: "10.6.0.0/24" };

  it("if the network could not be converted", () =>
    expect(convertFiles("whereabouts", yaml(workload, whereabouts("lan", { range: "x" }))).patches).toEqual([]));

  it("if a network of that name is in another namespace", () => {
    const other = definition("lan", macvlan("lan", { type: "whereabouts", ...ipam }), "elsewhere");
    expect(convertFiles("whereabouts", yaml(workload, other)).patches).toEqual([]);
    const [patch] = convertFiles("whereabouts", yaml(workload, whereabouts("lan", ipam))).patches;
    expect(JSON.stringify(patch?.patch)).toContain('"lan-berth, far/lan"');
  });

  it("if it is a virtual machine, which is named", () => {
    const networks = [{ pod: {} }, ...["lan", "far/lan"].map((networkName) => ({ multus: { networkName } }))];
    const vm = { ...workload, kind: "VirtualMachine", spec: { template: { spec: { networks } } } };
    const text = 'spec.template.spec.networks[1].multus.networkName: "lan": no patch changes it: write lan-berth';
    const lines = linesOf(convertFiles("whereabouts", yaml(vm, whereabouts("lan", ipam))));
    expect(lines).toEqual([`changed VirtualMachine "shop/web" ${text}`]);
  });

  it("if the network is Berth's already", () => {
    const plugins = [macvlan("lan", { type: "berth" }), { type: "coordinator" }];
    const list = { cniVersion: "1.0.0", name: "lan", plugins };
    const plan = convertFiles("spiderpool", yaml(workload, definition("lan", list)));
    expect([names(plan), plan.patches]).toEqual([[], []]);
  });
});

it("whereabouts' records are of the network with the longest name", () => {
  const networks = ["a", "a-b"].map((name) => whereabouts(name, { range: "10.6.0.0/24", network_name: name }));
  const records = ["a-10.6.0.0-24", "a-b-10.6.0.0-24"].map((name, at) =>
    whereaboutsPool(name, "10.6.0.0/24", { [`${at + 5}`]: { id: "c", podref: `shop/p${at}` } }),
  );
  const plan = convertFiles("whereabouts", yaml(...networks, ...records));
  const used = plan.used.map(({ address, addressSpace }) => `${address} ${addressSpace}`);
  expect(used).toEqual(["10.6.0.5 a", "10.6.0.6 a-b"]);
});

it("secrets are not in the report", () => {
  const ipam = { range: "10.6.0.0/24", etcd_password: "swordfish", my_token: "swordfish" };
  const plan = convertFiles("whereabouts", yaml(whereabouts("n", ipam)));
  expect(JSON.stringify(plan)).not.toContain("swordfish");
  const shown = linesOf(plan, "lost", "unneeded").filter((line) => line.includes("a value that is not shown"));
  expect(shown).toHaveLength(2);
});

it("invisible characters are escaped in manifests and report", () => {
  const plan = convertFiles("spiderpool", yaml(pool("p", { "\u202egateway": "\u001b[31m" })));
  const texts = planFiles(plan).map(({ text }) => text);
  expect(texts.join().replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(linesOf(plan, "lost")).toHaveLength(1);
});

it("documents that are no objects are named", () => {
  const plan = convertFiles("spiderpool", [{ path: "values.yaml", text: "replicas: 3\n---\n- 1\n---\njust text\n" }]);
  const fault = "neither an object of Kubernetes with a name nor a network configuration";
  expect(linesOf(plan).map((line) => line.split(": ").at(-1))).toEqual([fault, fault, fault]);
});
