/** The Subnets from which each NIC of a workload's pods gets addresses, by family. */
import { ANNOTATION_PREFIX, type FamilyNames, isEnabled, requireFamilies } from "../../config/annotations.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../config/network-definition.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { FAMILIES, type Family } from "../../net/ip.ts";
import { decodeNetworkDefinition } from "../../resources/network-attachment-definition.ts";
import { ifDecodable } from "../if-decodable.ts";
import type { DemandSettings } from "../types.ts";
import type { SubnetTemplate } from "./tracked-object.ts";

export interface NicRequest {
  readonly ifName: string;
  readonly family: Family;
  /** Without duplicates, in the order of the annotation. */
  readonly subnets: readonly string[];
}

/** The provider of addresses in the network of a NetworkAttachmentDefinition `namespace/name`; "unknown": absent. */
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
  return nicsOf(template, settings, attachments).flatMap(requestsOf("subnet", "", subnet ?? {}));
}

function familiesOf(entry: FamilyNames, settings: DemandSettings): Omit<NicRequest, "ifName">[] {
  return FAMILIES.flatMap((family) => {
    const subnets = entry[`ipv${family}`];
    return subnets === undefined || !isEnabled(family, settings) ? [] : [{ family, subnets: [...new Set(subnets)] }];
  });
}

/** Returns the names of the NICs that Berth serves, without duplicates. */
function nicsOf(
  { first, others }: SubnetRequests,
  { firstNic }: DemandSettings,
  attachments: ProviderLookup,
): string[] {
  // The pod's own first network replaces the cluster's. While its definition is missing, the pod cannot start.
  const isServed = first === undefined || attachments(first) === "berth";
  const nics = others.filter(({ attachment }) => attachments(attachment) === "berth").map(({ ifName }) => ifName);
  return [...new Set([...(isServed && firstNic !== undefined ? [firstNic] : []), ...nics])];
}

/**
 * No pod can be attached to a definition that cannot be decoded. A definition without a configuration refers to files
 * of the nodes, which cannot be read here: it counts as Berth's, since a needless pool is better than a pod that waits
 * for ever.
 */
export function isServedByBerth(object: KubeObject): boolean {
  const source = describeObject(object);
  const isServed = ifDecodable(() => {
    const { name, config, oversizeBytes } = decodeNetworkDefinition(object, source);
    if (oversizeBytes !== undefined) return false;
    return config.trim() === "" || findIpamConf(decodeAttachedNetwork(config, name, source).plugins) !== undefined;
  });
  return isServed ?? false;
}
