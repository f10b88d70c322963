/**
 * The resource Subnet: addresses out of which pools are generated (spec.md, Resolved B).
 * Called by the manifests and the watches.
 * Effects: none.
 */
import type { Labels } from "../config/label-selector.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { Prefix } from "../net/prefix.ts";
import type { Range } from "../net/range.ts";
import type { PoolRoute } from "./ip-pool.ts";

export interface Subnet {
  readonly kind: "Subnet";
  readonly name: string;
  readonly labels: Labels;
  readonly deleting: boolean;
  readonly spec: {
    readonly family: Family;
    readonly subnet: Prefix;
    readonly ranges: readonly Range[];
    readonly excluded: readonly Range[];
    readonly gateway?: Ip | undefined;
    readonly routes: readonly PoolRoute[];
    readonly addressSpace: string;
  };
}
