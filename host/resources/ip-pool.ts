/** The kind IPPool. Rules between pools are in check-pools.ts, its allocatable addresses in ip-pool-shape.ts. */
import * as z from "zod";
import { parseNetworkName } from "../cni/names.ts";
import { duration } from "../config/fields/duration.ts";
import { isDnsLabel, namespaceName, objectName } from "../config/fields/names.ts";
import { type LabelSelector, type Labels, labelSelector } from "../config/label-selector.ts";
import { type CelRule, cel, celText, IMMUTABLE, matchRule } from "../lib/cel.ts";
import { parsedText } from "../lib/schema.ts";
import { equalIp, parseIp } from "../net/ip.ts";
import { prefixContains } from "../net/prefix.ts";
import {
  ADDRESS_RULES,
  type AddressSpec,
  addressKeys,
  addressSpecOf,
  checkAddresses,
  SUBNET_RULES,
} from "./fields/address-spec.ts";
import { berthObject, decodeBerth, isDeleting } from "./fields/metadata.ts";
import { type SubnetPoolSpec, subnetPoolSpec } from "./fields/subnet-pool.ts";
import {
  decodePoolSource,
  type PoolSource,
  poolSourceSpec,
  rangesOfSource,
  SERVING,
  type SourceSpec,
} from "./pool-source.ts";

/** Most entries of each of `namespaceName`, `nodeName` and `multusName`. @limit */
export const MAX_NAMES = 1_024;

/** Longest entry of `multusName`, which is a namespace, a slash and a name: characters. */
const MAX_NETWORK_REFERENCE = 317;

declare const poolNameBrand: unique symbol;

/** The name of an IPPool: a DNS subdomain of at most 253 characters (RFC 1123). */
export type PoolName = string & { readonly [poolNameBrand]: true };

/** `ranges`: `ips` (by default the whole subnet), or with `source` the leased blocks; `excluded`: `excludeIPs`. */
export interface IpPoolSpec extends AddressSpec {
  readonly podAffinity?: LabelSelector | undefined;
  readonly namespaceAffinity?: LabelSelector | undefined;
  readonly nodeAffinity?: LabelSelector | undefined;
  /** An empty list of names does not restrict the pool. */
  readonly namespaceName: readonly string[];
  readonly nodeName: readonly string[];
  /** `name` or `namespace/name` of network definitions. */
  readonly multusName: readonly string[];
  readonly default: boolean;
  readonly disable: boolean;
  readonly selection: "hash" | "ascending";
  /** If undefined, `allocationCooldown` of vendor-conf applies. */
  readonly cooldownMs?: number | undefined;
  /** Undefined unless the controller generated the pool. */
  readonly generated?: SubnetPoolSpec | undefined;
  /** Undefined unless the pool leases its addresses. */
  readonly source?: SourceSpec | undefined;
}

export interface IpPool {
  readonly kind: "IPPool";
  readonly name: PoolName;
  readonly labels: Labels;
  readonly deleting: boolean;
  /** RFC 3339 in UTC, in whole seconds. Undefined in the embedded mode. */
  readonly created?: string | undefined;
  readonly spec: IpPoolSpec;
  /**
   * `status.wanted`: the last agent that found the pool exhausted, and when (cooling-visibility in
   * docs/develop/allocation.md).
   */
  readonly wanted?: string | undefined;
  /** `status.waiting`: the number of further pods of that agent that wait for a block. Default: none. */
  readonly waiting?: number | undefined;
  /** Why a generated or leasing pool has too few addresses: the message of its condition `Supplied` while False. */
  readonly shortfall?: string | undefined;
  /** Whether the controller has found the pool in order: its condition `Ready`. Default: it has not. */
  readonly isReady?: boolean;
  /** Whether the controller has read the present specification, and recorded its machines' addresses. Default: no. */
  readonly isObserved?: boolean;
  /** The blocks that it has leased. Undefined without `spec.source`. */
  readonly source?: PoolSource | undefined;
}

/** Returns `text` if it names a network definition, or a CNI configuration, whose name may contain more characters. */
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

/** The other keys by which a pool can get its addresses. */
const OTHER_SOURCES = ["ips", "generated"] as const;

const NOT_BESIDE_SOURCE = 'no such key beside "source"';

const PART_OF_SUBNET = "the subnet, or a part of it";

