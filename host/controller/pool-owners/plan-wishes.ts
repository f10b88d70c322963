/**
 * From which Subnets each NIC of a workload's pods is to have addresses, family by family (specification 2.1, Resolved A).
 */
import { ANNOTATION_PREFIX, type FamilyNames, requireFamilies } from "../../config/annotations.ts";
import { FAMILIES, type Family } from "../../net/ip.ts";
import type { DemandSettings } from "../types.ts";
import type { SubnetTemplate } from "./tracked.ts";

export interface NicWish {
  readonly ifName: string;
  readonly family: Family;
  /** Each once, in the order written. */
  readonly subnets: readonly string[];
}

/** What the NetworkAttachmentDefinition of the name `namespace/name` leads to; "unknown": there is none. */
export type AttachmentSight = "berth" | "foreign" | "unknown";

export type Attachments = (name: string) => AttachmentSight;

type Wishes = Extract<SubnetTemplate, { kind: "wishes" }>;

/** Throws ConfigError. */
export function planWishes(template: Wishes, settings: DemandSettings, attachments: Attachments): NicWish[] {
  const { subnet, subnets } = template;
  const wishesOf = (annotation: string, path: string, entry: FamilyNames) => {
    requireFamilies(`${ANNOTATION_PREFIX}${annotation}`, path, entry, settings);
    return (ifName: string) => familiesOf(entry, settings).map((wish) => ({ ifName, ...wish }));
  };
  if (subnets !== undefined)
    return subnets.flatMap((entry, index) => wishesOf("subnets", `[${index}]`, entry)(entry.interface));
  if (subnet === undefined) return [];
  return nicsOf(template, settings, attachments).flatMap(wishesOf("subnet", "", subnet));
}

function familiesOf(
  { ipv4, ipv6 }: FamilyNames,
  { enableIPv4, enableIPv6 }: DemandSettings,
): Omit<NicWish, "ifName">[] {
  const named = { 4: enableIPv4 ? ipv4 : undefined, 6: enableIPv6 ? ipv6 : undefined };
  return FAMILIES.flatMap((family) => {
    const subnets = named[family];
    return subnets === undefined ? [] : [{ family, subnets: [...new Set(subnets)] }];
  });
}

/** Names of the NICs that Berth serves, each once. */
function nicsOf({ first, others }: Wishes, { firstNic }: DemandSettings, attachments: Attachments): string[] {
  // A first network of the pod's own is another one than the cluster's; while it is not there, the pod cannot start.
  const isServed = first === undefined || attachments(first) === "berth";
  const nics = others.filter(({ attachment }) => attachments(attachment) === "berth").map(({ ifName }) => ifName);
  return [...new Set([...(isServed && firstNic !== undefined ? [firstNic] : []), ...nics])];
}
