/**
 * The resource ReservedIP: addresses that no pool of an address space hands out (spec.md, Resolved B).
 * Called by the manifests and the watches.
 * Effects: none.
 */
import type { Family } from "../net/ip.ts";
import type { Range } from "../net/range.ts";

export interface ReservedIp {
  readonly kind: "ReservedIP";
  readonly name: string;
  readonly spec: {
    readonly family: Family;
    readonly ranges: readonly Range[];
    /** "" is the default space. */
    readonly addressSpace: string;
  };
}