/** A segment's mask grows while pods run. Each pod gets the new one when it restarts. */
const WIDENED: CelRule = {
  rule: "self == oldSelf || (isCIDR(self) && isCIDR(oldSelf) && cidr(self).containsCIDR(oldSelf))",
  message: "the original network, or one around it",
  messageExpression: `'"' + oldSelf + '", or a network around it'`,
};

const NOT_WIDENED: CelRule = {
  rule: "self.subnet == oldSelf.subnet || !(has(self.generated) || (has(self.source) && has(self.source.range)))",
  message: "the original network, which is that of its Subnet or AddressRange",
  fieldPath: ".subnet",
};

const SOURCE_RULES: readonly CelRule[] = [
  ...OTHER_SOURCES.map((key) => ({
    rule: `!has(self.source) || !has(self.${key})`,
    message: NOT_BESIDE_SOURCE,
    fieldPath: `.${key}`,
  })),
  {
    rule: "!has(self.source) || !has(self.source.prefix) || !isCIDR(self.source.prefix) || !isCIDR(self.subnet) || cidr(self.subnet).containsCIDR(self.source.prefix)",
    message: PART_OF_SUBNET,
    fieldPath: ".source.prefix",
  },
  {
    rule: "!has(self.source) || !has(oldSelf.source) || self.source == oldSelf.source",
    message: IMMUTABLE.message,
    fieldPath: ".source",
  },
];

const FIRST = "each.substring(0, each.indexOf('-'))";
const BLOCKS = "self.status.source.blocks";
const LENGTH = `${BLOCKS}[0].block.substring(${BLOCKS}[0].block.indexOf('/'))`;

/**
 * A pool gets or loses a source only if its addresses stay: addresses of each block are given, and `ips` has a range
 * for it, from its first address on, in the same order.
 */
export const SOURCE_CHANGE_RULE: CelRule = {
  rule: [
    "has(self.spec.source) == has(oldSelf.spec.source)",
    [
      `has(self.status) && has(self.status.source) && self.status.source.epoch != '' && ${BLOCKS}.size() > 0`,
      `${BLOCKS}.all(each, each.state in [${SERVING.map(celText).join(", ")}])`,
      `[self, oldSelf].exists(one, has(one.spec.ips) && one.spec.ips.all(each, each.contains('-')) && ${[
        `one.spec.ips.map(each, ${FIRST}) == ${BLOCKS}.map(each, each.block.substring(0, each.block.indexOf('/')))`,
        `one.spec.ips.all(each, cidr(${FIRST} + ${LENGTH}).containsIP(each.substring(each.indexOf('-') + 1)))`,
      ].join(" && ")})`,
    ].join(" && "),
  ].join(" || "),
  message:
    "a source as before: only the commands `berthctl blocks adopt` and `leave` change it, with the addresses of its blocks",
  fieldPath: ".spec.source",
};

