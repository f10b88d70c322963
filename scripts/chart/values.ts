/** The values of the Helm chart, with those of packages: one schema gives values.yaml and values.schema.json. */
import { z } from "zod";
import { readExtensions } from "../../host/bin/extensions.ts";
import { SUPPORTED_VERSIONS } from "../../host/cni/version.ts";
import { coordinatorKeys } from "../../host/config/coordinator-conf.ts";
import { vendorConfSchema } from "../../host/config/vendor-conf.ts";
import { coordinatorSchema } from "../../host/resources/coordinator.ts";
import { ipPoolSchema } from "../../host/resources/ip-pool.ts";
import { reservedIpSchema } from "../../host/resources/reserved-ip.ts";
import { subnetSchema } from "../../host/resources/subnet.ts";
import { closed } from "./closed-schema.ts";
import { section } from "./section.ts";

const text = z.string();
const name = z.string().regex(/^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/);
const flag = z.boolean();
const path = z.string().regex(/^(?:\/|$)/);
/** A name, or an IPv4 or IPv6 address, also in brackets, without scheme and port. */
const host = z.string().regex(/^(?:[\w.-]*|\[?[\dA-Fa-f.]*(?::[\dA-Fa-f.]*){2,}\]?)$/);

/** The files of other programs that `berthctl check` reads, as far as a pod may be given them. */
const HOST_FILES = [
  "/etc/systemd/system",
  "/usr/lib/systemd/system",
  "/etc/systemd/networkd.conf",
  "/etc/systemd/networkd.conf.d",
  "/usr/lib/systemd/networkd.conf.d",
  "/etc/systemd/network",
  "/run/systemd/network",
  "/usr/lib/systemd/network",
  "/etc/NetworkManager/NetworkManager.conf",
  "/etc/NetworkManager/conf.d",
  "/usr/lib/NetworkManager/conf.d",
  "/etc/udev/rules.d",
  "/usr/lib/udev/rules.d",
  "/etc/firewalld",
  "/usr/lib/firewalld/zones",
  "/etc/nftables.conf",
  "/etc/sysconfig/nftables.conf",
  "/etc/sysctl.d",
  "/usr/lib/sysctl.d",
  "/lib/modules",
] as const;

/** Any keys, which others check; `title` is the type in the table. */
const object = (title: string) => z.record(z.string(), z.unknown()).meta({ title });
const texts = (title: string) => z.record(z.string(), text).meta({ title });
const specs = (kind: string, spec: z.ZodType) =>
  z.record(name, closed(`${kind} spec`, spec)).meta({ title: `${kind} specs by name` });

/** Values of Kubernetes. */
const quantities = z.record(z.string(), z.union([z.number(), text]));
const profile = (title: string) =>
  z.strictObject({ type: text.optional(), localhostProfile: text.optional() }).meta({ title });
const tolerations = z
  .array(
    z
      .strictObject({
        key: text.optional(),
        operator: z.enum(["Exists", "Equal"]).optional(),
        value: text.optional(),
        effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
        tolerationSeconds: z.int().optional(),
      })
      .meta({ title: "toleration" }),
  )
  .meta({ title: "tolerations" });

