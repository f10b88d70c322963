/**
 * The resource Subnet: addresses out of which pools are generated (specification, Resolved B).
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { cel } from "../lib/cel.ts";
import type { Range } from "../net/range.ts";
import {
  ADDRESS_RULES,
  type AddressSpec,
  addressKeys,
  addressSpecOf,
  checkAddresses,
  ranges,
} from "./fields/address-spec.ts";
import { berthObject, decodeBerth, isDeleting } from "./fields/metadata.ts";

export interface Subnet {
  readonly kind: "Subnet";
  readonly name: string;
  readonly labels: Labels;
  readonly deleting: boolean;
  readonly spec: AddressSpec;
}

export const subnetSchema = berthObject(
  "Subnet",
  z
    .strictObject(addressKeys)
    .check(checkAddresses)
    .meta(cel(...ADDRESS_RULES))
    .transform(addressSpecOf),
);

/** Throws ConfigError. */
export function decodeSubnet(value: unknown, source: string): Subnet {
  const { kind, metadata, spec } = decodeBerth(subnetSchema, value, source);
  return { kind, name: metadata.name, labels: metadata.labels, deleting: isDeleting(metadata), spec };
}

/** What a Subnet's status says of one pool: these addresses are its alone. */
export interface Assignment {
  /** The pool's name. */
  readonly name: string;
  readonly ips: readonly Range[];
  /** `Deployment shop/web` */
  readonly application: string;
}

export interface Assignments {
  readonly revision: number;
  readonly pools: readonly Assignment[];
}

const assignments = z.object({
  revision: z.number().default(0),
  pools: z
    .array(z.object({ name: z.string(), ips: ranges.default([]), application: z.string().default("") }))
    .default([]),
});

/** `status` of a Subnet, of which nothing need be there. Throws ConfigError: who cannot read what is assigned must not assign more. */
export function decodeAssignments(status: unknown, source: string): Assignments {
  return decodeConfig(assignments, status ?? {}, source);
}
