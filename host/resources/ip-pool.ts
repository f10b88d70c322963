/**
 * The resource IPPool: a set of addresses of one subnet, and who may use it (spec.md, Resolved B).
 * Called by the manifests and the watches; what spans pools is check-pools.ts, what may be handed out ip-pool-shape.ts.
 * Effects: none.
 */
import type { LabelSelector, Labels } from "../config/label-selector.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { Prefix } from "../net/prefix.ts";
import type { Range } from "../net/range.ts";

declare const poolNameBrand: unique symbol;

/** The name of an IPPool: a DNS subdomain of at most 253 characters (RFC 1123). */
export type PoolName = string & { readonly [poolNameBrand]: true };

export interface PoolRoute {
  readonly dst: Prefix;
  readonly gw: Ip;
}

export interface IpPoolSpec {
  readonly family: Family;
  readonly subnet: Prefix;
  /** `ips`; the whole subnet when that is absent, nothing when it is empty. */
  readonly ranges: readonly Range[];
  /** `excludeIPs`. */
  readonly excluded: readonly Range[];
  readonly gateway?: Ip | undefined;
  readonly routes: readonly PoolRoute[];
  readonly podAffinity?: LabelSelector | undefined;
  readonly namespaceAffinity?: LabelSelector | undefined;
  readonly nodeAffinity?: LabelSelector | undefined;
  /** Empty name lists bind nothing. */
  readonly namespaceName: readonly string[];
  readonly nodeName: readonly string[];
  readonly multusName: readonly string[];
  readonly default: boolean;
  readonly disable: boolean;
  /** "" is the default space. */
  readonly addressSpace: string;
  readonly selection: "hash" | "ascending";
  /** Absent: `allocationCooldown` of vendor-conf. */
  readonly cooldownMs?: number | undefined;
}

export interface IpPool {
  readonly kind: "IPPool";
  readonly name: PoolName;
  readonly labels: Labels;
  /** It has a deletionTimestamp. */
  readonly deleting: boolean;
  readonly spec: IpPoolSpec;
}
