/** Watches the sources of a cluster's networks as narrowly as the API server allows. Looks for missing kinds again. */
import * as z from "zod";
import { parseYaml } from "../../config/yaml.ts";
import { inAnyVersion } from "../../kubernetes/any-version.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { CONFIG_MAPS, collectionPath, PODS, type Resource } from "../../kubernetes/paths.ts";
import type { Reflector } from "../../kubernetes/reflector.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { decode, formatMismatches } from "../../lib/schema.ts";
import { FAMILIES, type Family } from "../../net/ip.ts";
import { type Followed, followObjects } from "../follow-objects.ts";
import type { Cache } from "../types.ts";
import type { SourceState } from "./finding.ts";
import { faultyStatement, findFlag, readStatements, type Statement } from "./statement.ts";

/** Empty lists: kubeadm-config does not name any. */
interface KubeadmNetworks {
  readonly podSubnet: readonly Statement[];
  readonly serviceSubnet: readonly Statement[];
}

/** The command line of a static pod of the control plane. */
export interface ControlPlanePod {
  /** `kube-apiserver`, `kube-controller-manager` */
  readonly component: string;
  readonly clusterCidr: readonly Statement[];
  readonly serviceRange: readonly Statement[];
}

interface CiliumSettings {
  /** `cluster-pool`, `kubernetes`, `multi-pool`, `eni`, …; "" if unset. */
  readonly ipam: string;
  readonly families: readonly Family[];
  /** Pools of the whole cluster, in the enabled families. */
  readonly pools: readonly Statement[];
  readonly faults: readonly string[];
}

interface CiliumPoolStatement extends Statement {
  readonly family: Family;
}

export interface SourceStates {
  readonly serviceCidrs: SourceState<readonly Statement[]>;
  readonly kubeadm: SourceState<KubeadmNetworks>;
  readonly controlPlane: SourceState<ControlPlanePod>;
  /** `crd.projectcalico.org/v1` */
  readonly calico: SourceState<readonly Statement[]>;
  /** `projectcalico.org/v3`: of Calico's own API server, or without the other group. */
  readonly calicoNative: SourceState<readonly Statement[]>;
  readonly cilium: SourceState<CiliumSettings>;
  readonly ciliumPools: SourceState<readonly CiliumPoolStatement[]>;
  readonly nodes: readonly { readonly name: string; readonly podCidrs: readonly string[] }[];
}

interface SourcesOptions {
  readonly api: KubeApi;
  readonly nodes: Cache<SourceStates["nodes"][number]>;
  readonly log: Log;
  readonly random: () => number;
  /** Called when the findings may have changed. */
  readonly onChange: () => void;
}

