/**
 * The Helm chart: what it renders to, for every value, is what API servers of the promised versions and Berth itself
 * accept.
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { FILE_CHECKS, PLATFORMS } from "../../../host/cli/host-checks/file-checks.ts";
import { pluginKeys } from "../../../host/cni/net-conf.ts";
import { decodeCoordinatorConf } from "../../../host/config/coordinator-conf.ts";
import { decodeIfacerConf } from "../../../host/config/ifacer-conf.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../../host/config/network-definition.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { parseListenAddress } from "../../../host/metrics/listen.ts";
import { AGENTS_AUDIENCE } from "../../../host/metrics/scrape-server.ts";
import { EPOCH_MAP } from "../../../host/resources/registry-epoch.ts";
import manifest from "../../../package.json" with { type: "json" };
import { copyChart, PLAIN_RELEASE, type Release, renderChart, runHelm } from "../../../scripts/chart/helm.ts";
import { defaultValues } from "../../../scripts/chart/values.ts";
import { buildChart } from "../../../scripts/release/chart.ts";
import { KUBERNETES_SCHEMAS, root } from "../../../scripts/setup/paths.mjs";
import { itLong } from "../../world/long-cases.ts";
import { type KubernetesObject, KubernetesSchemas } from "./kubernetes-schemas.ts";

const chart = copyChart();
afterAll(() => chart[Symbol.dispose]());

/** Every value with another than its default, in two sets because some exclude each other. */
const FULL: readonly object[] = [
  {
    global: { imageRegistry: "registry.example.com" },
    schedulingGate: { enabled: true },
    hub: { kubeconfigSecret: "hub", member: "east" },
    records: {
      ...{ server: "nautobot", url: "https://ipam.example.com", tokenSecret: "ipam", caSecret: "ipam-ca" },
      ...{ cluster: "east", addresses: true, interval: 30, tag: "pods", domain: "pods.example.com" },
      spaces: { "": "Global", blue: "Blue" },
    },
    nameOverride: "other",
    commonLabels: { "example.com/cost": "net" },
    commonAnnotations: { "example.com/owner": "net" },
    extraObjects: [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "extra-{{ .Release.Name }}" } }],
    image: {
      repository: "registry.example.com/net/berth",
      digest: `sha256:${"0".repeat(64)}`,
      pullPolicy: "Always",
      pullSecrets: [{ name: "registry" }],
    },
    apiServer: { host: "192.0.2.1", port: 7443 },
    platform: "openshift",
    cni: { binDir: "/usr/lib/cni", confDir: "/etc/own/net.d", aliasesOnly: true },
    primary: {
      fileName: "05-berth.conflist",
      name: "lan",
      master: ["eth0"],
      vlan: 12,
      coordinator: { detectGateway: true },
    },
    settings: { enableIPv6: false, allocationCooldown: "1m" },
    subnets: { blue: { subnet: "10.7.0.0/16" } },
    ipPools: { lan: { subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.99"], gateway: "10.6.0.1", default: true } },
    reservedIPs: { routers: { ips: ["10.6.0.2"] } },
    coordinator: { spec: { mode: "auto", podCIDRType: "none" } },
    networks: [
      { name: "plain", master: ["eth0"], ipv4Pools: ["lan"], ipv6Pools: ["lan6"] },
      { name: "vlan", namespace: "shop", type: "ipvlan", master: ["eth0"], vlan: 100, plugin: { mtu: 1400 } },
      { name: "bond", master: ["eth0", "eth1"], bond: { name: "b0", mode: 4, options: "miimon=100" }, vlan: 7 },
      { name: "rr", master: ["eth0", "eth1"], bond: { mode: 0 }, annotations: { "example.com/a": "b" } },
      { name: "bridge", type: "bridge", bridge: "br0", vlan: 5, coordinator: false, cniVersion: "1.1.0" },
      { name: "vf", type: "sriov", resourceName: "intel.com/sriov", vlan: 3 },
      { name: "ptp", type: "ptp" },
      {
        name: "own",
        config: { cniVersion: "0.4.0", name: "own", type: "macvlan", master: "e", ipam: { type: "berth" } },
      },
    ],
    agent: {
      logLevel: "debug",
      annotations: { "example.com/scrape": "no" },
      labels: { team: "net" },
      nodeSelector: { pool: "bare-metal" },
      extraArgs: ["--lock-wait=40"],
      resources: { limits: { memory: "1Gi" } },
      tolerations: [{ key: "only", operator: "Exists" }],
      priorityClassName: "own-priority",
      maxUnavailable: "20%",
      hostPID: true,
      capabilities: ["NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"],
      hostFiles: ["/etc/systemd/system", "/etc/nftables.conf"],
      seccompProfile: { type: "Localhost", localhostProfile: "berth.json" },
    },
    controller: {
      logLevel: "warn",
      annotations: { "example.com/a": "b" },
      labels: { team: "net" },
      nodeSelector: { "node-role.kubernetes.io/control-plane": "" },
      extraArgs: ["--lease-retry=3"],
      replicas: 3,
      resources: { limits: { memory: "2Gi" } },
      tolerations: [],
      priorityClassName: "own-priority",
      hostNetwork: false,
      port: 9999,
    },
    hostAgents: { enabled: true },
    metrics: {
      agentPort: 9001,
      controllerPort: 9002,
      listen: "pod",
      tlsSecret: "own",
      reader: { namespace: "monitoring", serviceAccount: "prometheus-k8s" },
    },
    map: { enabled: true, port: 9003, service: true, hostNames: ["map.example.com"] },
    serviceMonitor: {
      enabled: true,
      labels: { release: "prometheus" },
      interval: "1m",
      tlsConfig: { insecureSkipVerify: false, serverName: "berth-metrics" },
    },
    prometheusRule: {
      enabled: true,
      labels: { release: "prometheus" },
    },
    docs: { url: "https://example.com/berth/" },
    grafanaDashboard: { enabled: true, labels: { grafana: "yes" } },
    prePull: { timeoutSeconds: 90 },
    uninstall: { force: true, timeoutSeconds: 100 },
  },
  {
    fullnameOverride: "net",
    image: { tag: "1.2.3" },
    primary: {
      fileName: "05-berth.conflist",
      config: { cniVersion: "1.0.0", name: "x", plugins: [{ type: "macvlan" }] },
    },
    coordinator: { create: false },
    agent: { privileged: true, seLinuxOptions: { type: "spc_t" } },
    controller: { podDisruptionBudget: false, networkPolicy: false },
    flowSchema: { enabled: false },
    metrics: { enabled: true, controllerTlsSecret: "own", issuerRef: { name: "authority", kind: "ClusterIssuer" } },
    crds: { apply: false, allowDeletion: true },
    prePull: { enabled: false },
    uninstall: { keepState: true },
  },
];

