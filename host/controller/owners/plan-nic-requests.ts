/**
 * From which Subnets each NIC of a workload's pods is to have addresses, family by family (specification 2.1, Resolved A).
 */
import { ANNOTATION_PREFIX, type FamilyNames, requireFamilies } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../config/network-definition.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { FAMILIES, type Family } from "../../net/ip.ts";
import { decodeNetworkDefinition } from "../../resources/network-attachment-definition.ts";
import type { DemandSettings } from "../types.ts";
import type { SubnetTemplate } from "./tracked-object.ts";

export interface NicRequest {
  readonly ifName: string;
  readonly family: Family;
  /** Each once, in the order written. */
  readonly subnets: readonly string[];
}

/** What the NetworkAttachmentDefinition of the name `namespace/name` leads to; "unknown": there is none. */
export type NetworkProvider = "berth" | "foreign" | "unknown";

export type ProviderLookup = (name: string) => NetworkProvider;

type SubnetRequests = Extract<SubnetTemplate, { kind: "requests" }>;

/** Throws ConfigError. */
export function planNicRequests(
  template: SubnetRequests,
  settings: DemandSettings,
  attachments: ProviderLookup,
): NicRequest[] {
  const { subnet, subnets } = template;
  const requestsOf = (annotation: string, path: string, entry: FamilyNames) => {
    requireFamilies(`${ANNOTATION_PREFIX}${annotation}`, path, entry, settings);
    return (ifName: string) => familiesOf(entry, settings).map((request) => ({ ifName, ...request }));
  };
  if (subnets !== undefined)
    return subnets.flatMap((entry, index) => requestsOf("subnets", `[${index}]`, entry)(entry.interface));
  if (subnet === undefined) return [];
  return nicsOf(template, settings, attachments).flatMap(requestsOf("subnet", "", subnet));
}

function familiesOf(
  { ipv4, ipv6 }: FamilyNames,
  { enableIPv4, enableIPv6 }: DemandSettings,
): Omit<NicRequest, "ifName">[] {
  const named = { 4: enableIPv4 ? ipv4 : undefined, 6: enableIPv6 ? ipv6 : undefined };
  return FAMILIES.flatMap((family) => {
    const subnets = named[family];
    return subnets === undefined ? [] : [{ family, subnets: [...new Set(subnets)] }];
  });
}

/** Names of the NICs that Berth serves, each once. */
function nicsOf(
  { first, others }: SubnetRequests,
  { firstNic }: DemandSettings,
  attachments: ProviderLookup,
): string[] {
  // A first network of the pod's own is another one than the cluster's; while it is not there, the pod cannot start.
  const isServed = first === undefined || attachments(first) === "berth";
  const nics = others.filter(({ attachment }) => attachments(attachment) === "berth").map(({ ifName }) => ifName);
  return [...new Set([...(isServed && firstNic !== undefined ? [firstNic] : []), ...nics])];
}

/**
 * What cannot be understood is not Berth's: no pod can be attached to it. Without a configuration the files of the nodes have it, which nobody
 * here can read: then it may be Berth's, and a pool too many is better than a pod that waits for ever.
 */
export function isServedByBerth(object: KubeObject): boolean {
  const source = describeObject(object);
  try {
    const { name, config, oversizeBytes } = decodeNetworkDefinition(object, source);
    if (oversizeBytes !== undefined) return false;
    return config.trim() === "" || findIpamConf(decodeAttachedNetwork(config, name, source).plugins) !== undefined;
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}