export interface Sources {
  readonly states: SourceStates;
  /** Whether each source has been complete once. */
  readonly areRead: boolean;
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Its state is that at the moment of reading. */
interface Source<T> extends SourceState<T> {
  readonly reflector: Pick<Reflector<T>, "problems" | "close">;
}

/** The namespace of the objects of kubeadm, Cilium and the control plane. */
const SYSTEM = "kube-system";

/** Starts to watch at once. */
export function openSources({ api, nodes, log, random, onChange }: SourcesOptions): Sources {
  const follow = <T>(own: Followed<T>, from = api): Source<T> => {
    const reflector = followObjects({ api: from, log, random }, onChange, own);
    return {
      ...{ place: own.name, reflector },
      get items() {
        return [...reflector.items.values()];
      },
      get isRead() {
        return reflector.isSynced;
      },
      get problem() {
        return reflector.problems[0];
      },
    };
  };
  const configMap = <T>(name: string, read: (object: KubeObject) => T): Source<T> =>
    follow({
      name: `ConfigMap kube-system/${name}`,
      path: collectionPath(CONFIG_MAPS, SYSTEM),
      decode: read,
      fieldSelector: `metadata.name=${name}`,
    });
  const kind = <T>(name: string, resource: Resource, decode: (object: KubeObject) => T): Source<T> =>
    follow({ name, path: collectionPath(resource), optional: true, decode }, inAnyVersion(api, resource));
  const sources = {
    serviceCidrs: kind(
      "ServiceCIDR objects",
      { apiVersion: "networking.k8s.io/v1", plural: "servicecidrs" },
      readServiceCidr,
    ),
    kubeadm: configMap("kubeadm-config", readKubeadm),
    controlPlane: follow({
      name: "the control plane's pods",
      path: collectionPath(PODS, SYSTEM),
      decode: readControlPlanePod,
      labelSelector: `${COMPONENT_LABEL} in (kube-apiserver,kube-controller-manager)`,
    }),
    calico: kind("Calico's IPPools", { apiVersion: "crd.projectcalico.org/v1", plural: "ippools" }, readCalicoPool),
    calicoNative: kind(
      "Calico's IPPools (projectcalico.org/v3)",
      { apiVersion: "projectcalico.org/v3", plural: "ippools" },
      readCalicoPool,
    ),
    cilium: configMap("cilium-config", readCiliumSettings),
    ciliumPools: kind(
      "CiliumPodIPPools",
      { apiVersion: "cilium.io/v2alpha1", plural: "ciliumpodippools" },
      readCiliumPool,
    ),
  };
  const all: readonly Source<unknown>[] = Object.values(sources);
  const leave = nodes.subscribe((change) => {
    const now = change.kind === "set" ? change.value.podCidrs : [];
    if (now.join() !== (change.before?.podCidrs ?? []).join()) onChange();
  });
  return {
    get states() {
      return { ...sources, nodes: [...nodes.items.values()] };
    },
    get areRead() {
      return all.every(({ isRead }) => isRead);
    },
    get problems() {
      return all.flatMap(({ reflector }) => reflector.problems);
    },
    close: async () => {
      leave();
      await Promise.all(all.map(({ reflector }) => reflector.close()));
    },
  };
}

const KEY = "ClusterConfiguration";

const mapSchema = z.object({ data: z.object({ [KEY]: z.string().optional() }).nullish() });

/** Dual-stack clusters have a comma-separated list in each. */
const subnets = z.object({ podSubnet: z.string().nullish(), serviceSubnet: z.string().nullish() });

const configurationSchema = z.object({ networking: subnets.nullish() }).nullish();

export function readKubeadm(object: KubeObject): KubeadmNetworks {
  const place = "ConfigMap kube-system/kubeadm-config";
  const unreadable = (reason: string): KubeadmNetworks => {
    const statements = [faultyStatement(`${place}, ${KEY}`, reason)];
    return { podSubnet: statements, serviceSubnet: statements };
  };
  const map = decode(mapSchema, object);
  if (!map.ok) return unreadable(formatMismatches(map.mismatches));
  let value: unknown;
  try {
    value = parseYaml(map.value.data?.[KEY] ?? "", KEY)[0]?.value;
  } catch (error) {
    return unreadable(messageOf(error).replace(`${KEY}: `, ""));
  }
  const configuration = decode(configurationSchema, value);
  if (!configuration.ok) return unreadable(formatMismatches(configuration.mismatches));
  const { podSubnet, serviceSubnet } = configuration.value?.networking ?? {};
  return {
    podSubnet: readStatements(`${place}, networking.podSubnet`, [podSubnet ?? ""]),
    serviceSubnet: readStatements(`${place}, networking.serviceSubnet`, [serviceSubnet ?? ""]),
  };
}

const settingsSchema = z.object({ data: z.record(z.string(), z.string()).nullish() });

export function readCiliumSettings(object: KubeObject): CiliumSettings {
  const place = "ConfigMap kube-system/cilium-config";
  const decoded = decode(settingsSchema, object);
  if (!decoded.ok) {
    const faults = [`${place}: ${formatMismatches(decoded.mismatches)}`];
    return { ipam: "", families: [], pools: [], faults };
  }
  const settings = decoded.value.data ?? {};
  const families = FAMILIES.filter((family) => settings[`enable-ipv${family}`] !== "false");
  const pools = families.flatMap((family) => {
    const key = `cluster-pool-ipv${family}-cidr`;
    return readStatements(`${place}, ${key}`, [settings[key] ?? ""]);
  });
  return { ipam: settings.ipam ?? "", families, pools, faults: [] };
}

const cidrs = z.object({ cidrs: z.array(z.string()).nullish() }).nullish();

const poolSchema = z.object({ spec: z.object({ ipv4: cidrs, ipv6: cidrs }) });

export function readCiliumPool(object: KubeObject): readonly CiliumPoolStatement[] {
  const place = `CiliumPodIPPool ${nameOf(object)}`;
  const decoded = decode(poolSchema, object);
  if (!decoded.ok) return [{ ...faultyStatement(place, formatMismatches(decoded.mismatches)), family: 4 }];
  const { ipv4, ipv6 } = decoded.value.spec;
  const listed = { 4: ipv4?.cidrs ?? [], 6: ipv6?.cidrs ?? [] };
  return FAMILIES.flatMap((family) => readStatements(place, listed[family]).map((each) => ({ ...each, family })));
}

const calicoPoolSchema = z.object({
  spec: z.object({ cidr: z.string(), allowedUses: z.array(z.string()).nullish() }),
});

export function readCalicoPool(object: KubeObject): readonly Statement[] {
  const place = `Calico's IPPool ${nameOf(object)}`;
  const decoded = decode(calicoPoolSchema, object);
  if (!decoded.ok) return [faultyStatement(place, formatMismatches(decoded.mismatches))];
  const { cidr, allowedUses } = decoded.value.spec;
  const uses = allowedUses ?? [];
  return uses.length === 0 || uses.includes("Workload") ? readStatements(place, [cidr]) : [];
}

const words = z.array(z.string()).nullish();

const controlPlanePodSchema = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()).nullish() }),
  spec: z.object({ containers: z.array(z.object({ command: words, args: words })) }),
  status: z.object({ phase: z.string().optional() }).nullish(),
});