const FACTS = { version: manifest.version, description: "", revision: "", timeSeconds: 1_000_000_000 };
const DEFAULT: Release = { name: "berth", namespace: "default" };
const ODD: Release = { name: "a-very-long-release-name-of-many-words-that-ends-here", namespace: "net-system" };

function write(values: object): string {
  const path = join(chart.directory, "..", `values-${Math.random().toString(36).slice(2)}.json`);
  writeFileSync(path, JSON.stringify(values));
  return path;
}

const decode = (text: string): KubernetesObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((value) => value !== null);

/** Returns all objects, of hooks too. */
function render(values: object = {}, release: Release = PLAIN_RELEASE, version = "1.34.4"): KubernetesObject[] {
  const words = ["--namespace", release.namespace, "--kube-version", version, "--values", write(values)];
  return decode(runHelm("template", release.name, chart.directory, ...words));
}

const find = (objects: readonly KubernetesObject[], kind: string, name: string | RegExp): KubernetesObject => {
  const found = objects.find((each) => each.kind === kind && each.metadata.name.match(name));
  if (found === undefined) throw new Error(`There is no ${kind} ${name}`);
  return found;
};

/** The DaemonSet that is created for the nodes' clean-up. */
const cleanerOf = (objects: readonly KubernetesObject[]): KubernetesObject =>
  JSON.parse(find(objects, "ConfigMap", /-hooks$/).data["cleaner.json"]);

/** The DaemonSets that hooks create. */
function ofHooks(objects: readonly KubernetesObject[]): KubernetesObject[] {
  const puller = find(objects, "ConfigMap", /-hooks$/).data["puller.json"];
  return [cleanerOf(objects), ...(puller ? [JSON.parse(puller)] : [])];
}

describe("helm lint", () => {
  it.each([{}, ...FULL].map((values, index) => [index, values] as const))("finds nothing with set %i", (_, values) => {
    const words = ["--strict", "--kube-version", "1.34.4", "--values", write(values)];
    expect(runHelm("lint", chart.directory, ...words)).toContain("0 chart(s) failed");
  });
});

it.each<[path: string, values: object]>([
  ["settings.enableIPV6", { settings: { enableIPV6: false } }],
  ["settings.garbageCollection.grase", { settings: { garbageCollection: { grase: "1m" } } }],
  ["ipPools.lan.subnett", { ipPools: { lan: { subnet: "10.6.0.0/24", subnett: "10.6.0.0/24" } } }],
  ["ipPools.lan.subnet", { ipPools: { lan: { subnet: "10.6.0.0/33" } } }],
  [
    "ipPools.lan.routes.0.gv",
    { ipPools: { lan: { subnet: "10.6.0.0/24", routes: [{ dst: "10.7.0.0/16", gv: "10.6.0.1" }] } } },
  ],
  ["subnets.blue.gateway", { subnets: { blue: { subnet: "10.7.0.0/16", gateway: "10.7.O.1" } } }],
  ["reservedIPs.routers.ip", { reservedIPs: { routers: { ips: ["10.6.0.2"], ip: "10.6.0.3" } } }],
  ["coordinator.spec.mod", { coordinator: { spec: { mod: "auto" } } }],
  [
    "networks.0.coordinator.detectGatewy",
    { networks: [{ name: "a", type: "ptp", coordinator: { detectGatewy: true } }] },
  ],
  ["agent.tolerations.0.efect", { agent: { tolerations: [{ key: "a", efect: "NoSchedule" }] } }],
])("helm lint refuses %s", (path, values) => {
  const place = path.split(".");
  let message = "";
  try {
    runHelm("lint", chart.directory, "--kube-version", "1.34.4", "--values", write(values));
  } catch (error) {
    message = String((error as { stdout?: string }).stdout);
  }
  for (const word of place.filter((each) => !/^\d$/.test(each))) expect(message, path).toContain(word);
});

it("editors have a title for every value, and only other programs' objects are open", () => {
  const schema = parse(readFileSync(join(chart.directory, "values.schema.json"), "utf8"));
  const [untitled, open] = [[] as string[], [] as string[]];
  const visit = (place: KubernetesObject, path: string): void => {
    for (const [key, value] of Object.entries<KubernetesObject>(place.properties ?? {})) {
      if (value.title === undefined) untitled.push(`${path}.${key}`);
      visit(value, `${path}.${key}`);
    }
    for (const each of [place.items, place.additionalProperties, ...(place.anyOf ?? [])])
      if (typeof each === "object") visit(each, `${path}[]`);
    const rest = place.additionalProperties;
    const isOpen = typeof rest === "object" && Object.keys(rest).every((key) => key === "title");
    if (place.type === "object" && (rest === undefined || isOpen)) open.push(path);
  };
  visit(schema, "");
  expect(untitled).toEqual([]);
  expect(open.sort()).toEqual([
    ...[".extraObjects[]", ".global", ".networks[].config", ".networks[].plugin"],
    ...[".primary.config", ".primary.plugin", ".serviceMonitor.tlsConfig"],
  ]);
});

