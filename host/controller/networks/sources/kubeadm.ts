/**
 * The ConfigMap kube-system/kubeadm-config, in whose key `ClusterConfiguration` kubeadm writes what it set the cluster up with.
 */
import { z } from "zod";
import { parseYaml } from "../../../config/yaml.ts";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";
import { messageOf } from "../../../lib/describe.ts";
import { decode, formatMismatches } from "../../../lib/schema.ts";
import type { KubeadmNetworks } from "../sightings.ts";
import { faultyStatement, readStatements } from "../statement.ts";

const KEY = "ClusterConfiguration";

const mapSchema = z.object({ data: z.object({ [KEY]: z.string().optional() }).nullish() });

/** Dual-stack clusters have a list with commas in each. */
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
