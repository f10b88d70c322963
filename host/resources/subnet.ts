/**
 * The resource Subnet: addresses out of which pools are generated (specification, Resolved B).
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { type AddressSpec, addressKeys, addressSpecOf, checkAddresses } from "./address-spec.ts";
import { berthObject, isDeleting } from "./metadata.ts";

export interface Subnet {
  readonly kind: "Subnet";
  readonly name: string;
  readonly labels: Labels;
  readonly deleting: boolean;
  readonly spec: AddressSpec;
}

export const subnetSchema = berthObject(
  "Subnet",
  z.strictObject(addressKeys).check(checkAddresses).transform(addressSpecOf),
);

/** Throws ConfigError. */
export function decodeSubnet(value: unknown, source: string): Subnet {
  const { kind, metadata, spec } = decodeConfig(subnetSchema, value, source);
  return { kind, name: metadata.name, labels: metadata.labels, deleting: isDeleting(metadata), spec };
}