/** The label with which kubeadm and compatible installers mark the control plane. */
const COMPONENT_LABEL = "component";

export function readControlPlanePod(object: KubeObject): ControlPlanePod {
  const decoded = decode(controlPlanePodSchema, object);
  if (!decoded.ok) return { component: "", clusterCidr: [], serviceRange: [] };
  const { metadata, spec, status } = decoded.value;
  const isOver = status?.phase === "Succeeded" || status?.phase === "Failed";
  // If the image has an entry point, the flags are in the arguments.
  const command = spec.containers.flatMap((container) => [...(container.command ?? []), ...(container.args ?? [])]);
  const read = (flag: string) =>
    readStatements(`Pod ${nameOf(object)}, --${flag}`, isOver ? [] : [findFlag(flag, command) ?? ""]);
  return {
    component: metadata.labels?.[COMPONENT_LABEL] ?? "",
    clusterCidr: read("cluster-cidr"),
    serviceRange: read("service-cluster-ip-range"),
  };
}

const namedSchema = z.object({ metadata: z.object({ name: z.string() }) });

function nameOf(object: KubeObject): string {
  return namedSchema.safeParse(object).data?.metadata.name ?? "without a name";
}

const serviceCidrSchema = z.object({ spec: cidrs });

export function readServiceCidr(object: KubeObject): readonly Statement[] {
  const place = `ServiceCIDR ${nameOf(object)}`;
  const decoded = decode(serviceCidrSchema, object);
  if (!decoded.ok) return [faultyStatement(place, formatMismatches(decoded.mismatches))];
  return readStatements(place, decoded.value.spec?.cidrs ?? []);
}
