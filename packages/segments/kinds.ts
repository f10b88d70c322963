/** The kind that a hub serves. */
import { AGE, type CustomKind, column, GATEWAY, SPACE, SUBNET, wide } from "../../host/resources/custom-kind.ts";
import { addressRangeSchema, addressRangeStatus } from "./address-range.ts";

export const KINDS: readonly CustomKind[] = [
  {
    kind: "AddressRange",
    plural: "addressranges",
    shortNames: ["iprange"],
    description: "A segment's addresses, leased in blocks to several clusters. Served by their hub.",
    spec: addressRangeSchema.shape.spec,
    specDescription: "The addresses, and the clusters that may lease.",
    status: addressRangeStatus,
    statusDescription: "The leases. Written by the members, each its own; nobody has a block that is not here.",
    columns: [
      SUBNET,
      column("Block", ".spec.blockSize", "Length of a block's prefix.", "integer"),
      column("Writes", ".status.sequence", "Number of writes of members.", "integer"),
      column("Restored", ".status.restored", "Whether members still write again what they have.", "boolean"),
      wide(GATEWAY),
      SPACE,
      AGE,
    ],
  },
];
