/**
 * The Helm chart: API servers of the promised versions and Berth itself accept its objects, for every value. Ports,
 * keys and metrics: chart-ports.test.ts.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { pluginKeys } from "../../../../host/cni/net-conf.ts";
import { decodeCoordinatorConf } from "../../../../host/config/coordinator-conf.ts";
import { decodeIfacerConf } from "../../../../host/config/ifacer-conf.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../../../host/config/network-definition.ts";
import { decodeVendorConf } from "../../../../host/config/vendor-conf.ts";
import { POLICIES } from "../../../../host/controller/policies-controller.ts";
import { FILE_CHECKS, PLATFORMS } from "../../../../host/findings/host/file-checks.ts";
import { tryOr } from "../../../../host/lib/try-or.ts";
import { EPOCH_MAP } from "../../../../host/resources/registry-epoch.ts";
import manifest from "../../../../package.json" with { type: "json" };
import { copyChart, PLAIN_RELEASE, runHelm } from "../../../../scripts/chart/helm.ts";
import { defaultValues } from "../../../../scripts/chart/values.ts";
import { buildChart } from "../../../../scripts/release/chart.ts";
import { KUBERNETES_SCHEMAS, root } from "../../../../scripts/setup/paths.mjs";
import { itLong } from "../../../world/long-cases.ts";
import { cases } from "../../../world/rows.ts";
import { type KubernetesObject, KubernetesSchemas } from "./kubernetes-schemas.ts";
import {
  cleanerOf,
  decode,
  find,
  helm,
  notesOf,
  ODD,
  objectsOf,
  ofHooks,
  ofKind,
  render,
  SETS,
  type SetName,
  setNames,
} from "./rendered.ts";

const valuesSchema = parse(readFileSync(join(root, "deploy/chart/berth/values.schema.json"), "utf8"));

it("helm lint finds nothing", () => {
  expect(helm(["lint", "--strict"], SETS.full.values)).toContain("0 chart(s) failed");
});

const isValid = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(valuesSchema);

it.each<[path: string, values: object]>([
  ["controller.replicas", { controller: { replicas: "2" } }],
  ["platform", { platform: "minikube" }],
  ["agent.hostFiles.0", { agent: { hostFiles: ["/etc/shadow"] } }],
  ["apiServer.host", { apiServer: { host: "https://10.0.0.1" } }],
  ["apiServer.host", { apiServer: { host: "10.0.0.1:6443" } }],
  ["networks.0.master", { networks: [{ name: "a", master: ["eth0", "eth1", "eth0"] }] }],
  ["cni.binDir", { cni: { binDir: "bin" } }],
  ["primary.fileName", { primary: { fileName: "berth.txt" } }],
  ["networks.0.type", { networks: [{ name: "a", type: "vxlan" }] }],
  ["networks.0.name", { networks: [{ type: "ptp" }] }],
  ["ipPools.lan.subnet", { ipPools: { lan: { subnet: "10.6.0.0/33" } } }],
  ["subnets.blue.gateway", { subnets: { blue: { subnet: "10.7.0.0/16", gateway: "10.7.O.1" } } }],
])("the schema of the values refuses %s", (path, values) => {
  expect(isValid(values)).toBe(false);
  const places = (isValid.errors ?? []).map(({ instancePath, params }) =>
    [...instancePath.split("/").slice(1), params.additionalProperty ?? params.missingProperty ?? []].flat().join("."),
  );
  expect(places).toContain(path);
});

it("an upgrade without the hub leaves the cluster its memory of its blocks", () => {
  expect(find(render({ values: {}, release: PLAIN_RELEASE }), "ConfigMap", "berth-address-ranges")).toBeDefined();
});

it("editors have a title for every value, and only other programs' objects are open", () => {
  const [untitled, open] = [[] as string[], [] as string[]];
  const visit = (place: KubernetesObject, path: string): void => {
    for (const [key, value] of Object.entries<KubernetesObject>(place.properties ?? {})) {
      if (value.title === undefined) untitled.push(`${path}.${key}`);
      visit(value, `${path}.${key}`);
    }
    const shared = Object.values<KubernetesObject>(place.definitions ?? {});
    for (const each of [place.items, place.additionalProperties, ...(place.anyOf ?? []), ...shared])
      if (typeof each === "object") visit(each, `${path}[]`);
    const rest = place.additionalProperties;
    const isOpen = typeof rest === "object" && Object.keys(rest).every((key) => key === "title");
    if (place.type === "object" && (rest === undefined || isOpen)) open.push(path);
  };
  visit(valuesSchema, "");
  expect(untitled).toEqual([]);
  expect(open.sort()).toEqual([
    ...[".agent.affinity", ".controller.affinity", ".controller.topologySpreadConstraints[]"],
    ...[".extraObjects[]", ".global", ".networks[].config", ".networks[].plugin"],
    ...[".primary.config", ".primary.plugin", ".serviceMonitor.tlsConfig"],
  ]);
});

const CRDS = readdirSync(join(root, "deploy/crds")).flatMap((file) =>
  decode(readFileSync(join(root, "deploy/crds", file), "utf8")),
);

describe("every object", () => {
  const isOwn = ({ metadata }: KubernetesObject) => !metadata.name.startsWith("extra-");
  const objects = objectsOf("full").filter(isOwn);
  const all = [...objects, ...ofHooks(objects)];

  it("has the recommended labels, and those of the values", () => {
    const recommended = (name: string, more: object = {}): object => {
      const labels = Object.entries({ name, "part-of": "berth", ...more });
      return Object.fromEntries(labels.map(([key, value]) => [`app.kubernetes.io/${key}`, value]));
    };
    const more = { instance: ODD.name, version: manifest.version, "managed-by": "Helm" };
    const own = { "helm.sh/chart": `berth-${manifest.version}`, "example.com/cost": "net" };
    for (const { kind, metadata } of all)
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({ ...recommended("other", more), ...own });
    for (const { metadata } of CRDS) expect(metadata.labels).toMatchObject(recommended("berth"));
  });

  it("that makes pods labels them, too", () => {
    const made = [...ofKind(all, "Pod"), ...all.flatMap(({ spec }) => spec?.template ?? [])].map((pod) => pod.metadata);
    expect(made.map(({ labels }) => labels["example.com/cost"])).toEqual(Array(8).fill("net"));
  });

  it("has the annotations of the values beside its own", () => {
    for (const { kind, metadata } of all)
      expect(metadata.annotations, `${kind} ${metadata.name}`).toMatchObject({ "example.com/owner": "net" });
    expect(find(objects, "Pod", /-uninstall$/).metadata.annotations?.["helm.sh/hook"]).toBe("pre-delete");
  });

  it("selects pods by labels that another version or value leaves as they are", () => {
    for (const { spec } of all.filter(({ kind }) => ["DaemonSet", "Deployment"].includes(kind))) {
      const { metadata } = spec.template;
      expect(Object.keys(spec.selector.matchLabels).sort()).toEqual(
        ["component", "instance", "name"].map((key) => `app.kubernetes.io/${key}`),
      );
      expect(metadata.labels).toMatchObject(spec.selector.matchLabels);
    }
  });

  it("of agents and controllers names the container that kubectl shows", () => {
    for (const kind of ["DaemonSet", "Deployment"]) {
      const { metadata, spec } = find(objects, kind, /./).spec.template;
      const names = spec.containers.map(({ name }: { name: string }) => name);
      expect(names).toContain(metadata.annotations["kubectl.kubernetes.io/default-container"]);
    }
  });

  it("may have others beside it, which know the release", () => {
    expect(find(objectsOf("full"), "ConfigMap", /^extra-/).metadata.name).toBe(`extra-${ODD.name}`);
  });
});

it.each(KUBERNETES_SCHEMAS)("Kubernetes %s knows all fields, and takes their types", (version) => {
  const schemas = new KubernetesSchemas(version);
  // Servers before 1.34 do not describe kinds that they do not serve.
  const isDescribed = ({ kind }: KubernetesObject) =>
    version === KUBERNETES_SCHEMAS.at(-1) || !kind.startsWith("MutatingAdmission");
  for (const name of setNames) {
    const objects = objectsOf(name).filter(isDescribed);
    expect(objects.length).toBeGreaterThan(20);
    expect([...objects, ...ofHooks(objects)].flatMap((object) => schemas.faultsOf(object))).toEqual([]);
  }
  // It would notice.
  const daemonSet = find(objectsOf("plain"), "DaemonSet", "berth-agent");
  const { selector, ...rest } = daemonSet.spec;
  for (const spec of [rest, { ...daemonSet.spec, selectors: selector }])
    expect(schemas.faultsOf({ ...daemonSet, spec }).join()).toContain("selector");
  const pool = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "x" }, spec: { subnett: 1 } };
  expect(schemas.faultsOf(pool).join()).toContain("subnett");
});

it("each refusal of a policy names the found value", () => {
  const validations = ofKind(objectsOf("full"), "ValidatingAdmissionPolicy").flatMap(({ spec }) => spec.validations);
  expect(validations.length).toBeGreaterThan(20);
  for (const { expression, messageExpression = "" } of validations)
    expect(messageExpression, expression).toMatch(/variables\.|object\.|oldObject\.|request\./);
});

describe("another release and namespace", () => {
  const ofUsers = ["Coordinator", "NetworkAttachmentDefinition", "Subnet", "IPPool", "ReservedIP"];
  // All agents and controllers of a cluster find the epoch of its registry, blocks and settings by these names.
  const fixed = [EPOCH_MAP, "berth-address-ranges", "vendor-conf"];
  const objects = objectsOf("full").filter(({ metadata }) => !metadata.name.startsWith("extra-"));
  const text = JSON.stringify(objects);

  it("are in all names, which are short enough", () => {
    const named = objects.filter(({ kind, metadata }) => !ofUsers.includes(kind) && !fixed.includes(metadata.name));
    expect(named.length).toBeGreaterThan(40);
    for (const { metadata } of named) expect(metadata.name).toMatch(/^a-very-long-release-name-of-many-words-t(?:-|$)/);
    const limited = objects.filter(({ kind }) => ["DaemonSet", "Deployment", "Pod"].includes(kind));
    for (const { metadata } of limited) expect(metadata.name.length).toBeLessThan(64);
    expect(objectsOf("ports").map(({ metadata }) => metadata.name)).toContain("odd.one-berth-agent");
  });

  it("are in all that an object says of another", () => {
    const names = objectsOf("plain").map(({ metadata }) => metadata.name);
    const isSaid = (name: string) => new RegExp(`(?<![/\\w])${name}(?![\\w-])`).test(text);
    expect(names.filter((name) => /^berth-./.test(name) && !fixed.includes(name) && isSaid(name))).toEqual([]);
  });

  it("are in the accounts that policies, bindings and the FlowSchema name, and in no other place is kube-system", () => {
    const accounts = objects.filter(({ kind }) => kind === "ServiceAccount").map(({ metadata }) => metadata);
    const users = accounts.map(({ name, namespace }) => `system:serviceaccount:${namespace}:${name}`);
    const named = new Set(text.match(/system:serviceaccount:[\w:-]+/g));
    expect([...named].filter((user) => !users.includes(user))).toEqual([]);
    expect(named.size).toBe(3);
    const policies = objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");
    // Every account may name addresses, only an annotated kind is deleted, and a hub's members are accounts of other
    // clusters.
    const ofAll = /-(?:named-addresses|kinds|range-members)$/;
    const isOfAll = ({ metadata }: (typeof policies)[number]) => ofAll.test(metadata.name);
    const narrow = policies.filter((each) => !isOfAll(each));
    const known = [...POLICIES, "tokens"].sort();
    expect(narrow.map(({ metadata: { name } }) => known.find((end) => name.endsWith(`-${end}`))).sort()).toEqual(known);
    for (const { metadata, spec } of narrow) {
      const [, component] = /-(agent|controller)-\w+$/.exec(metadata.name) ?? [];
      // The others are about all other accounts, and name the exceptions.
      const wanted = users.filter((user) => user.endsWith(`-${component ?? "controller"}`));
      expect(wanted).toHaveLength(1);
      const [condition] = spec.matchConditions;
      for (const user of wanted) expect(condition.expression, metadata.name).toContain(`'${user}'`);
    }
    const subjects = objects.flatMap(({ subjects = [], spec }) => [
      ...subjects,
      ...(spec?.rules ?? []).flatMap((rule: { subjects?: { serviceAccount: object }[] }) =>
        (rule.subjects ?? []).map(({ serviceAccount }) => serviceAccount),
      ),
    ]);
    expect(subjects.length).toBeGreaterThan(6);
    for (const { name, namespace } of subjects.filter(({ name }) => name !== "prometheus-k8s"))
      expect(accounts).toContainEqual(expect.objectContaining({ name, namespace }));
    const inSystem = objects.filter(({ metadata }) => metadata.namespace === "kube-system");
    expect(inSystem.map(({ kind }) => kind)).toEqual(["Role", "RoleBinding"]);
    const others = objects.filter((object) => !inSystem.includes(object));
    // By the UID of this one namespace a hub knows the cluster.
    const rest = JSON.stringify(others).replace('"resources":["namespaces"],"resourceNames":["kube-system"]', "");
    expect(rest.includes("kube-system")).toBe(false);
  });

  it("are where agents and controller look for settings and the Lease", () => {
    const args = (kind: string) => find(objects, kind, /./).spec.template.spec.containers[0].args;
    expect(args("DaemonSet")).toContain("--config-namespace=net-system");
    const controller = find(objects, "Deployment", /./).metadata.name;
    const places = ["--lease-namespace=net-system", "--config-namespace=net-system", `--lease-name=${controller}`];
    expect(args("Deployment")).toEqual(expect.arrayContaining(places));
    const role = objects.find(({ kind, metadata }) => kind === "Role" && metadata.name === controller);
    expect(JSON.stringify(role?.rules)).toContain(`"resourceNames":["${controller}"]`);
  });
});

describe("networks", () => {
  const objects = objectsOf("full");
  const definitions = objects.filter(({ kind }) => kind === "NetworkAttachmentDefinition");
  const configs = new Map(definitions.map(({ metadata, spec }) => [metadata.name, spec.config as string]));

  it("are ones that the agent accepts", () => {
    for (const [name, text] of configs) {
      const { plugins } = decodeAttachedNetwork(text, name, name);
      expect(findIpamConf(plugins)).toBeDefined();
      for (const { entry, place } of plugins) {
        if (entry.type === "berth-ifacer") decodeIfacerConf(pluginKeys({ raw: entry }), place);
        if (entry.type === "berth-coordinator") decodeCoordinatorConf(pluginKeys({ raw: entry }), place);
      }
    }
  });

  const BERTH = { type: "berth" };
  const COORDINATOR = { type: "berth-coordinator" };
  const ifacer = (interfaces: string[], more: object) => ({ type: "berth-ifacer", interfaces, ...more });
  const macvlan = (master: string, ipam: object = {}) => {
    return { type: "macvlan", master, mode: "bridge", ipam: { ...BERTH, ...ipam } };
  };
  const [BOTH, BOND] = [["eth0", "eth1"], { name: "vendor_bnd", mode: 4, options: "miimon=100" }];
  const POOLS = { default_ipv4_ippool: ["lan"], default_ipv6_ippool: ["lan6"] };
  const RR = { vlanID: 99, bond: { name: "vendor_bond0", mode: 0 } };
  const IPVLAN = { type: "ipvlan", master: "eth0.100", mode: "l2", mtu: 1400, ipam: BERTH };
  it.each<[name: string, ...plugins: object[]]>([
    ["plain", macvlan("eth0", POOLS), COORDINATOR],
    ["vlan", ifacer(["eth0"], { vlanID: 100 }), IPVLAN, COORDINATOR],
    ["bond", ifacer(BOTH, { vlanID: 4094, bond: BOND }), macvlan("vendor_bnd.4094"), COORDINATOR],
    ["rr", ifacer(BOTH, RR), macvlan("vendor_bond0.99"), COORDINATOR],
    ["bridge", { type: "bridge", bridge: "br0", vlan: 5, ipam: BERTH }],
    ["vf", { type: "sriov", vlan: 3, ipam: BERTH }, COORDINATOR],
    ["ptp", { type: "ptp", ipam: BERTH }, COORDINATOR],
  ])("%s has its plugins", (name, ...plugins) =>
    expect(JSON.parse(configs.get(name) ?? "{}").plugins).toEqual(plugins),
  );

  it("have namespaces, annotations and versions", () => {
    const metadataOf = (name: string) => find(definitions, "NetworkAttachmentDefinition", name).metadata;
    expect(["vlan", "plain"].map((name) => metadataOf(name).namespace)).toEqual(["shop", "net-system"]);
    const annotations = { "k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov" };
    for (const name of ["vf", "plain"]) expect(metadataOf(name)).toMatchObject({ annotations });
    expect(metadataOf("rr")).toMatchObject({ annotations: { "example.com/a": "b" } });
    const versions = ["bridge", "own"].map((name) => JSON.parse(configs.get(name) ?? "{}").cniVersion);
    expect(versions).toEqual(["1.1.0", "0.4.0"]);
  });

  it.each(cases<object>`
    macvlan needs a master ${{}} => network lan: master is required for type macvlan
    the VLAN of a bond fits ${{ master: ["eth0", "eth1"], vlan: 100 }}
      => network lan: vlan 100 makes the device name "vendor_bond0.100" of 16 characters, want at most 15: set a shorter bond.name
    a VLAN fits ${{ master: ["enp129s0f1np1"], vlan: 10 }}
      => the device name "enp129s0f1np1.10" of 16 characters, want at most 15: rename the master
    a bridge has no master ${{ type: "bridge", master: ["eth0"] }}
      => network lan: type bridge ignores master, which is for macvlan, ipvlan: remove it
    ptp has no VLAN ${{ type: "ptp", vlan: 7 }} => network lan: type ptp ignores vlan, which is for
    the bridge is that of bridge ${{ master: ["eth0"], bridge: "br0" }} => network lan: type macvlan ignores bridge
  `)("as with ifacer: %s", (_, more, message) => {
    const networks = [{ name: "lan", ...more }];
    expect(() => render({ values: { networks }, release: PLAIN_RELEASE })).toThrow(message);
  });

  it("of the primary CNI are in the list that the init container installs", () => {
    expect(JSON.parse(find(objects, "ConfigMap", /-conflist$/).data["05-berth.conflist"])).toMatchObject({
      name: "lan",
      plugins: [{ type: "berth-ifacer" }, { master: "eth0.12" }, { type: "berth-coordinator", detectGateway: true }],
    });
    const [init] = find(objects, "DaemonSet", /./).spec.template.spec.initContainers;
    expect(init.args).toContain("--conflist=/etc/berth/conflist/05-berth.conflist");
    expect(init.args).toContain("--aliases-only");
  });
});

/** Values by their paths, lists and objects without described fields as a whole. */
function leavesOf(values: object, path = ""): Map<string, unknown> {
  const leaves = Object.entries(values).flatMap(([key, value]): [string, unknown][] => {
    const name = path === "" ? key : `${path}.${key}`;
    const isSection =
      typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    const isFree = /resources$|Profile$|Selector$|[lL]abels$|[aA]nnotations$|^settings|spec$|plugin$|^\w+s\.\w+$/.test(
      name,
    );
    return isSection && !isFree ? [...leavesOf(value, name)] : [[name, value]];
  });
  return new Map(leaves);
}

