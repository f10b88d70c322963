/**
 * The kind AddressRange: one segment's addresses, leased to clusters in blocks (docs/decisions/0055). It is served by
 * the hub, the API server that all of its members know. The status is the lock: whoever writes a block's entry first
 * has the block.
 */
import * as z from "zod";
import { decodeConfig } from "../../host/config/config-error.ts";
import { objectName } from "../../host/config/fields/names.ts";
import { type CelRule, cel, IMMUTABLE } from "../../host/lib/cel.ts";
import { wholeNumber } from "../../host/lib/schema.ts";
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
import { blockText, uuidText } from "../../host/resources/pool-source.ts";

/** Most blocks of an AddressRange: its status lists all leases and must fit into etcd's 1.5 MB. @limit */
const MAX_BLOCKS = 2_048;

/** Most members of an AddressRange. @limit */
const MAX_MEMBERS = 64;

/** Most addresses of a block, as a power of two: their records must be claimed one by one before it is returned. */
const MAX_BLOCK_BITS = 8;

/** A cluster that may lease. */
interface RangeMember {
  readonly name: string;
  /** The hub's account that the cluster's controller uses: `system:serviceaccount:NAMESPACE:NAME`. */
  readonly user: string;
  readonly maxBlocks: number;
}

export interface AddressRangeSpec extends AddressSpec {
  /** Length of each block's prefix. */
  readonly blockSize: number;
  /** Addresses of the nodes of all members. */
  readonly nodes: readonly Range[];
  readonly members: readonly RangeMember[];
}

/** One block that a member has. */
export interface Lease {
  readonly member: string;
  /** The pool of that cluster that it is for. */
  readonly pool: string;
}

/** What the hub knows of a member. */
export interface Membership {
  /** UID of its namespace kube-system. */
  readonly cluster: string;
  /** A random value that each of its writes replaces: a copy of the cluster, or its past, has another one. */
  readonly token: string;
  /** Number of its writes. */
  readonly writes: number;
  /** The range's epoch for which it has written what it has. */
  readonly epoch: string;
  /** Two clusters have written in its name, or one that is older than its last write. */
  readonly isContested: boolean;
  /** An administrator has declared it off, and its blocks free. */
  readonly isGone: boolean;
  /** Blocks that it has too, which were leased to others after the hub had lost its lease. */
  readonly disputed: readonly string[];
}

export interface RangeStatus {
  /** Number of writes. */
  readonly sequence: number;
  /** A UUID; "" before the first write. Begins anew when a member finds that the hub went back in time. */
  readonly epoch: string;
  /** The epoch began because the hub went back in time: it is settled when all members of the spec have written. */
  readonly isRestored: boolean;
  /** By block: `10.6.0.16/28`. */
  readonly leases: Readonly<Record<string, Lease>>;
  /** By the member's name. */
  readonly members: Readonly<Record<string, Membership>>;
}

export interface AddressRange {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly spec: AddressRangeSpec;
  readonly status: RangeStatus;
}

const { ipVersion: _ipVersion, ips: _ips, ...keys } = addressKeys;

const member = z.strictObject({
  name: objectName.meta({ description: "Name of the cluster, as people know it." }),
  user: z.string().min(1).max(512).meta({
    description: "Account of the hub that the cluster's controller uses, as `kubectl auth whoami` prints it.",
  }),
  maxBlocks: wholeNumber(0).max(MAX_BLOCKS).meta({ description: "Most blocks that the cluster may have." }),
});

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
    members: z
      .array(member)
      .max(MAX_MEMBERS)
      .default([])
      .meta({
        description: "The clusters that may lease blocks.",
        ...cel({
          // Not each member against each other: of 50 that takes the API server 0.1 s, at each write of the status.
          rule: "[self.map(one, one.name), self.map(one, one.user)].all(texts, texts.all(text, texts.indexOf(text) == texts.lastIndexOf(text)))",
          message: "members that each have a name and a user of their own",
        }),
      }),
  })
  .check(checkAddresses)
  .check(({ value, issues }) => {
    const { subnet, blockSize, members } = value;
    const fail = (path: PropertyKey[], message: string) => issues.push({ code: "custom", path, message, input: value });
    const bits = bitsOf(subnet.ip.family);
    if (blockSize < bits - MAX_BLOCK_BITS || blockSize > bits) fail(["blockSize"], blockSizeForm(bits));
    else if (blockSize < subnet.length || 2 ** (blockSize - subnet.length) > MAX_BLOCKS)
      fail(["blockSize"], `a length that cuts the subnet into 1 to ${MAX_BLOCKS} blocks`);
    for (const key of ["name", "user"] as const)
      for (const [index, each] of members.entries())
        if (members.findIndex((other) => other[key] === each[key]) < index)
          fail(["members", index, key], "a value that no other member has");
  })
  .meta(
    cel(...ADDRESS_RULES.filter(({ fieldPath }) => fieldPath !== ".ipVersion" && fieldPath !== ".ips"), ...BLOCK_RULES),
  )
  .transform(({ blockSize, nodeIPs, members, ...addresses }): AddressRangeSpec => {
    return { ...addressSpecOf(addresses), blockSize, nodes: nodeIPs, members };
  });