describe("every object", () => {
  const [values = {}] = FULL;
  const objects = render(values, ODD).filter(({ metadata }) => !metadata.name.startsWith("extra-"));
  const all = [...objects, ...ofHooks(objects)];

  it("has the recommended labels, and those of the values", () => {
    for (const { kind, metadata } of all)
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
        "app.kubernetes.io/name": "other",
        "app.kubernetes.io/instance": ODD.name,
        "app.kubernetes.io/version": manifest.version,
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/part-of": "berth",
        "helm.sh/chart": `berth-${manifest.version}`,
        "example.com/cost": "net",
      });
    const crds = parseAllDocuments(runHelm("show", "crds", chart.directory)).map((document) => document.toJS());
    for (const { metadata } of crds.filter((each) => each !== null))
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/name": "berth",
        "app.kubernetes.io/part-of": "berth",
      });
  });

  it("has the annotations of the values beside its own", () => {
    for (const { kind, metadata } of all)
      expect(metadata.annotations, `${kind} ${metadata.name}`).toMatchObject({ "example.com/owner": "net" });
    expect(find(objects, "Job", /-uninstall$/).metadata.annotations?.["helm.sh/hook"]).toBe("pre-delete");
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
      expect(metadata.labels["example.com/cost"]).toBe("net");
      const names = spec.containers.map(({ name }: { name: string }) => name);
      expect(names).toContain(metadata.annotations["kubectl.kubernetes.io/default-container"]);
    }
  });

  it("may have others beside it, which know the release", () => {
    expect(find(render(values, ODD), "ConfigMap", /^extra-/).metadata.name).toBe(`extra-${ODD.name}`);
  });
});

describe.each(KUBERNETES_SCHEMAS)("for Kubernetes %s", (version) => {
  const schemas = new KubernetesSchemas(version);

  it.each(
    [{}, ...FULL].flatMap((values, index) => [[index, PLAIN_RELEASE, values] as const, [index, ODD, values] as const]),
  )("set %i of %o has only known fields of the right types", (_, release, values) => {
    // Servers before 1.34 do not describe what they do not serve.
    const isDescribed = ({ kind }: KubernetesObject) =>
      version === KUBERNETES_SCHEMAS.at(-1) || !kind.startsWith("MutatingAdmission");
    const objects = render(values, release, version).filter(isDescribed);
    expect(objects.length).toBeGreaterThan(20);
    expect([...objects, ...ofHooks(objects)].flatMap((object) => schemas.faultsOf(object))).toEqual([]);
  });

  it("finds an unknown field, a wrong type and a missing one", () => {
    const daemonSet = find(render(), "DaemonSet", "berth-agent");
    const spec = { ...daemonSet.spec, selectors: {} };
    const faults = schemas.faultsOf({ ...daemonSet, spec });
    expect(faults.join()).toContain('"additionalProperty":"selectors"');
    const { selector: _, ...rest } = daemonSet.spec;
    expect(schemas.faultsOf({ ...daemonSet, spec: rest }).join()).toContain("selector");
    const pool = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "x" }, spec: { subnett: 1 } };
    expect(schemas.faultsOf(pool).join()).toContain("subnett");
  });
});

it("renders the same text twice", () => {
  const args = ["--values", write(FULL[0] ?? {})];
  expect([...renderChart(chart, ODD, ...args)]).toEqual([...renderChart(chart, ODD, ...args)]);
});

