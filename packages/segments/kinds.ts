/** The kinds that a hub serves. */
import { AGE, type CustomKind, column, GATEWAY, SPACE, SUBNET, wide } from "../../host/resources/custom-kind.ts";
import { addressRangeSchema } from "./address-range.ts";
import { rangeMemberSchema, rangeMemberStatus } from "./range-member.ts";

export const KINDS: readonly CustomKind[] = [
  {
    kind: "AddressRange",
    plural: "addressranges",
    shortNames: ["iprange"],
    description: "A segment's addresses, leased in blocks to several clusters. Served by their hub.",
    spec: addressRangeSchema.shape.spec,
    specDescription: "The addresses.",
    columns: [
      SUBNET,
      column("Block", ".spec.blockSize", "Length of a block's prefix.", "integer"),
      wide(GATEWAY),
      SPACE,
      AGE,
    ],
  },
  {
    kind: "RangeMember",
    plural: "rangemembers",
    shortNames: ["member"],
    description: "A cluster that may lease blocks of an AddressRange, and its blocks. Served by their hub.",
    spec: rangeMemberSchema.shape.spec,
    specDescription: "The cluster. Written by an administrator of the hub.",
    // By any other name its cluster does not find it, and other members do not find its blocks.
    rules: [
      {
        rule: "self.metadata.name == self.spec.range + '.' + self.spec.member",
        message: "spec.range, a dot, and spec.member",
        fieldPath: ".metadata.name",
      },
    ],
    status: rangeMemberStatus,
    statusDescription: "The blocks that the cluster has. Written by the cluster itself.",
    columns: [
      column("Range", ".spec.range", "The AddressRange."),
      column("Member", ".spec.member", "Name of the cluster."),
      column("Most", ".spec.maxBlocks", "Most blocks that the cluster may have.", "integer"),
      column("Writes", ".status.writes", "Number of the cluster's writes.", "integer"),
      column("Contested", ".status.contested", "Whether it waits for an administrator.", "boolean"),
      AGE,
    ],
  },
];