describe("values", () => {
  const all = [...leavesOf(defaultValues()).keys()];
  const sets = [SETS.full, SETS.other];
  const isSet = (name: string) =>
    sets.some(({ values }) => [...leavesOf(values).keys()].some((own) => own === name || own.startsWith(`${name}.`)));

  it("are all in the sets of this test", () => {
    // Fields that primary has in common with networks.
    const missing = all.filter((name) => !isSet(name) && !name.startsWith("primary."));
    expect(missing).toEqual([]);
  });

  /** Returns undefined if Helm refuses to render without the value. */
  const renderWithout = (name: string, { values, release }: (typeof sets)[number]) => {
    const without = structuredClone(values) as Record<string, unknown>;
    const parts = name.split(".");
    const holder = parts.slice(0, -1).reduce((place, part) => place[part] as Record<string, unknown>, without);
    delete holder[parts.at(-1) ?? ""];
    return tryOr(() => render({ values: without, release }), undefined);
  };

  // The map brings metrics along.
  const names = new Set(sets.flatMap(({ values }) => [...leavesOf(values).keys()]));
  itLong.each([...names].filter((name) => !/^metrics.enabled/.test(name)))(
    "%s changes the rendered objects",
    (name) => {
      const having = sets.filter(({ values }) => leavesOf(values).has(name));
      expect(having.some((set) => !isDeepStrictEqual(renderWithout(name, set), render(set)))).toBe(true);
    },
  );

  it("of settings are a vendor-conf that agents accept", () => {
    const { data } = find(objectsOf("full"), "ConfigMap", /^vendor-conf$/);
    expect(decodeVendorConf(parse(data["conf.yml"]), "test").enableIPv6).toBe(false);
  });
});

