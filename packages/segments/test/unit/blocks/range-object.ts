import { type AddressRange, type AddressRangeSpec, decodeAddressRange } from "../../../address-range.ts";
import { decodeRangeMember, memberObject, type RangeMember } from "../../../range-member.ts";

/** 10.6.0.0/24 in /28. */
export function rangeOf(spec: object = {}): AddressRange {
  return decodeAddressRange(
    {
      apiVersion: "ipam.vendor.io/v1",
      kind: "AddressRange",
      metadata: { name: "lan", uid: "r", resourceVersion: "1" },
      spec: { subnet: "10.6.0.0/24", blockSize: 28, ...spec },
    },
    "lan",
  );
}

export function rangeSpec(spec: object = {}): AddressRangeSpec {
  return rangeOf(spec).spec;
}

/** A member with four blocks at most, and these, of pool `lan`. */
export function memberOf(
  member: string,
  blocks: readonly string[] = [],
  status: object = {},
  maxBlocks = 4,
): RangeMember {
  const entries = blocks.map((block) => [block, { pool: "lan", request: `r-${block}`, since: "2026-01-01T00:00:00Z" }]);
  const written = { cluster: `uid-${member}`, token: "t", writes: 1, blocks: Object.fromEntries(entries), ...status };
  return decodeRangeMember(
    {
      apiVersion: "ipam.vendor.io/v1",
      kind: "RangeMember",
      metadata: { name: memberObject("lan", member), uid: `u-${member}`, resourceVersion: "1" },
      spec: { range: "lan", member, user: `user-${member}`, maxBlocks },
      status: written,
    },
    "member",
  );
}
