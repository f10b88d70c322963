/**
 * The kind AddressRange: one segment's addresses, leased to clusters in blocks (docs/decisions/0064). The hub serves
 * it, the API server that all of its members know. RangeMembers, not this kind, record the owners of blocks.
 */
import * as z from "zod";
import { type CelRule, cel, IMMUTABLE } from "../../host/lib/cel.ts";
import { bitsOf } from "../../host/net/ip.ts";
import type { Range } from "../../host/net/range.ts";
import {
  ADDRESS_RULES,
  type AddressSpec,
  addressKeys,
  addressSpecOf,
  checkAddresses,
  ranges,
} from "../../host/resources/fields/address-spec.ts";
import { berthObject, decodeBerth } from "../../host/resources/fields/metadata.ts";
import { MAX_BLOCKS } from "../../host/resources/pool-source.ts";

/** Most addresses of a block, as a power of two. */
const MAX_BLOCK_BITS = 8;

export interface AddressRangeSpec extends AddressSpec {
  /** Length of each block's prefix. */
  readonly blockSize: number;
  /** Addresses of the nodes of all members, of the subnet's family. */
  readonly nodes: readonly Range[];
}

export interface AddressRange {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly spec: AddressRangeSpec;
}

const { ipVersion: _ipVersion, ips: _ips, ...keys } = addressKeys;

const blockSizeForm = (bits: number) => `a length from ${bits - MAX_BLOCK_BITS} to ${bits}`;

const BLOCK_RULES: readonly CelRule[] = [
  {
    rule: `!isCIDR(self.subnet) || (self.subnet.contains(':') ? self.blockSize >= 120 && self.blockSize <= 128 : self.blockSize >= 24 && self.blockSize <= 32)`,
    message: "24 to 32 for IPv4, 120 to 128 for IPv6: at most 256 addresses",
    fieldPath: ".blockSize",
  },
  {
    rule: `!isCIDR(self.subnet) || (self.blockSize >= cidr(self.subnet).prefixLength() && self.blockSize - cidr(self.subnet).prefixLength() <= 11)`,
    message: `a length that cuts the subnet into 1 to ${MAX_BLOCKS} blocks`,
    fieldPath: ".blockSize",
  },
];

const spec = z
  .strictObject({
    ...keys,
    blockSize: z
      .int()
      .min(24)
      .max(128)
      .meta({
        description: "Length of the prefix of each block, as in `28`: at most 256 addresses. Immutable.",
        ...cel(IMMUTABLE),
      }),
    nodeIPs: ranges.default([]).meta({
      description: "Addresses of the nodes of all clusters, which no pod of any cluster gets. Default none.",
    }),
  })
  .check(checkAddresses)
  .check(({ value, issues }) => {
    const { subnet, blockSize } = value;
    const fail = (path: PropertyKey[], message: string) => issues.push({ code: "custom", path, message, input: value });
    const bits = bitsOf(subnet.ip.family);
    if (blockSize < bits - MAX_BLOCK_BITS || blockSize > bits) fail(["blockSize"], blockSizeForm(bits));
    else if (blockSize < subnet.length || 2 ** (blockSize - subnet.length) > MAX_BLOCKS)
      fail(["blockSize"], `a length that cuts the subnet into 1 to ${MAX_BLOCKS} blocks`);
  })
  .meta(
    cel(...ADDRESS_RULES.filter(({ fieldPath }) => fieldPath !== ".ipVersion" && fieldPath !== ".ips"), ...BLOCK_RULES),
  )
  .transform(({ blockSize, nodeIPs, ...addresses }): AddressRangeSpec => {
    const { family } = addresses.subnet.ip;
    return { ...addressSpecOf(addresses), blockSize, nodes: nodeIPs.filter(({ first }) => first.family === family) };
  });

export const addressRangeSchema = berthObject("AddressRange", spec);

/** Decodes an AddressRange; `source` names it in the error. Throws ConfigError. */
export function decodeAddressRange(value: unknown, source: string): AddressRange {
  const { metadata, spec } = decodeBerth(addressRangeSchema, value, source);
  const { uid = "", resourceVersion = "" } = metadata;
  return { name: metadata.name, uid, resourceVersion, spec };
}