it("with keepState an uninstallation leaves the objects, and what the cluster knows of its registry and blocks", () => {
  const values = { ...SETS.full.values, uninstall: { keepState: true } };
  const kept = render({ values, release: PLAIN_RELEASE }).filter(
    ({ metadata: { annotations } }) => annotations?.["helm.sh/resource-policy"] === "keep",
  );
  const names = ["berth-address-ranges", EPOCH_MAP, "default", "lan", "routers", "blue"];
  expect(kept.map(({ metadata }) => metadata.name).sort()).toEqual(names.sort());
});

it("the rights include the kinds that retain by name", () => {
  const objects = objectsOf("full");
  const rulesOf = (name: RegExp): string[] =>
    find(objects, "ClusterRole", name)
      .rules.filter(({ apiGroups }: { apiGroups: string[] }) => /kruise|example/.test(String(apiGroups)))
      .map((rule: Record<string, string[]>) => `${rule.apiGroups} ${rule.resources} ${rule.verbs}`);
  expect(rulesOf(/agent$/)).toEqual(["apps.kruise.io statefulsets get", "db.example proxies get"]);
  expect(rulesOf(/controller$/)).toEqual([
    ...["apps.kruise.io statefulsets get,list,watch", "db.example proxies get,list,watch"],
  ]);
});

