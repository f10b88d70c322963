/** Decodes the objects in which kubeadm, Cilium, Calico, the control plane and Kubernetes describe the cluster's networks. */
import * as z from "zod";
import { parseYaml } from "../../config/yaml.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { messageOf } from "../../lib/describe.ts";
import { decode, formatMismatches } from "../../lib/schema.ts";
import { FAMILIES } from "../../net/ip.ts";
import type { CiliumPoolStatement, CiliumSettings, ControlPlanePod, KubeadmNetworks } from "./sources.ts";
import { faultyStatement, findFlag, readStatements, type Statement } from "./statement.ts";

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
export const COMPONENT_LABEL = "component";

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

const serviceCidrSchema = z.object({ spec: z.object({ cidrs: z.array(z.string()).nullish() }).nullish() });

export function readServiceCidr(object: KubeObject): readonly Statement[] {
  const place = `ServiceCIDR ${nameOf(object)}`;
  const decoded = decode(serviceCidrSchema, object);
  if (!decoded.ok) return [faultyStatement(place, formatMismatches(decoded.mismatches))];
  return readStatements(place, decoded.value.spec?.cidrs ?? []);
}