const network = {
  type: z
    .enum(["macvlan", "ipvlan", "bridge", "ptp", "sriov"])
    .default("macvlan")
    .meta({ description: "Main plugin." }),
  master: z.array(text).default([]).meta({
    uniqueItems: true,
    description:
      "Interface of the node under the pods' NICs, for macvlan and ipvlan. ifacer joins several in a bond, or uses the bond named by `bond.name`.",
  }),
  vlan: z.int().min(0).max(4094).default(0).meta({
    description:
      "VLAN ID. For macvlan and ipvlan ifacer creates the device; for bridge and SR-IOV it is the main plugin's. 0: none.",
  }),
  bond: z
    .strictObject({
      name: text.default("").meta({
        description: "Name of the bond. If empty, `vendor_bond0`. With a dot and the VLAN ID at most 15 characters.",
      }),
      mode: z
        .union([z.int(), text])
        .default("active-backup")
        .meta({ title: "number or string", description: "Mode by number or name." }),
      options: text.default("").meta({ description: "Options, such as `miimon=100;updelay=200`." }),
    })
    .prefault({})
    .meta({ description: "The bond of several masters." }),
  bridge: text.default("").meta({ description: "Name of the bridge, for type `bridge`. If empty, `cni0`." }),
  ipv4Pools: z
    .array(text)
    .default([])
    .meta({ description: "IPPools for IPv4, tried in this order. If empty, the usual selection applies." }),
  ipv6Pools: z
    .array(text)
    .default([])
    .meta({ description: "IPPools for IPv6, tried in this order. If empty, the usual selection applies." }),
  plugin: object("object").default({}).meta({ description: "Further keys of the main plugin, such as `mtu`." }),
  coordinator: z
    .union([z.literal(false), closed("coordinator entry", coordinatorKeys)])
    .default({})
    .meta({ title: "object or `false`", description: "Keys of the coordinator's entry. `false`: no coordinator." }),
  cniVersion: z.enum(SUPPORTED_VERSIONS).default("1.0.0").meta({ description: "Version of the CNI configuration." }),
  config: object("object")
    .default({})
    .meta({ description: "A whole CNI configuration, which replaces all keys above." }),
};

const definition = z.strictObject({
  name: name.meta({ description: "Name of the NetworkAttachmentDefinition." }),
  namespace: text.default("").meta({ description: "Its namespace. If empty, the release's." }),
  ...network,
  resourceName: text.default("").meta({
    description:
      "Resource of a device plugin, such as `intel.com/sriov`; becomes the annotation `k8s.v1.cni.cncf.io/resourceName`.",
  }),
  annotations: texts("annotations").default({}).meta({ description: "Further annotations." }),
});

/** The values that a pod of agent and controller share. */
const pod = {
  logLevel: z
    .enum(["trace", "debug", "info", "warn", "error"])
    .default("info")
    .meta({ description: "Lowest level of messages to log." }),
  annotations: texts("annotations").default({}).meta({ description: "Annotations of the pods." }),
  labels: texts("labels").default({}).meta({ description: "Further labels of the pods." }),
  nodeSelector: texts("labels").default({}).meta({ description: "Nodes to run on, besides Linux." }),
  extraArgs: z.array(text).default([]).meta({ description: "Further options of the program." }),
  affinity: object("affinity").default({}).meta({ description: "Affinity of the pods." }),
};

const resources = (cpu: string, request: string, limit: string) =>
  z
    .strictObject({ requests: quantities.optional(), limits: quantities.optional() })
    .meta({ title: "resources" })
    .default({ requests: { cpu, memory: request }, limits: { cpu: "4", memory: limit } })
    .meta({ description: "Requests and limits of the container." });

const extensions = await readExtensions();
const added = await Promise.all(extensions.map(({ readChartValues }) => readChartValues?.()));