it("pods are placed, and accounts annotated, as the values say; replicas stay apart, and a mirror has the image", () => {
  const objects = objectsOf("full");
  const { agent, controller, global, image, serviceAccount } = SETS.full.values;
  const podOf = (kind: string) => find(objects, kind, /./).spec.template.spec;
  expect(podOf("DaemonSet").affinity).toEqual(agent.affinity);
  const { podAntiAffinity, ...affinity } = podOf("Deployment").affinity;
  expect(affinity).toEqual(controller.affinity);
  const [{ topologyKey, labelSelector }] = podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  expect(topologyKey).toBe("kubernetes.io/hostname");
  const [spread] = controller.topologySpreadConstraints;
  expect(podOf("Deployment").topologySpreadConstraints).toEqual([{ ...spread, labelSelector }]);
  for (const { spec } of ofHooks(objects)) expect(spec.template.spec.affinity).toEqual(agent.affinity);
  const { nodeSelector } = controller;
  for (const { spec } of ofKind(objects, "Pod"))
    expect(spec).toMatchObject({ affinity: controller.affinity, nodeSelector });
  for (const { metadata } of ofKind(objects, "ServiceAccount"))
    expect(metadata.annotations).toMatchObject(serviceAccount.annotations);
  const images = [...JSON.stringify(objects).matchAll(/"image\\?":\\?"([^"\\]+)/g)].map(([, image]) => image);
  expect(new Set(images)).toEqual(new Set([`${global.imageRegistry}/net/berth@${image.digest}`]));
});

