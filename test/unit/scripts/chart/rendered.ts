/** The Helm chart's objects: a few sets of values, which together have every value, each rendered once by Helm. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, type Release, runHelm } from "../../../../scripts/chart/helm.ts";
import { KUBERNETES_SCHEMAS } from "../../../../scripts/setup/paths.mjs";
import type { KubernetesObject } from "./kubernetes-schemas.ts";

interface ValueSet {
  readonly release: Release;
  readonly values: object;
}

export const ODD: Release = { name: "a-very-long-release-name-of-many-words-that-ends-here", namespace: "net-system" };
/** Its name has a dot, which that of a Service has not. */
export const DOTTED: Release = { name: "odd.one", namespace: "net" };

const BOND = { name: "vendor_bnd", mode: 4, options: "miimon=100" };
const OWN_CONFIG = { cniVersion: "0.4.0", name: "own", type: "macvlan", master: "e", ipam: { type: "berth" } };
const OWN_LIST = { cniVersion: "1.0.0", name: "x", plugins: [{ type: "macvlan" }] };
const LABELS = { labels: { release: "prometheus" } };

const TERM = { matchExpressions: [{ key: "rack", operator: "In", values: ["a"] }] };
const AFFINITY = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [TERM] } } };
const NOWHERE = { nodeSelector: null, affinity: null };
const SPREAD = { maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway" };

/** In `full` and `other` every value is another than its default; two, because some exclude each other. */
export const SETS = {
  plain: { release: PLAIN_RELEASE, values: {} },
  full: {
    release: ODD,
    values: {
      global: { imageRegistry: "mirror.example.com:5000" },
      schedulingGate: { enabled: true },
      hub: { kubeconfigSecret: "hub", member: "east" },
      metallb: { namespace: "metallb-system" },
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
        ...{ repository: "registry.example.com/net/berth", digest: `sha256:${"0".repeat(64)}` },
        ...{ pullPolicy: "Always", pullSecrets: [{ name: "registry" }] },
      },
      apiServer: { host: "[2001:db8::1]", port: 7443 },
      serviceAccount: { annotations: { "example.com/role": "net" } },
      platform: "openshift",
      cni: { binDir: "/usr/lib/cni", confDir: "/etc/own/net.d", aliasesOnly: true },
      primary: {
        ...{ fileName: "05-berth.conflist", name: "lan", master: ["eth0"], vlan: 12 },
        coordinator: { detectGateway: true },
      },
      settings: {
        ...{ enableIPv6: false, allocationCooldown: "1m" },
        retainByName: [
          { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" },
          { apiVersion: "db.example/v1", kind: "Proxy", plural: "proxies" },
        ],
      },
      subnets: { blue: { subnet: "10.7.0.0/16" } },
      ipPools: { lan: { subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.99"], gateway: "10.6.0.1", default: true } },
      reservedIPs: { routers: { ips: ["10.6.0.2"] } },
      coordinator: { spec: { mode: "auto", podCIDRType: "none" } },
      networks: [
        { name: "plain", master: ["eth0"], ipv4Pools: ["lan"], ipv6Pools: ["lan6"], resourceName: "intel.com/sriov" },
        { name: "vlan", namespace: "shop", type: "ipvlan", master: ["eth0"], vlan: 100, plugin: { mtu: 1400 } },
        { name: "bond", master: ["eth0", "eth1"], bond: BOND, vlan: 4094 },
        { name: "rr", master: ["eth0", "eth1"], bond: { mode: 0 }, vlan: 99, annotations: { "example.com/a": "b" } },
        { name: "bridge", type: "bridge", bridge: "br0", vlan: 5, coordinator: false, cniVersion: "1.1.0" },
        { name: "vf", type: "sriov", resourceName: "intel.com/sriov", vlan: 3 },
        { name: "ptp", type: "ptp" },
        { name: "own", config: OWN_CONFIG },
      ],
      agent: {
        ...{ logLevel: "debug", annotations: { "example.com/scrape": "no" }, labels: { team: "net" } },
        ...{ nodeSelector: { pool: "bare-metal" }, extraArgs: ["--lock-wait=40"], hostPID: true },
        ...{ resources: { limits: { memory: "1Gi" } }, tolerations: [{ key: "only", operator: "Exists" }] },
        ...{ priorityClassName: "own-priority", maxUnavailable: "20%" },
        capabilities: ["NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"],
        hostFiles: ["/etc/systemd/system", "/etc/nftables.conf"],
        seccompProfile: { type: "Localhost", localhostProfile: "berth.json" },
        seLinuxOptions: { type: "own_t" },
        affinity: AFFINITY,
      },
      controller: {
        ...{ logLevel: "warn", annotations: { "example.com/a": "b" }, labels: { team: "net" } },
        ...{ nodeSelector: { "node-role.kubernetes.io/control-plane": "" }, extraArgs: ["--lease-retry=3"] },
        ...{ replicas: 3, resources: { limits: { memory: "2Gi" } }, tolerations: [] },
        ...{ priorityClassName: "own-priority", hostNetwork: false, port: 9999 },
        ...{ affinity: AFFINITY, topologySpreadConstraints: [SPREAD] },
      },
      hostAgents: { enabled: true },
      metrics: {
        ...{ agentPort: 9001, controllerPort: 9002, listen: "pod", tlsSecret: "own" },
        reader: { namespace: "monitoring", serviceAccount: "prometheus-k8s" },
      },
      map: { enabled: true, port: 9003, service: true, hostNames: ["map.example.com"] },
      serviceMonitor: {
        ...{ ...LABELS, enabled: true, interval: "1m" },
        tlsConfig: { insecureSkipVerify: false, serverName: "berth-metrics" },
      },
      prometheusRule: { ...LABELS, enabled: true },
      docs: { url: "https://example.com/berth/" },
      grafanaDashboard: { enabled: true, labels: { grafana: "yes" } },
      hooks: { resources: { requests: { cpu: "7m" } } },
      prePull: { timeoutSeconds: 90 },
      uninstall: { force: true, timeoutSeconds: 100 },
    },
  },
  other: {
    release: ODD,
    values: {
      fullnameOverride: "net",
      image: { tag: "1.2.3" },
      platform: "openshift",
      primary: { fileName: "05-berth.conflist", config: OWN_LIST },
      coordinator: { create: false },
      agent: { privileged: true },
      controller: { podDisruptionBudget: false, networkPolicy: false },
      flowSchema: { enabled: false },
      metrics: { enabled: true, controllerTlsSecret: "two", issuerRef: { name: "authority", kind: "ClusterIssuer" } },
      map: { enabled: true },
      crds: { apply: false, allowDeletion: true },
      prePull: { enabled: false },
      uninstall: { keepState: true },
    },
  },
  ports: {
    release: DOTTED,
    values: {
      platform: "microk8s",
      networks: [{ name: "lan", type: "ptp" }],
      map: { enabled: true, service: true, hostNames: ["map.example.com"] },
      serviceMonitor: { enabled: true },
      prometheusRule: { enabled: true },
      grafanaDashboard: { enabled: true },
    },
  },
  talos: { release: PLAIN_RELEASE, values: { platform: "talos" } },
  // Null takes a default away.
  k3s: { release: PLAIN_RELEASE, values: { platform: "k3s", agent: NOWHERE, controller: NOWHERE } },
} as const satisfies Readonly<Record<string, ValueSet>>;

export type SetName = keyof typeof SETS;
export const setNames = Object.keys(SETS) as SetName[];

const NOTES = "the-notes";

/** Calls Helm with a copy of the chart; `values` are those of its last words. */
export function helm(command: readonly string[], values: object = {}): string {
  using chart = copyChart();
  // `helm template` prints no notes, unless they are a template.
  const inside = (name: string): string => join(chart.directory, name);
  renameSync(inside("templates/NOTES.txt"), inside("notes.tpl"));
  const notes = '{{ dict "notes" (tpl (.Files.Get "notes.tpl") .) | toYaml | nindent 2 }}';
  const map = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${NOTES}}\ndata:\n  ${notes}\n`;
  writeFileSync(inside("templates/notes.yaml"), map);
  const path = join(chart.directory, "..", "values.json");
  writeFileSync(path, JSON.stringify(values));
  const version = KUBERNETES_SCHEMAS.at(-1) ?? "";
  return runHelm(...command, chart.directory, "--kube-version", version, "--values", path);
}

export const decode = (text: string): KubernetesObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((value) => value !== null);

/** Returns all objects, of hooks too, and the notes among them. */
export const render = ({ values, release: { name, namespace } }: ValueSet): KubernetesObject[] =>
  decode(helm(["template", "--namespace", namespace, name], values));

const rendered = new Map<SetName, KubernetesObject[]>();
function documentsOf(name: SetName): KubernetesObject[] {
  return rendered.getOrInsertComputed(name, () => render(SETS[name]));
}

export const objectsOf = (name: SetName): KubernetesObject[] =>
  documentsOf(name).filter(({ metadata }) => metadata.name !== NOTES);
export const notesOf = (name: SetName): string => find(documentsOf(name), "ConfigMap", NOTES).data.notes;

export function find(objects: readonly KubernetesObject[], kind: string, name: string | RegExp): KubernetesObject {
  const found = objects.find((each) => each.kind === kind && each.metadata.name.match(name));
  if (found === undefined) throw new Error(`There is no ${kind} ${name}`);
  return found;
}

export const ofKind = (objects: readonly KubernetesObject[], wanted: string): KubernetesObject[] =>
  objects.filter(({ kind }) => kind === wanted);

/** The DaemonSet that is created for the nodes' clean-up. */
export const cleanerOf = (objects: readonly KubernetesObject[]): KubernetesObject =>
  JSON.parse(find(objects, "ConfigMap", /-hooks$/).data["cleaner.json"]);

/** The DaemonSets that hooks create. */
export function ofHooks(objects: readonly KubernetesObject[]): KubernetesObject[] {
  const puller = find(objects, "ConfigMap", /-hooks$/).data["puller.json"];
  return [cleanerOf(objects), ...(puller ? [JSON.parse(puller)] : [])];
}