describe("another release and namespace", () => {
  const values = { primary: { fileName: "05-b.conflist", master: ["eth0"] }, hostAgents: { enabled: true } };
  const objects = render(values, ODD);
  const text = JSON.stringify(objects);

  it("are in all names, which are short enough", () => {
    const all = objects.filter(({ kind }) => kind !== "Coordinator").map(({ metadata }) => metadata.name);
    // All agents and controllers of a cluster find the epoch of its registry by this name.
    const names = all.filter((name) => name !== EPOCH_MAP);
    for (const name of names) expect(name).toMatch(/^a-very-long-release-name-of-many-words-t-/);
    const named = objects.filter(({ kind }) => ["DaemonSet", "Deployment", "Job"].includes(kind));
    for (const { metadata } of named) expect(metadata.name.length).toBeLessThan(64);
    expect(render({}, { name: "x-berth-y", namespace: "n" }).map(({ metadata }) => metadata.name)).toContain(
      "x-berth-y-agent",
    );
    expect(render({}, { name: "net", namespace: "n" }).map(({ metadata }) => metadata.name)).toContain(
      "net-berth-agent",
    );
  });

  it("are in the accounts that policies, bindings and the FlowSchema name, and in no other place is kube-system", () => {
    const accounts = objects.filter(({ kind }) => kind === "ServiceAccount").map(({ metadata }) => metadata);
    const users = accounts.map(({ name, namespace }) => `system:serviceaccount:${namespace}:${name}`);
    const named = new Set(text.match(/system:serviceaccount:[\w:-]+/g));
    expect([...named].filter((user) => !users.includes(user))).toEqual([]);
    expect(named.size).toBe(2);
    const policies = objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");
    expect(policies.length).toBeGreaterThan(8);
    // The kinds are deleted by nobody without more ado, and a hub's members are accounts of other clusters.
    const isOfAll = ({ metadata }: (typeof policies)[number]) => /-(?:kinds|address-ranges)$/.test(metadata.name);
    for (const { metadata, spec } of policies.filter((each) => !isOfAll(each))) {
      const [, component] = /-(agent|controller)-\w+$/.exec(metadata.name) ?? [];
      // The others are about everyone else: they name whom they leave out.
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
    for (const { name, namespace } of subjects)
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
    expect(args("Deployment")).toEqual(
      expect.arrayContaining([
        "--lease-namespace=net-system",
        "--config-namespace=net-system",
        `--lease-name=${controller}`,
      ]),
    );
    const role = objects.find(({ kind, metadata }) => kind === "Role" && metadata.name === controller);
    expect(JSON.stringify(role?.rules)).toContain(`"resourceNames":["${controller}"]`);
  });

  it("have the same rights and policies as the plain release", () => {
    const rules = (release: Release) =>
      render({}, release)
        .filter(({ kind }) => kind === "ClusterRole" || kind === "ValidatingAdmissionPolicy")
        .map(({ rules, spec }) => rules ?? spec);
    const plain = JSON.stringify(rules(PLAIN_RELEASE));
    const odd = JSON.stringify(rules(ODD));
    const neutral = (value: string, { name, namespace }: Release, full: string) =>
      value
        .replaceAll(EPOCH_MAP, "E")
        // Who manages an EndpointSlice is the product, whatever the release is called.
        .replaceAll(/manager == 'berth'|managed-by=berth/g, "M")
        .replaceAll(full, "X")
        .replaceAll(`:${namespace}:`, ":N:")
        .replaceAll(name, "X");
    expect(neutral(odd, ODD, "a-very-long-release-name-of-many-words-t")).toBe(neutral(plain, PLAIN_RELEASE, "berth"));
  });
});

describe("networks", () => {
  const [values = {}] = FULL;
  const objects = render(values, ODD);
  const definitions = objects.filter(({ kind }) => kind === "NetworkAttachmentDefinition");
  const configs = new Map(definitions.map(({ metadata, spec }) => [metadata.name, spec.config as string]));

  it.each([...configs])("%s is one that the agent accepts", (name, text) => {
    const { plugins } = decodeAttachedNetwork(text, name, name);
    const isOf = (suffix: string) => (each: (typeof plugins)[number]) => each.entry.type === `berth-${suffix}`;
    expect(findIpamConf(plugins)).toBeDefined();
    for (const { entry, place } of plugins.filter(isOf("ifacer"))) decodeIfacerConf(pluginKeys({ raw: entry }), place);
    for (const { entry, place } of plugins.filter(isOf("coordinator")))
      decodeCoordinatorConf(pluginKeys({ raw: entry }), place);
  });

  it.each<[name: string, plugins: object[]]>([
    [
      "plain",
      [
        {
          ...{ type: "macvlan", master: "eth0", mode: "bridge" },
          ipam: { type: "berth", default_ipv4_ippool: ["lan"], default_ipv6_ippool: ["lan6"] },
        },
        { type: "berth-coordinator" },
      ],
    ],
    [
      "vlan",
      [
        { type: "berth-ifacer", interfaces: ["eth0"], vlanID: 100 },
        { type: "ipvlan", master: "eth0.100", mode: "l2", mtu: 1400, ipam: { type: "berth" } },
        { type: "berth-coordinator" },
      ],
    ],
    [
      "bond",
      [
        {
          ...{ type: "berth-ifacer", interfaces: ["eth0", "eth1"], vlanID: 7 },
          bond: { name: "b0", mode: 4, options: "miimon=100" },
        },
        { type: "macvlan", master: "b0.7", mode: "bridge", ipam: { type: "berth" } },
        { type: "berth-coordinator" },
      ],
    ],
    [
      "rr",
      [
        { type: "berth-ifacer", interfaces: ["eth0", "eth1"], bond: { name: "vendor_bond0", mode: 0 } },
        { type: "macvlan", master: "vendor_bond0", mode: "bridge", ipam: { type: "berth" } },
        { type: "berth-coordinator" },
      ],
    ],
    ["bridge", [{ type: "bridge", bridge: "br0", vlan: 5, ipam: { type: "berth" } }]],
    ["vf", [{ type: "sriov", vlan: 3, ipam: { type: "berth" } }, { type: "berth-coordinator" }]],
    ["ptp", [{ type: "ptp", ipam: { type: "berth" } }, { type: "berth-coordinator" }]],
  ])("%s has its plugins", (name, plugins) => {
    expect(JSON.parse(configs.get(name) ?? "{}").plugins).toEqual(plugins);
  });

  it("have namespaces, annotations and versions", () => {
    expect(find(definitions, "NetworkAttachmentDefinition", "vlan").metadata.namespace).toBe("shop");
    expect(find(definitions, "NetworkAttachmentDefinition", "plain").metadata.namespace).toBe("net-system");
    expect(find(definitions, "NetworkAttachmentDefinition", "vf").metadata.annotations).toMatchObject({
      "k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov",
    });
    expect(find(definitions, "NetworkAttachmentDefinition", "rr").metadata.annotations).toMatchObject({
      "example.com/a": "b",
    });
    expect(JSON.parse(configs.get("bridge") ?? "{}").cniVersion).toBe("1.1.0");
    expect(JSON.parse(configs.get("own") ?? "{}").cniVersion).toBe("0.4.0");
  });

  it("need a master for macvlan", () => {
    expect(() => render({ networks: [{ name: "lan" }] })).toThrow("network lan: master is required for type macvlan");
  });

  it("need a bond's name that leaves room for the VLAN ID, as ifacer does", () => {
    const network = { name: "lan", master: ["eth0", "eth1"] };
    expect(() => render({ networks: [{ ...network, vlan: 100 }] })).toThrow(
      'network lan: vlan 100 makes the device name "vendor_bond0.100" of 16 characters, want at most 15: set a shorter bond.name',
    );
    expect(() => render({ networks: [{ name: "lan", master: ["enp129s0f1np1"], vlan: 10 }] })).toThrow(
      'the device name "enp129s0f1np1.10" of 16 characters, want at most 15: rename the master',
    );
    const fits = [
      { ...network, vlan: 99 },
      { ...network, name: "wan", vlan: 4094, bond: { name: "vendor_bnd" } },
    ];
    const configs = fits.map((each) => JSON.stringify(render({ networks: [each] })));
    expect(configs[0]).toContain("vendor_bond0.99");
    expect(configs[1]).toContain("vendor_bnd.4094");
  });

  it("of the primary CNI are in the list that the init container installs", () => {
    const list = find(objects, "ConfigMap", /-conflist$/).data["05-berth.conflist"];
    expect(JSON.parse(list)).toMatchObject({
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
  const isSet = (name: string) =>
    FULL.some((set) => [...leavesOf(set).keys()].some((other) => other === name || other.startsWith(`${name}.`)));

  const complete = new Map(FULL.map((set) => [set, JSON.stringify(render(set, ODD))]));

  it("are all in the sets of this test", () => {
    // Fields that primary has in common with networks.
    const missing = all.filter((name) => !isSet(name) && !name.startsWith("primary."));
    expect(missing).toEqual([]);
  });

  // A macvlan network without a master is refused: above. What Helm sets in a subchart changes nothing.
  const toggled = FULL.flatMap((set) => [...leavesOf(set).keys()].map((name) => [name, set] as const));
  itLong.each(toggled.filter(([name]) => !/^primary.master$|^global/.test(name)))(
    "%s changes what is rendered",
    (name, set) => {
      const without = structuredClone(set) as Record<string, unknown>;
      const parts = name.split(".");
      const holder = parts.slice(0, -1).reduce((place, part) => place[part] as Record<string, unknown>, without);
      delete holder[parts.at(-1) ?? ""];
      expect(JSON.stringify(render(without, ODD))).not.toBe(complete.get(set));
    },
  );

  it.each<[what: string, values: object, wanted: string]>([
    ["an unknown key", { agents: {} }, "agents"],
    ["an unknown key inside", { agent: { replicas: 1 } }, "replicas"],
    ["a wrong type", { controller: { replicas: "2" } }, "replicas"],
    ["an unknown platform", { platform: "minikube" }, "platform"],
    ["a folder that doctor does not read", { agent: { hostFiles: ["/etc/shadow"] } }, "hostFiles"],
    ["a path that is not absolute", { cni: { binDir: "bin" } }, "binDir"],
    ["a file that no runtime reads", { primary: { fileName: "berth.txt" } }, "fileName"],
    ["an unknown plugin", { networks: [{ name: "a", type: "vxlan" }] }, "type"],
    ["a network without a name", { networks: [{ type: "ptp" }] }, "name"],
  ])("are refused with %s", (_, values, wanted) => {
    expect(() => render(values)).toThrow(wanted);
  });

  it("are those of values.yaml when none is given", () => {
    expect(parse(runHelm("show", "values", chart.directory))).toEqual(JSON.parse(JSON.stringify(defaultValues())));
  });

  it("of settings are a vendor-conf that agents accept", () => {
    const { data } = find(render(FULL[0]), "ConfigMap", /^vendor-conf$/);
    expect(decodeVendorConf(parse(data["conf.yml"]), "test").enableIPv6).toBe(false);
  });
});

it("the rights include the kinds that retain by name", () => {
  const retainByName = [
    { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" },
    { apiVersion: "db.example/v1", kind: "Proxy", plural: "proxies" },
  ];
  const objects = render({ settings: { retainByName } });
  const rulesOf = (name: RegExp): string[] =>
    find(objects, "ClusterRole", name)
      .rules.filter(({ apiGroups }: { apiGroups: string[] }) => /kruise|example/.test(String(apiGroups)))
      .map((rule: Record<string, string[]>) => `${rule.apiGroups} ${rule.resources} ${rule.verbs}`);
  expect(rulesOf(/agent$/)).toEqual(["apps.kruise.io statefulsets get", "db.example proxies get"]);
  expect(rulesOf(/controller$/)).toEqual([
    ...["apps.kruise.io statefulsets get,list,watch", "db.example proxies get,list,watch"],
  ]);
  expect(JSON.stringify(find(objects, "ClusterRole", /controller$/).rules)).toContain("proxies.db.example");
});

describe("least privilege", () => {
  const objects = render();
  const pods = [find(objects, "DaemonSet", /agent/), find(objects, "Deployment", /./), ...ofHooks(objects)];
  const jobs = objects.filter(({ kind }) => kind === "Job");
  const containers = [...pods, ...jobs].flatMap(({ metadata, spec }) =>
    [...(spec.template.spec.initContainers ?? []), ...spec.template.spec.containers].map((container) => ({
      ...container,
      where: `${metadata.name}/${container.name}`,
      pod: spec.template.spec,
    })),
  );

  it.each(containers.map((container) => [container.where, container]))(
    "%s is confined",
    (_, { securityContext, pod }) => {
      expect(securityContext.readOnlyRootFilesystem).toBe(true);
      expect(securityContext.privileged ?? false).toBe(false);
      expect(securityContext.allowPrivilegeEscalation).toBe(false);
      expect(securityContext.capabilities.drop).toEqual(["ALL"]);
      expect(pod.hostPID ?? false).toBe(false);
    },
  );

  it("capabilities are the agent's and the node cleaner's alone", () => {
    const added = containers.filter(({ securityContext }) => securityContext.capabilities.add);
    expect(added.map(({ where }) => where)).toEqual(["berth-agent/agent", "berth-cleaner/uninstall"]);
    for (const { securityContext } of added)
      expect(securityContext.capabilities.add).toEqual(defaultValues().agent.capabilities);
  });

  it("only what works on the node is root", () => {
    const isRoot = ({ securityContext, pod }: (typeof containers)[number]) =>
      (securityContext.runAsUser ?? pod.securityContext?.runAsUser) === 0;
    expect(containers.filter(isRoot).map(({ where }) => where)).toEqual([
      ...["berth-agent/install", "berth-agent/agent", "berth-cleaner/uninstall"],
    ]);
  });
});

describe("platforms", () => {
  const STANDARD = {
    confDirectory: "/etc/cni/net.d",
    binDirectory: "/opt/cni/bin",
    netns: "/run/netns",
    label: undefined,
  };
  const rows: Readonly<Record<string, object | undefined>> = {
    "": {},
    rke2: {},
    kind: {},
    talos: { netns: "/var/run/netns" },
    k3s: PLATFORMS.k3s,
    microk8s: PLATFORMS.microk8s,
    openshift: { ...PLATFORMS.openshift, label: { type: "spc_t" } },
  };
  it.each(Object.entries(rows))("%j has its directories in agent, installation and clean-up", (platform, row) => {
    const { mark: _, ...wanted } = { mark: "", ...STANDARD, ...row };
    const objects = render({ platform });
    const { spec } = find(objects, "DaemonSet", /agent/).spec.template;
    const [agent] = spec.containers;
    const env = (name: string) => agent.env.find((each: KubernetesObject) => each.name === name).value;
    const volume = (name: string) => spec.volumes.find((each: KubernetesObject) => each.name === name).hostPath.path;
    expect({
      confDirectory: env("BERTH_CNI_CONF_DIR"),
      binDirectory: env("BERTH_CNI_BIN_DIR"),
      netns: volume("netns"),
      label: spec.securityContext?.seLinuxOptions,
    }).toEqual(wanted);
    expect([volume("cni-conf"), volume("cni-bin")]).toEqual([wanted.confDirectory, wanted.binDirectory]);
    expect(agent.args).toContain(`--cni-conf-dir=${wanted.confDirectory}`);
    const cleaner = cleanerOf(objects).spec.template.spec;
    expect(cleaner.securityContext?.seLinuxOptions).toEqual(wanted.label);
    for (const { args } of [spec.initContainers[0], cleaner.initContainers[0]])
      expect(args).toEqual(
        expect.arrayContaining([`--cni-bin-dir=${wanted.binDirectory}`, `--cni-conf-dir=${wanted.confDirectory}`]),
      );
  });

  it("give way to directories and labels that are named", () => {
    const values = { cni: { binDir: "/a", confDir: "/b" }, agent: { seLinuxOptions: { type: "own_t" } } };
    const { spec } = find(render({ platform: "openshift", ...values }), "DaemonSet", /agent/).spec.template;
    expect(spec.initContainers[0].args).toEqual(["--cni-bin-dir=/a", "--cni-conf-dir=/b"]);
    expect(spec.securityContext).toEqual({ seLinuxOptions: { type: "own_t" } });
  });
});

describe("files of the nodes for doctor", () => {
  const mounts = (values: object) => {
    const { spec } = find(render(values), "DaemonSet", /agent/).spec.template;
    const ofHost = spec.volumes.filter(({ name }: KubernetesObject) => /^host-/.test(String(name)));
    return ofHost.map(({ name, hostPath }: KubernetesObject) => {
      const isOf = (each: KubernetesObject) => each.name === name;
      expect(spec.initContainers[0].volumeMounts.filter(isOf)).toEqual([]);
      return [hostPath, ...spec.containers[0].volumeMounts.filter(isOf)];
    });
  };
  it("are none by default", () => expect(mounts({})).toEqual([]));

  it("are those that are named, read-only, and must exist", () => {
    expect(mounts({ agent: { hostFiles: ["/etc/sysctl.d", "/etc/nftables.conf"] } })).toEqual([
      [
        { path: "/etc/sysctl.d", type: "Directory" },
        { name: "host-0", mountPath: "/host/etc/sysctl.d", readOnly: true },
      ],
      [
        { path: "/etc/nftables.conf", type: "File" },
        { name: "host-1", mountPath: "/host/etc/nftables.conf", readOnly: true },
      ],
    ]);
  });

  it("may be all that doctor reads below /etc and /usr/lib", () => {
    const allowed: string[] = parse(readFileSync(join(chart.directory, "values.schema.json"), "utf8")).properties.agent
      .properties.hostFiles.items.enum;
    const read = FILE_CHECKS.flatMap(({ paths }) => paths).filter((path) => /^\/(?:etc|usr\/lib)\//.test(path));
    const isAllowed = (path: string) => allowed.some((each) => path === each || path.startsWith(`${each}/`));
    expect(read.filter((path) => !isAllowed(path))).toEqual([
      "/usr/lib/systemd/networkd.conf",
      PLATFORMS.openshift?.mark,
    ]);
  });
});

it("NOTES say what to do next", () => {
  // `helm template` prints no notes.
  using copy = copyChart();
  renameSync(join(copy.directory, "templates", "NOTES.txt"), join(copy.directory, "notes.tpl"));
  const template = '{{ dict "notes" (tpl (.Files.Get "notes.tpl") .) | toYaml }}';
  writeFileSync(join(copy.directory, "templates", "notes.yaml"), template);
  const notes = (values: object) => renderChart(copy, DEFAULT, "--values", write(values)).get("notes.yaml");
  expect(notes({})).toContain("2. Describe your addresses");
  expect(notes({ networks: [{ name: "lan", type: "ptp" }] })).toContain("k8s.v1.cni.cncf.io/networks: default/lan");
  expect(notes({ primary: { fileName: "05-b.conflist", master: ["e"] } })).toContain(
    "/etc/cni/net.d/05-b.conflist sorts first",
  );
  expect(notes({})).toContain(`Berth ${manifest.version} is installed`);
});

it("the package and the plain manifests of a release are what the chart renders to", async () => {
  const { version } = manifest;
  const [[name, archive] = [], [manifests, text] = []] = await buildChart({ ...FACTS, version });
  expect([name, manifests]).toEqual([`berth-${version}.tgz`, `berth-${version}.yaml`]);
  const path = join(chart.directory, "..", "packed.tgz");
  writeFileSync(path, archive ?? "");
  const rendered = renderChart({ directory: path }, PLAIN_RELEASE);
  expect([...rendered]).toEqual([...renderChart(chart, PLAIN_RELEASE)]);
  const folder = join(root, "deploy", "crds");
  const crds = readdirSync(folder).flatMap((file) => decode(readFileSync(join(folder, file), "utf8")));
  for (const { metadata } of crds) expect(runHelm("show", "crds", path)).toContain(`name: ${metadata.name}\n`);
  const plain = decode(`${text}`);
  const expected = [...crds, ...decode([...rendered.values()].join("---\n"))];
  expect(plain).toEqual(expect.arrayContaining(expected));
  expect(plain).toHaveLength(expected.length);
  const [[, again] = []] = await buildChart(FACTS);
  const [[, first] = []] = await buildChart(FACTS);
  expect(again?.equals(first ?? Buffer.alloc(0))).toBe(true);
});

it("the package of a build between two releases names its version, and its image by a tag without plus", async () => {
  const [[name, archive] = [], [, text] = []] = await buildChart({ ...FACTS, version: "9.9.9-dev.8+0abc" });
  expect(name).toBe("berth-9.9.9-dev.8_0abc.tgz");
  const path = join(chart.directory, "..", "between.tgz");
  writeFileSync(path, archive ?? "");
  expect(parse(runHelm("show", "chart", path))).toMatchObject({
    version: "9.9.9-dev.8+0abc",
    appVersion: "9.9.9-dev.8+0abc",
  });
  const images = [...`${text}`.matchAll(/image: "(.+)"/g)].map(([, image]) => image);
  expect(new Set(images)).toEqual(new Set(["localhost/berth:9.9.9-dev.8_0abc"]));
});

it("a release whose name has a dot has Services all the same", () => {
  const values = { map: { enabled: true, service: true }, metrics: { tlsSecret: "own" } };
  const services = render(values, { name: "odd.one", namespace: "net" }).filter(({ kind }) => kind === "Service");
  const names = services.map(({ metadata }) => metadata.name).sort();
  expect(names).toEqual(["odd-one-berth-agent", "odd-one-berth-controller", "odd-one-berth-map"]);
});

describe("the address map", () => {
  const values = { map: { enabled: true }, metrics: { tlsSecret: "own" } };
  const controllerOf = (objects: readonly KubernetesObject[]) =>
    find(objects, "Deployment", "berth-controller").spec.template.spec;

  it("is off by default: no port, no token, no right", () => {
    const text = JSON.stringify(render());
    for (const word of ["--map-listen", "berth-agents", "/v1/history", "tokenreviews"])
      expect(text).not.toContain(word);
  });

  it("is on the controller's loopback, asks agents on their port, and has the rights for that", () => {
    const objects = render(values);
    const { containers, volumes } = controllerOf(objects);
    const [{ args, ports, volumeMounts }] = containers;
    expect(args).toEqual(
      expect.arrayContaining([
        "--map-listen=127.0.0.1:9476",
        "--agents-token-file=/var/run/secrets/berth/token",
        "--agents-port=9473",
        "--metrics-cert-file=/etc/berth/metrics/tls.crt",
      ]),
    );
    expect(ports).toContainEqual({ name: "map", containerPort: 9476 });
    const agent = find(objects, "DaemonSet", "berth-agent").spec.template.spec.containers[0];
    expect(agent.args).toContain("--metrics-listen=*:9473");
    expect(volumes).toContainEqual({
      name: "agents-token",
      projected: {
        sources: [{ serviceAccountToken: { audience: AGENTS_AUDIENCE, expirationSeconds: 3_600, path: "token" } }],
      },
    });
    expect(volumeMounts.map(({ name }: { name: string }) => name)).toEqual(["metrics", "agents-token", "agents"]);
    const { rules } = find(objects, "ClusterRole", /^berth-map$/);
    expect(rules).toEqual([{ nonResourceURLs: ["/v1/explain", "/v1/history"], verbs: ["get"] }]);
    const { subjects } = find(objects, "ClusterRoleBinding", /^berth-map$/);
    expect(subjects.map(({ name }: { name: string }) => name)).toEqual(["berth-controller"]);
    expect(
      find(objects, "ClusterRole", /^berth-metrics$/).rules.map(({ resources }: { resources: string[] }) => resources),
    ).toEqual([["tokenreviews"], ["subjectaccessreviews"]]);
    expect(objects.filter(({ kind, metadata }) => kind === "Service" && metadata.name === "berth-map")).toEqual([]);
  });

  it("with a Service is for other machines, over TLS and by token", () => {
    const objects = render({ ...values, map: { enabled: true, port: 9003, service: true } });
    const { containers } = controllerOf(objects);
    expect(containers[0].args).toContain("--map-listen=*:9003");
    expect(containers[0].args.join()).not.toContain("insecure");
    const { spec } = find(objects, "Service", "berth-map");
    expect([spec.ports, spec.selector["app.kubernetes.io/component"]]).toEqual([
      [{ name: "https", port: 443, targetPort: "map" }],
      "controller",
    ]);
    const { ingress } = find(objects, "NetworkPolicy", "berth-controller").spec;
    expect(ingress).toEqual([{ ports: [{ port: "metrics" }, { port: "map" }] }]);
  });
});

describe("keys", () => {
  const values = { map: { enabled: true, service: true, hostNames: ["map.example.com"] } };
  const all = { ...values, serviceMonitor: { enabled: true } };
  const ofKind = (objects: ReturnType<typeof render>, wanted: string) => objects.filter(({ kind }) => kind === wanted);
  const secretsOf = (pod: unknown): string[] =>
    [...JSON.stringify(pod).matchAll(/"secretName":"([^"]+)"/g)].map(([, name = ""]) => name);
  const namesOf = (objects: ReturnType<typeof render>) => {
    const { args } = find(objects, "Deployment", "").spec.template.spec.containers[0];
    return Object.fromEntries(
      args.flatMap((arg: string) => {
        const [, secret, names] = /^--certificate-secret=(.*)=(.*)$/.exec(arg) ?? [];
        return secret === undefined ? [] : [[secret, names?.split(",")]];
      }),
    );
  };

  it("are in no template: two renders are equal", () => {
    expect(render(all)).toEqual(render(all));
    for (const secret of ofKind(render(all), "Secret")) expect(Object.keys(secret)).not.toContain("data");
  });

  it("of the controller are not on the nodes of agents, nor the agents' key in its pods", () => {
    const objects = render(all);
    expect(secretsOf(find(objects, "DaemonSet", ""))).toEqual(["berth-agent-tls"]);
    const { volumes } = find(objects, "Deployment", "").spec.template.spec;
    expect(secretsOf(volumes)).toEqual(["berth-controller-tls", "berth-agent-tls"]);
    const agents = volumes.find(({ name }: { name: string }) => name === "agents");
    expect(agents.secret.items).toEqual([{ key: "ca.crt", path: "ca.crt" }]);
    // A certificate that is not there yet keeps no agent from attaching pods.
    const mounted = [...find(objects, "DaemonSet", "").spec.template.spec.volumes, ...volumes];
    const secrets = mounted.flatMap(({ secret }: { secret?: { optional?: boolean } }) => secret ?? []);
    expect(secrets.map(({ optional }) => optional)).toEqual([true, true, true]);
  });

  it("are the controller's to write, and no other Secret is", () => {
    const objects = render(all);
    const names = ofKind(objects, "Secret").map(({ metadata }) => metadata.name);
    expect(names).toEqual(["berth-agent-tls", "berth-controller-tls", "berth-authority"]);
    const rules = [...ofKind(objects, "Role"), ...ofKind(objects, "ClusterRole")].flatMap(({ rules }) => rules);
    expect(rules.filter((rule) => JSON.stringify(rule).includes("secrets"))).toEqual([
      { apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get", "patch"] },
    ]);
    expect(find(objects, "RoleBinding", /-authority$/).subjects.map(({ name }: { name: string }) => name)).toEqual([
      "berth-controller",
    ]);
  });

  it("have the names of all Services", () => {
    for (const release of [DEFAULT, ODD]) {
      const objects = render(all, release);
      const services = ofKind(objects, "Service").map(({ metadata }) => `${metadata.name}.${metadata.namespace}.svc`);
      const certified = Object.values(namesOf(objects)).flat();
      expect(certified.toSorted()).toEqual([...services, "map.example.com"].toSorted());
    }
  });

  it("of others are mounted, and not written", () => {
    const objects = render({ ...all, metrics: { tlsSecret: "one", controllerTlsSecret: "two" } });
    expect([namesOf(objects), ofKind(objects, "Secret")]).toEqual([{}, []]);
    expect(secretsOf(find(objects, "DaemonSet", ""))).toEqual(["one"]);
    expect(JSON.stringify(objects)).not.toContain("authority");
  });

  it("of cert-manager are its Certificates, for the same names", () => {
    const objects = render({ ...all, metrics: { issuerRef: { name: "ca", kind: "Issuer" } } });
    const certificates = ofKind(objects, "Certificate").map(({ spec }) => [spec.secretName, spec.dnsNames]);
    expect(Object.fromEntries(certificates)).toEqual(namesOf(render(all)));
    expect([namesOf(objects), ofKind(objects, "Secret")]).toEqual([{}, []]);
  });

  it("are verified by Prometheus, unless tlsConfig says otherwise", () => {
    const configs = (objects: ReturnType<typeof render>) =>
      ofKind(objects, "ServiceMonitor").map(({ spec }) => spec.endpoints[0].tlsConfig);
    const expected = ["agent", "controller"].map((component) => ({
      serverName: `berth-${component}.kube-system.svc`,
      ca: { secret: { name: `berth-${component}-tls`, key: "ca.crt" } },
    }));
    expect(configs(render(all))).toEqual(expected);
    const own = { insecureSkipVerify: true };
    expect(configs(render({ ...all, serviceMonitor: { enabled: true, tlsConfig: own } }))).toEqual([own, own]);
  });
});

describe("metrics", () => {
  const values = {
    serviceMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    grafanaDashboard: { enabled: true },
  };
  const objects = render(values, ODD);
  const programs = [find(objects, "DaemonSet", /-agent$/), find(objects, "Deployment", /-controller$/)];

  it("are off by default", () => {
    const text = JSON.stringify(render());
    for (const word of ["--metrics", "tokenreviews", "monitoring.coreos.com"]) expect(text).not.toContain(word);
  });

  it("are served on addresses that agent and controller accept", () => {
    for (const { spec } of programs) {
      const [{ args, ports }] = spec.template.spec.containers;
      const addresses = args.flatMap((arg: string) => /^--(?:metrics-)?listen=(.*)$/.exec(arg)?.[1] ?? []);
      const port = ports.find(({ name }: { name: string }) => name === "metrics").containerPort;
      expect(addresses.map(parseListenAddress)).toContainEqual({ kind: "network", host: undefined, port });
      expect(addresses.map(parseListenAddress)).not.toContain(undefined);
    }
  });

  it.each(["10.0.0.1", "fd00::1"])("are served on the address %s of the pod alone, with listen: pod", (ip) => {
    const objects = render({ metrics: { listen: "pod" }, map: { enabled: true, service: true } });
    for (const pod of [find(objects, "DaemonSet", ""), find(objects, "Deployment", "")]) {
      const [{ args, env }] = pod.spec.template.spec.containers;
      expect(env).toContainEqual({ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } });
      const listens = args.flatMap((arg: string) => /^--(?:metrics|map)-listen=(.*)$/.exec(arg)?.[1] ?? []);
      expect(listens.length).toBe(pod.kind === "Deployment" ? 2 : 1);
      for (const text of listens)
        expect(parseListenAddress(text.replace("$(POD_IP)", ip))).toMatchObject({ kind: "network", host: ip });
    }
  });

  it("a controller with a network of its own is asked for its health by the kubelet", () => {
    const { spec } = find(render({ controller: { hostNetwork: false } }), "Deployment", "controller");
    const [{ args, livenessProbe }] = spec.template.spec.containers;
    expect([args.includes("--listen=*:9474"), livenessProbe.httpGet.host]).toEqual([true, undefined]);
  });

  it("are found by Prometheus through a Service, whose labels its pods have", () => {
    for (const { metadata, spec } of objects.filter(({ kind }) => kind === "ServiceMonitor")) {
      const service = find(objects, "Service", new RegExp(`^${metadata.name}$`));
      expect(service.metadata.labels).toMatchObject(spec.selector.matchLabels);
      expect(service.spec.ports[0].name).toBe(spec.endpoints[0].port);
      const pods = programs.map((program) => program.spec.template.metadata.labels);
      expect(pods).toContainEqual(expect.objectContaining(service.spec.selector));
    }
  });

  it("have the alerts and the dashboard of the files, with links to this version's site or one's own", () => {
    const site = "https://vendor.io/berth/docs/";
    const file = readFileSync(join(root, "deploy/chart/berth/files/alerts.yaml"), "utf8");
    const own = { docs: { url: "https://example.com/d" }, prometheusRule: { enabled: true } };
    const { spec } = find(render(own), "PrometheusRule", "berth");
    expect(spec).toEqual(parse(file.replaceAll(site, "https://example.com/d/")));
    expect(find(objects, "PrometheusRule", "").spec).toEqual(
      parse(file.replaceAll(site, `${site}${manifest.version}/`)),
    );
    const dashboard = find(objects, "ConfigMap", /-dashboard$/).data["berth.json"];
    expect(JSON.parse(dashboard).title).toBe("Berth");
    const { data } = find(render({ ...own, grafanaDashboard: { enabled: true } }), "ConfigMap", /-dashboard$/);
    expect(data["berth.json"]).toContain('"url": "https://example.com/d/runbooks.html#berthagentnotready"');
  });
});