it("a version is the tag of its image, where + is _", () => {
  const objects = render({ values: { image: { tag: "1.2.3-dev.4+5" } }, release: PLAIN_RELEASE });
  expect(JSON.stringify(objects)).toContain('"localhost/berth:1.2.3-dev.4_5"');
});

describe("least privilege", () => {
  const objects = objectsOf("plain");
  const pods = [find(objects, "DaemonSet", /agent/), find(objects, "Deployment", /./), ...ofHooks(objects)];
  const containers = [...pods, ...ofKind(objects, "Pod")].flatMap(({ metadata, spec: { template, ...spec } }) => {
    const pod: KubernetesObject = template?.spec ?? spec;
    const all = [...(pod.initContainers ?? []), ...pod.containers];
    return all.map((container) => ({ ...container, where: `${metadata.name}/${container.name}`, pod }));
  });

  it("demands and limits processor and memory of each container, as the values say", () => {
    const values = defaultValues();
    for (const { where, name, resources } of containers) {
      expect(resources, where).toEqual(Reflect.get(values, name)?.resources ?? values.hooks.resources);
      for (const each of [resources.requests, resources.limits]) expect(Object.keys(each)).toEqual(["cpu", "memory"]);
    }
  });

  it("confines each container", () => {
    expect(containers).toHaveLength(10);
    for (const { where, securityContext, pod } of containers) {
      const { readOnlyRootFilesystem, privileged = false, allowPrivilegeEscalation, capabilities } = securityContext;
      const found = [readOnlyRootFilesystem, privileged, allowPrivilegeEscalation, capabilities.drop];
      expect([...found, pod.hostPID ?? false], where).toEqual([true, false, false, ["ALL"], false]);
    }
  });

  it("capabilities are the agent's and the node cleaner's alone", () => {
    const added = containers.filter(({ securityContext }) => securityContext.capabilities.add);
    expect(added.map(({ where }) => where)).toEqual(["berth-agent/agent", "berth-cleaner/uninstall"]);
    for (const { securityContext } of added)
      expect(securityContext.capabilities.add).toEqual(defaultValues().agent.capabilities);
  });

  it("only containers that work on the node are root", () => {
    const isRoot = ({ securityContext, pod }: (typeof containers)[number]) =>
      (securityContext.runAsUser ?? pod.securityContext?.runAsUser) === 0;
    expect(containers.filter(isRoot).map(({ where }) => where)).toEqual([
      ...["berth-agent/install", "berth-agent/agent", "berth-cleaner/uninstall"],
    ]);
  });
});