export const addressRangeSchema = berthObject("AddressRange", spec);

/** One field to the API server, which else notes for each entry who has written it: half of the object. */
const ATOMIC = { "x-kubernetes-map-type": "atomic" };

const lease = z.object({
  member: z.string().max(253).meta({ description: "Name of the cluster that has the block." }),
  pool: z.string().max(253).meta({ description: "The cluster's pool that it is for." }),
});

const membership = z.object({
  cluster: uuidText.meta({ description: "UID of the namespace by which the cluster is known." }),
  token: uuidText.meta({ description: "Replaced by each of the cluster's writes." }),
  writes: z.int().min(0).meta({ description: "Number of the cluster's writes." }),
  epoch: uuidText.meta({ description: "The epoch for which the cluster has written what it has." }),
  contested: z.boolean().optional().meta({
    description: "Two clusters have written in this name, or one that is older than the last write.",
  }),
  gone: z.boolean().optional().meta({ description: "An administrator has declared the cluster off." }),
  disputed: z.array(blockText).max(MAX_BLOCKS).optional().meta({
    description: "Blocks that the cluster has and that were leased to others after the hub went back in time.",
  }),
});

export const addressRangeStatus = z.object({
  sequence: z.int().min(0).meta({ description: "Number of writes." }),
  epoch: uuidText.meta({ description: "Begins anew when a member finds that the hub went back in time." }),
  restored: z.boolean().optional().meta({
    description: "The hub went back in time: no member leases until all of them have written again what they have.",
  }),
  leases: z
    .record(blockText, lease)
    .default({})
    .meta({ description: "The leased blocks.", ...ATOMIC }),
  members: z
    .record(z.string().max(253), membership)
    .default({})
    .meta({ description: "The members that have written.", ...ATOMIC }),
});

const NO_STATUS: RangeStatus = { sequence: 0, epoch: "", isRestored: false, leases: {}, members: {} };

/** Decodes an AddressRange; `source` names it in the error. Throws ConfigError, also for a status: it is the lock. */
export function decodeAddressRange(value: unknown, source: string): AddressRange {
  const { metadata, spec, status } = decodeBerth(addressRangeSchema, value, source);
  const { uid = "", resourceVersion = "" } = metadata;
  return { name: metadata.name, uid, resourceVersion, spec, status: decodeStatus(status, source) };
}

function decodeStatus(status: unknown, source: string): RangeStatus {
  if (status === undefined) return NO_STATUS;
  const { members, restored, ...rest } = decodeConfig(addressRangeStatus, status, source);
  const known = Object.entries(members).map(([name, { contested, gone, disputed, ...each }]): [string, Membership] => [
    name,
    { ...each, isContested: contested === true, isGone: gone === true, disputed: disputed ?? [] },
  ]);
  return { ...rest, isRestored: restored === true, members: Object.fromEntries(known) };
}

/** Returns the entry as the hub stores it; as a merge patch, it replaces all that is known of the member. */
export function encodeMembership({ isContested, isGone, disputed, ...rest }: Membership): object {
  const list = disputed.length > 0 ? [...disputed] : null;
  return { ...rest, contested: isContested || null, gone: isGone || null, disputed: list };
}