const spec = z
  .strictObject({
    ...addressKeys,
    subnet: addressKeys.subnet.meta({
      description:
        "Network in canonical CIDR form. Only a [network around it](pool-status.md#a-wider-mask) can replace it.",
      ...cel(...SUBNET_RULES, WIDENED),
    }),
    podAffinity: labelSelector.optional().meta({ description: "Only pods with these labels may use it." }),
    namespaceAffinity: labelSelector.optional().meta({ description: "Only pods in namespaces with these labels." }),
    nodeAffinity: labelSelector.optional().meta({ description: "Only pods on nodes with these labels." }),
    namespaceName: z.array(namespaceName).max(MAX_NAMES).default([]).meta({
      description: "Only pods in these namespaces. Wins over `namespaceAffinity`.",
    }),
    nodeName: z
      .array(objectName)
      .max(MAX_NAMES)
      .default([])
      .meta({ description: "Only pods on these nodes. Wins over `nodeAffinity`." }),
    multusName: z
      .array(networkReference)
      .max(MAX_NAMES)
      .default([])
      .meta({ description: "Only NICs of these network definitions." }),
    default: z.boolean().default(false).meta({ description: "Used when nothing else selects a pool." }),
    disable: z
      .boolean()
      .default(false)
      .meta({ description: "Allocates no new addresses. Pods keep the addresses they have." }),
    selection: z.enum(["hash", "ascending"]).default("hash").meta({
      description: "Where the search starts: at a hash of the pod, or at the lowest address.",
    }),
    cooldown: duration
      .optional()
      .meta({ description: "Time before a released address is allocated again. Defaults to `allocationCooldown`." }),
    generated: subnetPoolSpec
      .optional()
      .meta({ description: "Set by the controller on generated pools: workload and Subnet." }),
    source: poolSourceSpec.optional().meta({
      description:
        "The pool's addresses are blocks that this cluster leases, from a hub ([clusters](clusters.md)) or from Nautobot or NetBox, in place of `ips`. `berthctl blocks adopt` and `leave` change it (hub only).",
    }),
  })
  .check(checkAddresses)
  .check(({ value, issues }) => {
    for (const key of OTHER_SOURCES)
      if (value.source !== undefined && value[key] !== undefined)
        issues.push({ code: "custom", path: [key], message: NOT_BESIDE_SOURCE, input: value });
    const { prefix } = value.source?.prefix ?? {};
    const isPart =
      prefix === undefined || (prefix.length >= value.subnet.length && prefixContains(value.subnet, prefix.ip));
    if (!isPart) issues.push({ code: "custom", path: ["source", "prefix"], message: PART_OF_SUBNET, input: value });
  })
  .meta(cel(...ADDRESS_RULES, ...SOURCE_RULES, NOT_WIDENED))
  .transform(
    ({ ipVersion: _, subnet, ips, excludeIPs, gateway, routes, addressSpace, cooldown, ...rest }): IpPoolSpec => ({
      ...addressSpecOf({ subnet, ips: rest.source ? [] : ips, excludeIPs, gateway, routes, addressSpace }),
      ...rest,
      cooldownMs: cooldown,
    }),
  );

export const ipPoolSchema = berthObject("IPPool", spec);

/** Decodes an IPPool; `source` names it in the error. Throws ConfigError. */
export function decodeIpPool(value: unknown, source: string): IpPool {
  const { kind, metadata, spec, status } = decodeBerth(ipPoolSchema, value, source);
  const { wanted, waiting, routers, conditions, source: leases } = readStatus.parse(status);
  const leased = spec.source && decodePoolSource(spec.source, leases, spec.subnet);
  const conditionOf = (wanted: string) => conditions.find((condition) => condition?.type === wanted);
  const [supplied, ready] = [conditionOf("Supplied"), conditionOf("Ready")];
  return {
    kind,
    name: metadata.name as PoolName,
    labels: metadata.labels,
    deleting: isDeleting(metadata),
    created: metadata.creationTimestamp,
    spec: withRouters(leased === undefined ? spec : withBlocks(spec, leased), routers),
    source: leased,
    wanted,
    waiting,
    shortfall: supplied?.status === "False" ? supplied.message : undefined,
    ...(ready?.status === "True" && { isReady: true }),
    ...(ready !== undefined && ready.observedGeneration === metadata.generation && { isObserved: true }),
  };
}

function withBlocks(spec: IpPoolSpec, source: PoolSource): IpPoolSpec {
  return { ...spec, ranges: rangesOfSource(source, spec.subnet), excluded: [...spec.excluded, ...source.excluded] };
}

const readCondition = z.object({
  ...{ type: z.string(), status: z.string(), message: z.string() },
  observedGeneration: z.number().optional(),
});

/** Returns the specification that holds back former routers which its pods still use. */
export function withRouters(spec: IpPoolSpec, routers: Iterable<string>): IpPoolSpec {
  const { subnet, gateway, routes } = spec;
  const named = [...(gateway === undefined ? [] : [gateway]), ...routes.map(({ gw }) => gw)];
  const inside = [...routers].flatMap((text) => parseIp(text) ?? []).filter((ip) => prefixContains(subnet, ip));
  const formerRouters = inside.filter((ip) => !named.some((router) => equalIp(router, ip)));
  return formerRouters.length === 0 ? spec : { ...spec, formerRouters };
}

/** A malformed status leaves the pool readable, with undefined fields. */
const readStatus = z
  .object({
    wanted: z.string().optional().catch(undefined),
    waiting: z.int().min(0).optional().catch(undefined),
    routers: z.array(z.string()).catch([]),
    source: z.unknown().optional(),
    conditions: z.array(readCondition.optional().catch(undefined)).catch([]),
  })
  .catch({ wanted: undefined, waiting: undefined, routers: [], source: undefined, conditions: [] });
