/**
 * The resource Subnet: addresses out of which pools are generated (specification, Resolved B).
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import type { Labels } from "../config/label-selector.ts";
import { cel } from "../lib/cel.ts";
import { ADDRESS_RULES, type AddressSpec, addressKeys, addressSpecOf, checkAddresses } from "./fields/address-spec.ts";
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