export const valuesSchema = z.strictObject({
  global: z
    .looseObject({ imageRegistry: text.default("").meta({ description: "Replaces that of `image.repository`." }) })
    .prefault({}),
  nameOverride: text.default("").meta({ description: "Replaces `berth` in the names of all objects." }),
  fullnameOverride: text
    .default("")
    .meta({ description: "Begins the names of all objects. If empty, made of the release's name." }),
  commonLabels: texts("labels").default({}).meta({ description: "Further labels of all objects and pods." }),
  commonAnnotations: texts("annotations").default({}).meta({ description: "Annotations of all objects." }),
  extraObjects: z
    .array(object("object"))
    .default([])
    .meta({ description: "Further objects, installed with the chart. May contain Helm's template actions." }),
  image: section({
    repository: text.default("localhost/berth").meta({ description: "Repository of the image." }),
    tag: text.default("").meta({ description: "Tag. If empty, the chart's `appVersion`." }),
    digest: text.default("").meta({ description: "Digest, such as `sha256:…`; takes precedence over the tag." }),
    pullPolicy: z
      .enum(["Always", "IfNotPresent", "Never"])
      .default("IfNotPresent")
      .meta({ description: "When the kubelet pulls it." }),
    pullSecrets: z
      .array(z.strictObject({ name: text }).meta({ title: "reference" }))
      .meta({ title: "list of references" })
      .default([])
      .meta({ description: "Secrets of the registry: a list of `{name: …}`." }),
  }),
  apiServer: section({
    host: host.default("").meta({
      description:
        "Name or address of the API server, for clusters whose service `kubernetes` needs a network that Berth or its nodes do not have yet. If empty, that service is used.",
    }),
    port: z.int().min(1).max(65535).default(6443).meta({ description: "Its port, with `host`." }),
  }),
  platform: z
    .enum(["", "k3s", "rke2", "talos", "openshift", "microk8s", "kind"])
    .default("")
    .meta({ description: "[Distribution](host.md#kubernetes-distributions) of Kubernetes. Sets its directories." }),
  cni: section({
    binDir: path.default("").meta({
      description: "The nodes' directory of CNI plugins. If empty, the platform's: mostly `/opt/cni/bin`.",
    }),
    confDir: path.default("").meta({
      description: "The nodes' directory of network lists. If empty, the platform's: mostly `/etc/cni/net.d`.",
    }),
    aliasesOnly: flag.default(false).meta({
      description:
        "Install only `berth`, `berth-coordinator` and `berth-ifacer`, beside another product's `coordinator` and `ifacer`. Networks of this chart then use these names.",
    }),
  }),
  primary: section({
    fileName: z
      .union([z.literal(""), z.string().regex(/^[\w.-]+\.conflist$/)])
      .default("")
      .meta({
        title: "string",
        description:
          "Makes Berth the cluster's primary CNI: the network list's file name on each node, such as `05-berth.conflist`. The runtime uses the file that sorts first. If empty, none is installed.",
      }),
    name: text.default("berth").meta({ description: "Name of the network." }),
    ...network,
  }),
  settings: closed("`vendor-conf`", vendorConfSchema).default({}).meta({
    description:
      "Settings, keys of [vendor-conf](resources.md#configmap-vendor-conf-key-confyml). If empty, no ConfigMap is created, and what one said before holds.",
  }),
  subnets: specs("Subnet", subnetSchema.shape.spec)
    .default({})
    .meta({ description: "[Subnets](resources.md#subnet)." }),
  ipPools: specs("IPPool", ipPoolSchema.shape.spec)
    .default({})
    .meta({ description: "[IPPools](resources.md#ippool)." }),
  reservedIPs: specs("ReservedIP", reservedIpSchema.shape.spec)
    .default({})
    .meta({ description: "[ReservedIPs](resources.md#reservedip)." }),
  coordinator: section({
    create: flag.default(true).meta({ description: "Create the Coordinator `default`." }),
    spec: closed("Coordinator spec", coordinatorSchema.shape.spec)
      .default({})
      .meta({ description: "Its [spec](resources.md#coordinator)." }),
  }),
  networks: z
    .array(definition)
    .default([])
    .meta({ description: "NetworkAttachmentDefinitions. Multus must be installed." }),
  serviceAccount: section({
    annotations: texts("annotations").default({}).meta({ description: "Annotations of all accounts." }),
  }),
  agent: section({
    ...pod,
    resources: resources("50m", "150Mi", "512Mi"),
    tolerations: tolerations
      .default([{ operator: "Exists" }])
      .meta({ description: "Taints that the pods tolerate: all." }),
    priorityClassName: text.default("system-node-critical").meta({ description: "Priority of the pods." }),
    maxUnavailable: z.union([z.int(), text]).default(1).meta({
      title: "number or string",
      description:
        "How many nodes are upgraded at the same time. Calls of CNI wait up to 20 seconds for the new agent.",
    }),
    hostPID: flag.default(false).meta({
      description:
        "Share the node's process IDs. Needed by a runtime that names network namespaces by `/proc/PID/ns/net`, with the capability `SYS_PTRACE`; containerd and CRI-O do not.",
    }),
    privileged: flag
      .default(false)
      .meta({ description: "Run privileged, for nodes whose security module forbids the list of capabilities." }),
    capabilities: z
      .array(text)
      .default(["NET_ADMIN", "NET_RAW", "SYS_ADMIN"])
      .meta({ description: "Capabilities of the agent; [all others are dropped](chart.md#privileges)." }),
    seccompProfile: profile("seccomp profile")
      .default({ type: "RuntimeDefault" })
      .meta({ description: "Filter of system calls." }),
    seLinuxOptions: z
      .strictObject({
        user: text.optional(),
        role: text.optional(),
        type: text.optional(),
        level: text.optional(),
      })
      .meta({ title: "SELinux options" })
      .default({})
      .meta({
        description:
          "SELinux label of the pods, such as `{type: spc_t}` on nodes that enforce SELinux. If empty, the platform's.",
      }),
    hostFiles: z.array(z.enum(HOST_FILES)).default([]).meta({
      title: "list of paths",
      description:
        "Files and folders of the nodes that [`kubectl berth check`](host.md) may read, mounted read-only. Each must exist on all nodes. `/etc/systemd/system` says which programs are enabled; the schema has the others.",
    }),
  }),
  controller: section({
    ...pod,
    replicas: z.int().min(0).default(2).meta({ description: "Replicas, each on its own node. One leads." }),
    resources: resources("50m", "192Mi", "1Gi"),
    affinity: pod.affinity.meta({
      description: "Affinity of the pods, beside the anti-affinity that keeps replicas on different nodes.",
    }),
    topologySpreadConstraints: z
      .array(object("object"))
      .default([])
      .meta({ description: "How replicas are spread; without a `labelSelector` all of them." }),
    tolerations: tolerations
      .default([
        { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
        { key: "CriticalAddonsOnly", operator: "Exists" },
        { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoSchedule" },
        { key: "node.kubernetes.io/network-unavailable", operator: "Exists", effect: "NoSchedule" },
        { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
        { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
      ])
      .meta({
        description:
          "Taints that the pods tolerate: control plane, nodes without a network; silent nodes for a minute.",
      }),
    priorityClassName: text.default("system-cluster-critical").meta({ description: "Priority of the pods." }),
    hostNetwork: flag
      .default(true)
      .meta({ description: "Use the node's network, so that the controller needs no pod network." }),
    port: z
      .int()
      .min(1)
      .max(65535)
      .default(9474)
      .meta({ description: "Port of `/healthz` and `/readyz`, on the node's loopback with `hostNetwork`." }),
    podDisruptionBudget: flag
      .default(true)
      .meta({ description: "Create a PodDisruptionBudget: one replica may be away." }),
    networkPolicy: flag.default(true).meta({
      description:
        "Create a NetworkPolicy: nothing connects to the controller but probes and metrics. Without effect with `hostNetwork`.",
    }),
  }),
  hostAgents: section({
    enabled: flag.default(false).meta({
      description:
        "Allow [agents that are services of a host](install-host.md#in-a-cluster), outside of the DaemonSet, to renew their node-bound tokens. `agent.nodeSelector` keeps the DaemonSet off these nodes.",
    }),
  }),
  flowSchema: section({
    enabled: flag
      .default(true)
      .meta({ description: "Give the agents' claims a share of the API server of their own." }),
  }),
  metrics: section({
    enabled: flag.default(false).meta({
      description:
        "Serve [metrics](monitoring.md) to the cluster: over TLS, to callers whose token may `get` the path `/metrics`. Otherwise they are on the agents' sockets and the controllers' loopback.",
    }),
    agentPort: z.int().min(1).max(65535).default(9473).meta({ description: "Port of the agents on their nodes." }),
    controllerPort: z
      .int()
      .min(1)
      .max(65535)
      .default(9475)
      .meta({ description: "Port of the controllers, on their nodes with `controller.hostNetwork`." }),
    listen: z.enum(["all", "pod"]).default("all").meta({
      description:
        "Addresses on which metrics and map are served: `all`, or the `pod`'s own, which on the node's network is the node's InternalIP.",
    }),
    tlsSecret: text.default("").meta({
      description:
        "Secret of the agents' certificate, in the release's namespace: `tls.crt`, `tls.key`, `ca.crt`; for the name `RELEASE-agent.NAMESPACE.svc`. If empty, the controller keeps [certificates](security.md#keys).",
    }),
    controllerTlsSecret: text.default("").meta({
      description:
        "The same for the controller and its map: another key, which is not on the nodes of agents, for all their Services' names.",
    }),
    issuerRef: z
      .strictObject({ name: text.optional(), kind: text.optional(), group: text.optional() })
      .meta({ title: "issuerRef" })
      .default({})
      .meta({
        description: "Issuer of cert-manager, which then keeps these certificates in place of the controller.",
      }),
    reader: section({
      namespace: text
        .default("")
        .meta({ description: "Namespace of Prometheus' account. If empty, no account gets the right to scrape." }),
      serviceAccount: text.default("").meta({ description: "Name of that account, such as `prometheus-k8s`." }),
    }),
  }),
  serviceMonitor: section({
    enabled: flag.default(false).meta({
      description: "Create ServiceMonitors for agents and controller, with the metrics that they need.",
    }),
    labels: texts("labels").default({}).meta({ description: "Labels by which Prometheus finds the ServiceMonitors." }),
    interval: text.default("30s").meta({ description: "Interval of scrapes." }),
    tlsConfig: object("TLS settings").default({}).meta({
      description:
        "How Prometheus checks the certificates, in place of: by `ca.crt` of their Secrets, for their Services' names.",
    }),
  }),
  docs: section({
    url: text.default("").meta({
      description:
        "Where this documentation is served, for `runbook_url` of alerts and the dashboard's links: your copy of the release's [site](develop/release.md#documentation). If empty, the project's.",
    }),
  }),
  prometheusRule: section({
    enabled: flag.default(false).meta({ description: "Create a PrometheusRule with [alerts](monitoring.md#alerts)." }),
    labels: texts("labels").default({}).meta({ description: "Labels by which Prometheus finds the PrometheusRule." }),
  }),
  grafanaDashboard: section({
    enabled: flag.default(false).meta({ description: "Create a ConfigMap with a dashboard for Grafana." }),
    labels: texts("labels")
      .default({ grafana_dashboard: "1" })
      .meta({ description: "Labels by which Grafana's sidecar finds the ConfigMap." }),
  }),
  crds: section({
    allowDeletion: flag.default(false).meta({
      description:
        "Let definitions, pools and Subnets be deleted in any order, [without Helm's hooks](gitops.md#delete): no policy and no finalizer keeps them, and generated pools no longer change. Set it shortly before.",
    }),
    apply: flag.default(true).meta({
      description: "Install and upgrade the custom resource definitions by a hook; Helm alone never upgrades them.",
    }),
  }),
  prePull: section({
    enabled: flag.default(true).meta({
      description:
        "Before an upgrade, pull the image on all nodes, by a hook: plugins wait 20 seconds for a new agent, and a pull may take longer.",
    }),
    timeoutSeconds: z.int().min(10).max(3600).default(120).meta({
      description: "Longest time of that; then the upgrade goes on and names the nodes. Less than Helm's `--timeout`.",
    }),
  }),
  hooks: section({
    resources: resources("10m", "64Mi", "512Mi").meta({
      description:
        "Requests and limits of each container of hooks, of their DaemonSets, and of the agent's installation.",
    }),
  }),
  uninstall: section({
    force: flag.default(false).meta({
      description: "Uninstall although addresses are in use. Their pods lose services and routes through the node.",
    }),
    keepState: flag
      .default(false)
      .meta({ description: "Keep all objects, their definitions, and registry and spool of the nodes." }),
    timeoutSeconds: z.int().min(30).max(3600).default(240).meta({
      description:
        "Longest time of the clean-up; nodes that are not cleaned by then are named. Less than Helm's `--timeout`.",
    }),
  }),
  ...(Object.assign({}, ...added) as z.ZodRawShape),
});

/** The decoded defaults. */
export function defaultValues(): z.output<typeof valuesSchema> {
  return valuesSchema.parse({});
}