const CNI = { confDirectory: "/etc/cni/net.d", binDirectory: "/opt/cni/bin" };
const STANDARD = { ...CNI, netns: "/run/netns", label: undefined };
it.each<[set: SetName, row: object | undefined]>([
  ["plain", {}],
  ["talos", { netns: "/var/run/netns" }],
  ["k3s", PLATFORMS.k3s],
  ["ports", PLATFORMS.microk8s],
  ["other", { ...PLATFORMS.openshift, label: { type: "spc_t" } }],
  // A named directory comes before the platform's.
  ["full", { confDirectory: "/etc/own/net.d", binDirectory: "/usr/lib/cni", label: { type: "own_t" } }],
])("platforms of set %s have their directories in agent, installation and clean-up", (set, row) => {
  const { mark: _, ...wanted } = { mark: "", ...STANDARD, ...row };
  const objects = objectsOf(set);
  const { spec } = find(objects, "DaemonSet", /agent/).spec.template;
  const [agent] = spec.containers;
  const env = (name: string) => agent.env.find((each: KubernetesObject) => each.name === name).value;
  const volume = (name: string) => spec.volumes.find((each: KubernetesObject) => each.name === name).hostPath.path;
  const directories = { confDirectory: env("BERTH_CNI_CONF_DIR"), binDirectory: env("BERTH_CNI_BIN_DIR") };
  const label = spec.securityContext?.seLinuxOptions;
  expect({ ...directories, netns: volume("netns"), label }).toEqual(wanted);
  expect([volume("cni-conf"), volume("cni-bin")]).toEqual([wanted.confDirectory, wanted.binDirectory]);
  expect(agent.args).toContain(`--cni-conf-dir=${wanted.confDirectory}`);
  const cleaner = cleanerOf(objects).spec.template.spec;
  expect(cleaner.securityContext?.seLinuxOptions).toEqual(wanted.label);
  const options = [`--cni-bin-dir=${wanted.binDirectory}`, `--cni-conf-dir=${wanted.confDirectory}`];
  for (const { args } of [spec.initContainers[0], cleaner.initContainers[0]])
    expect(args).toEqual(expect.arrayContaining(options));
});

