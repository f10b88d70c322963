/**
 * The resource IPPool: a set of addresses of one subnet, and who may use it (specification, Resolved B).
 * Called by the manifests and the watches; what spans pools is check-pools.ts, what may be handed out ip-pool-shape.ts.
 */
import { z } from "zod";
import { parseNetworkName } from "../cni/names.ts";
import { duration } from "../config/fields/duration.ts";
import { isDnsLabel, namespaceName, objectName } from "../config/fields/names.ts";
import { type LabelSelector, type Labels, labelSelector } from "../config/label-selector.ts";
import { cel, matchRule } from "../lib/cel.ts";
import { parsedText } from "../lib/schema.ts";
import { ADDRESS_RULES, type AddressSpec, addressKeys, addressSpecOf, checkAddresses } from "./fields/address-spec.ts";
import { berthObject, decodeBerth, isDeleting } from "./fields/metadata.ts";
import { type Generated, generated } from "./fields/subnet-pool.ts";

/** Most entries of each of `namespaceName`, `nodeName` and `multusName`. @limit */
export const MAX_NAMES = 1_024;

/** Longest entry of `multusName`: characters. A namespace, a slash and a name. @limit */
export const MAX_NETWORK_REFERENCE = 317;

declare const poolNameBrand: unique symbol;

/** The name of an IPPool: a DNS subdomain of at most 253 characters (RFC 1123). */
export type PoolName = string & { readonly [poolNameBrand]: true };

/** `ranges` are `ips`: the whole subnet when that is absent, nothing when it is empty; `excluded` is `excludeIPs`. */
export interface IpPoolSpec extends AddressSpec {
  readonly podAffinity?: LabelSelector | undefined;
  readonly namespaceAffinity?: LabelSelector | undefined;
  readonly nodeAffinity?: LabelSelector | undefined;
  /** Empty name lists bind nothing. */
  readonly namespaceName: readonly string[];
  readonly nodeName: readonly string[];
  /** `name` or `namespace/name` of network definitions. */
  readonly multusName: readonly string[];
  readonly default: boolean;
  readonly disable: boolean;
  readonly selection: "hash" | "ascending";
  /** Absent: `allocationCooldown` of vendor-conf. */
  readonly cooldownMs?: number | undefined;
  /** Absent: somebody has made the pool by hand. */
  readonly generated?: Generated | undefined;
}

export interface IpPool {
  readonly kind: "IPPool";
  readonly name: PoolName;
  readonly labels: Labels;
  readonly deleting: boolean;
  /** RFC 3339, in whole seconds of UTC as the API server writes it. Absent: the pool is not from an API server. */
  readonly created?: string | undefined;
  readonly spec: IpPoolSpec;
  /** `status.wanted`: the last agent that found the pool exhausted, and when (allocation rule 10). */
  readonly wanted?: string | undefined;
  /** Why a generated pool has fewer addresses than it is to have: the message of the condition `Supplied` while that is False. */
  readonly lack?: string | undefined;
}

/** A network definition, or a CNI configuration, whose names know more letters. */
function parseNetworkReference(text: string): string | undefined {
  const slash = text.indexOf("/");
  const namespaceHolds = slash < 0 || isDnsLabel(text.slice(0, slash));
  return namespaceHolds && parseNetworkName(text.slice(slash + 1)) !== undefined ? text : undefined;
}

const REFERENCE_FORM = "the name of a network, or namespace/name";
const REFERENCE = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?[/])?[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

const networkReference = parsedText(parseNetworkReference, REFERENCE_FORM, MAX_NETWORK_REFERENCE).meta(
  cel(matchRule(REFERENCE, REFERENCE_FORM)),
);

const spec = z
  .strictObject({
    ...addressKeys,
    podAffinity: labelSelector.optional().meta({ description: "Only for pods with these labels." }),
    namespaceAffinity: labelSelector.optional().meta({ description: "Only for pods in namespaces with these labels." }),
    nodeAffinity: labelSelector.optional().meta({ description: "Only for pods on nodes with these labels." }),
    namespaceName: z
      .array(namespaceName)
      .max(MAX_NAMES)
      .default([])
      .meta({ description: "Only for pods in these namespaces; wins over `namespaceAffinity`." }),
    nodeName: z
      .array(objectName)
      .max(MAX_NAMES)
      .default([])
      .meta({ description: "Only for pods on these nodes; wins over `nodeAffinity`." }),
    multusName: z
      .array(networkReference)
      .max(MAX_NAMES)
      .default([])
      .meta({ description: "Only for NICs of these network definitions." }),
    default: z.boolean().default(false).meta({ description: "For pods whom nothing stronger gives pools." }),
    disable: z.boolean().default(false).meta({ description: "No new addresses; those held stay." }),
    selection: z
      .enum(["hash", "ascending"])
      .default("hash")
      .meta({ description: "Where the search for a free address begins." }),
    cooldown: duration
      .optional()
      .meta({ description: "Time for which a released address rests; absent: `allocationCooldown`." }),
    generated: generated
      .optional()
      .meta({ description: "Of a pool that the controller made: for whom. Written by the controller alone." }),
  })
  .check(checkAddresses)
  .meta(cel(...ADDRESS_RULES))
  .transform(
    ({ ipVersion: _, subnet, ips, excludeIPs, gateway, routes, addressSpace, cooldown, ...rest }): IpPoolSpec => ({
      ...addressSpecOf({ subnet, ips, excludeIPs, gateway, routes, addressSpace }),
      ...rest,
      cooldownMs: cooldown,
    }),
  );

export const ipPoolSchema = berthObject("IPPool", spec);

/** Throws ConfigError. */
export function decodeIpPool(value: unknown, source: string): IpPool {
  const { kind, metadata, spec, status } = decodeBerth(ipPoolSchema, value, source);
  const { wanted, conditions } = readStatus.parse(status);
  return {
    kind,
    name: metadata.name as PoolName,
    labels: metadata.labels,
    deleting: isDeleting(metadata),
    created: metadata.creationTimestamp,
    spec,
    wanted,
    lack: conditions.find((condition) => condition?.type === "Supplied" && condition.status === "False")?.message,
  };
}

/** A status never makes a pool unreadable. */
const readStatus = z
  .object({
    wanted: z.string().optional().catch(undefined),
    conditions: z
      .array(z.object({ type: z.string(), status: z.string(), message: z.string() }).optional().catch(undefined))
      .catch([]),
  })
  .catch({ wanted: undefined, conditions: [] });