describe("files of the nodes for doctor", () => {
  const mounts = (set: SetName) => {
    const { spec } = find(objectsOf(set), "DaemonSet", /agent/).spec.template;
    const ofHost = spec.volumes.filter(({ name }: KubernetesObject) => /^host-/.test(String(name)));
    return ofHost.map(({ name, hostPath }: KubernetesObject) => {
      const isOf = (each: KubernetesObject) => each.name === name;
      expect(spec.initContainers[0].volumeMounts.filter(isOf)).toEqual([]);
      return [hostPath, ...spec.containers[0].volumeMounts.filter(isOf)];
    });
  };
  it("are none by default", () => expect(mounts("plain")).toEqual([]));

  it("are those that are named, read-only, and must exist", () => {
    const wanted = [["/etc/systemd/system", "Directory"] as const, ["/etc/nftables.conf", "File"] as const];
    const mount = (name: string, path: string) => ({ name, mountPath: `/host${path}`, readOnly: true });
    expect(mounts("full")).toEqual(wanted.map(([path, type], at) => [{ path, type }, mount(`host-${at}`, path)]));
  });

  it("may be all that doctor reads below /etc and /usr/lib", () => {
    const allowed: string[] = valuesSchema.properties.agent.properties.hostFiles.items.enum;
    const read = FILE_CHECKS.flatMap(({ paths }) => paths).filter((path) => /^\/(?:etc|usr\/lib)\//.test(path));
    const isAllowed = (path: string) => allowed.some((each) => path === each || path.startsWith(`${each}/`));
    expect(read.filter((path) => !isAllowed(path))).toEqual([
      "/usr/lib/systemd/networkd.conf",
      PLATFORMS.openshift?.mark,
    ]);
  });
});

it("NOTES name the next step", () => {
  expect(notesOf("plain")).toContain(`Berth ${manifest.version} is installed`);
  expect(notesOf("plain")).toContain("2. Describe your addresses");
  expect(notesOf("ports")).toContain("k8s.v1.cni.cncf.io/networks: net/lan");
  expect(notesOf("full")).toContain("/etc/own/net.d/05-berth.conflist sorts first");
});

it("the package of a release renders to its plain manifests, and its image has a tag without plus", async () => {
  const facts = { version: "9.9.9-dev.8+0abc", description: "", revision: "", timeSeconds: 1_000_000_000 };
  const [[name, archive = ""] = [], [manifests, text] = []] = await buildChart(facts);
  expect([name, manifests]).toEqual(["berth-9.9.9-dev.8_0abc.tgz", "berth-9.9.9-dev.8_0abc.yaml"]);
  using place = copyChart();
  const path = join(place.directory, "packed.tgz");
  writeFileSync(path, archive);
  const version = KUBERNETES_SCHEMAS.at(-1) ?? "";
  const words = ["--namespace", PLAIN_RELEASE.namespace, "--kube-version", version, "--no-hooks", "--include-crds"];
  const packed = decode(runHelm("template", PLAIN_RELEASE.name, path, ...words));
  const plain = decode(`${text}`);
  const namesOf = (objects: readonly KubernetesObject[]) =>
    objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`).sort();
  expect(namesOf(plain)).toEqual(namesOf(packed));
  const objects = objectsOf("plain").filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === undefined);
  expect(namesOf(plain)).toEqual(namesOf([...CRDS, ...objects]));
  const images = [...`${text}`.matchAll(/image: "(.+)"/g)].map(([, image]) => image);
  expect(new Set(images)).toEqual(new Set(["localhost/berth:9.9.9-dev.8_0abc"]));
  expect(find(plain, "DaemonSet", "berth-agent").metadata.labels?.["app.kubernetes.io/managed-by"]).toBe("kubectl");
});
