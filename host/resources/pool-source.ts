/**
 * The source of a pool that leases its addresses: blocks of an AddressRange of the hub (docs/decisions/0055), or of a
 * prefix of the IPAM of record (0056). The pool's specification names it, the controller writes the blocks into the
 * status, and agents give their addresses.
 */
import * as z from "zod";
import { objectName } from "../config/fields/names.ts";
import { exactPrefix } from "../config/fields/network.ts";
import { joinRanges } from "../core/spans.ts";
import { type CelRule, cel } from "../lib/cel.ts";
import { bitsOf, type Ip } from "../net/ip.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains } from "../net/prefix.ts";
import { formatRange, parseRange, type Range, rangeContains, rangeOfPrefix } from "../net/range.ts";
import { withoutSpecial } from "../net/special.ts";
import { MAX_RANGES, ranges } from "./fields/address-spec.ts";

/** Most blocks of an AddressRange or a prefix, and so of a pool: lists of them must fit into etcd's 1.5 MB. @limit */
export const MAX_BLOCKS = 2_048;

/** The text of a block: at most a whole IPv6 prefix. */
const blockText = z.string().max(43);

export const uuidText = z.string().max(36);

/**
 * Time for which a cluster may be off before it waits for the hub to confirm its blocks: milliseconds. Before a cluster
 * is declared gone, its addresses are probed for ten minutes; the clocks of its machines may differ by two. @limit
 */
export const UNHEARD_MS = 480_000;

/** Longest problem: characters. */
const MAX_PROBLEM = 1_024;

/** Most members of an AddressRange whose blocks a pool's status lists. */
const MAX_OTHERS = 64;

/** Most ranges of other members that a pool's status lists; the number of their blocks is complete in any case. */
const MAX_OTHER_RANGES = 512;

/** The text of a range: characters. */
const MAX_RANGE_TEXT = 80;

/** Why a range gives no further blocks, for programs: `reason` beside the problem. */
export const SOURCE_REASONS = [
  "HubAway",
  "HubNotTrusted",
  "RecordsAway",
  "TokenRefused",
  "Forbidden",
  "NoRange",
  "OtherVersion",
  "Failed",
  "OtherSubnet",
  "NotMember",
  "OtherCluster",
  "Contested",
  "ShareUsedUp",
  "RangeUsedUp",
] as const;

export type SourceReason = (typeof SOURCE_REASONS)[number];

const blockState = z.enum(["Resting", "New", "Active", "Draining", "Returning", "Disputed"]);

/** Addresses are given from blocks that are New, Active or Draining. */
export type BlockState = z.output<typeof blockState>;

/** In the order of a block's life. */
export const BLOCK_STATES: readonly BlockState[] = blockState.options;

/** States of a block whose addresses are given. */
export const SERVING: readonly BlockState[] = ["New", "Active", "Draining"];

interface SourceBlock {
  /** In the hub's form: `10.6.0.16/28`. */
  readonly block: string;
  readonly range: Range;
  readonly state: BlockState;
}

export interface OtherMember {
  readonly member: string;
  readonly blocks: number;
  readonly ranges: readonly Range[];
}

/** The controller's knowledge of the range, for people. No address is given or refused because of it. */
export interface SourceReport {
  /** A {@link SourceReason}; a newer controller may have further ones. "" if nothing is in the way. */
  readonly reason: string;
  /** When the hub answered last, RFC 3339; "" while it answers. */
  readonly heard: string;
  /** This cluster's name in the range; "" if unknown. */
  readonly member: string;
  /** Most blocks of this cluster. */
  readonly share: number | undefined;
  readonly others: readonly OtherMember[];
}

export const NO_REPORT: SourceReport = { reason: "", heard: "", member: "", share: undefined, others: [] };

/** The source in a pool's specification. */
export interface SourceSpec {
  /** Name of the AddressRange, or the text of the prefix. */
  readonly range: string;
  /** The prefix from which blocks are taken, and their length; undefined for an AddressRange. */
  readonly prefix?: { readonly prefix: Prefix; readonly blockSize: number } | undefined;
}

/** Returns whether the source is a prefix: no name of an AddressRange has a slash. */
export function isPrefix({ range }: Pick<SourceSpec, "range">): boolean {
  return range.includes("/");
}

/** Returns `AddressRange "lan"`, or `prefix 10.6.0.0/22`. */
export function describeSource(source: Pick<SourceSpec, "range">): string {
  return isPrefix(source) ? `prefix ${source.range}` : `AddressRange "${source.range}"`;
}

/** Returns `the hub`, or `the IPAM of record`. */
export function nameServer(source: Pick<SourceSpec, "range">): string {
  return isPrefix(source) ? "the IPAM of record" : "the hub";
}

export interface PoolSource extends SourceSpec {
  /** The registry's epoch (docs/decisions/0052) in which the hub confirmed the blocks; "" before the first time. */
  readonly epoch: string;
  /**
   * Time until which the blocks were certainly the cluster's, RFC 3339: the hub confirmed them then, or a controller
   * has been in touch since it did; "" before the first time.
   */
  readonly asOf: string;
  readonly blocks: readonly SourceBlock[];
  /** Addresses of the range that no pod of any cluster gets. */
  readonly excluded: readonly Range[];
  /** Why no further blocks are leased: a sentence without its full stop; "" if they are. */
  readonly problem: string;
  /** Absent in the status of an older controller. */
  readonly report?: SourceReport | undefined;
}

const ONE_SOURCE = 'one of "range" and "prefix"';
const WITH_SIZE = 'a length beside "prefix", and nowhere else';

/**
 * A half of a block may be written, which marks the whole block as disputed. The server does not list a prefix among
 * those within it.
 */
const SIZES: readonly CelRule[] = [
  {
    rule: "!has(self.prefix) || !isCIDR(self.prefix) || !has(self.blockSize) || (self.prefix.contains(':') ? self.blockSize >= 120 && self.blockSize <= 126 : self.blockSize >= 24 && self.blockSize <= 30)",
    message: "24 to 30 for IPv4, 120 to 126 for IPv6: at most 256 addresses, and four at least",
    fieldPath: ".blockSize",
  },
  {
    rule: "!has(self.prefix) || !isCIDR(self.prefix) || !has(self.blockSize) || (self.blockSize > cidr(self.prefix).prefixLength() && self.blockSize - cidr(self.prefix).prefixLength() <= 11)",
    message: "a length that cuts the prefix into 2 to 2048 blocks",
    fieldPath: ".blockSize",
  },
];

export const poolSourceSpec = z
  .strictObject({
    range: objectName
      .optional()
      .meta({ description: "The AddressRange of the hub that the pool takes its blocks from." }),
    prefix: exactPrefix.optional().meta({
      description:
        "The prefix of Nautobot or NetBox that the pool takes its blocks from ([addresses of record](records.md)): all of the subnet, or a part.",
    }),
    blockSize: z.int().min(24).max(126).optional().meta({
      description: "With `prefix`: length of the prefix of each block, as in `28`.",
    }),
  })
  .check(({ value: { range, prefix, blockSize }, issues, value }) => {
    const fail = (path: PropertyKey[], message = "") => issues.push({ code: "custom", path, message, input: value });
    if ((range === undefined) === (prefix === undefined)) fail([], ONE_SOURCE);
    if ((prefix === undefined) !== (blockSize === undefined)) fail(["blockSize"], WITH_SIZE);
    if (prefix === undefined || blockSize === undefined) return;
    const bits = bitsOf(prefix.ip.family);
    if (blockSize < bits - 8 || blockSize > bits - 2) fail(["blockSize"], SIZES[0]?.message);
    else if (blockSize <= prefix.length || blockSize - prefix.length > 11) fail(["blockSize"], SIZES[1]?.message);
  })
  .meta(
    cel(
      { rule: "has(self.range) != has(self.prefix)", message: ONE_SOURCE },
      { rule: "has(self.prefix) == has(self.blockSize)", message: WITH_SIZE, fieldPath: ".blockSize" },
      ...SIZES,
    ),
  )
  .transform(({ range = "", prefix, blockSize = 0 }): SourceSpec => {
    return prefix === undefined ? { range } : { range: formatPrefix(prefix), prefix: { prefix, blockSize } };
  });

const givenStatus = z.object({
  epoch: uuidText.meta({
    description: "The registry's epoch in which the hub confirmed the blocks. In another one no address is given.",
  }),
  asOf: z.string().max(32).optional().meta({
    description:
      "When the hub had confirmed the blocks, and a controller had been there ever since. After eight minutes without one no address is given until the hub confirms them.",
  }),
  blocks: z
    .array(
      z.object({
        block: blockText.meta({ description: "The block, as in `10.6.0.16/28`." }),
        state: blockState.meta({
          description:
            "Addresses are given if it is `New` (with conflict detection in any case), `Active`, or `Draining` (when the pool has no other one).",
        }),
      }),
    )
    .max(MAX_BLOCKS)
    .meta({ description: "The blocks that the cluster has leased for the pool." }),
  excluded: ranges.optional().meta({
    description: "Addresses of the range that no pod of any cluster gets: of routers, of nodes, excluded ones.",
  }),
  problem: z.string().max(MAX_PROBLEM).optional().meta({ description: "Why no further blocks are leased." }),
});

const reportStatus = z.object({
  reason: z.string().max(64).optional().meta({ description: "One word for the problem, such as `HubAway`." }),
  heard: z.string().max(40).optional().meta({
    description: "When the hub answered last, RFC 3339; absent while it answers.",
  }),
  member: z.string().max(253).optional().meta({ description: "This cluster's name in the range." }),
  maxBlocks: z.int32().min(0).optional().meta({ description: "Most blocks of the range that this cluster may have." }),
  others: z
    .array(
      z.object({
        member: z.string().max(253).meta({ description: "Name of the cluster." }),
        blocks: z.int32().min(0).meta({ description: "Number of its blocks." }),
        ips: z
          .array(z.string().max(MAX_RANGE_TEXT))
          .max(MAX_OTHER_RANGES)
          .meta({
            description: `Their addresses, as ranges; of all clusters together at most ${MAX_OTHER_RANGES}.`,
          }),
      }),
    )
    .max(MAX_OTHERS)
    .optional()
    .meta({ description: "The blocks of other clusters, up to ten minutes old. For people." }),
});

export const poolSourceStatus = givenStatus.extend(reportStatus.shape);

/** Returns no blocks for a malformed status, and leaves out blocks outside the subnet. */
export function decodePoolSource(source: SourceSpec, status: unknown, subnet: Prefix): PoolSource {
  const {
    epoch,
    asOf = "",
    blocks,
    excluded = [],
    problem = "",
  } = givenStatus.safeParse(status).data ?? { epoch: "", blocks: [] };
  const report = reportOf(reportStatus.safeParse(status).data ?? {});
  const prefixes = blocks.map(({ block, state }) => ({ block, state, prefix: parsePrefix(block) }));
  if (prefixes.some(({ prefix }) => prefix === undefined))
    return { ...source, epoch: "", asOf: "", blocks: [], excluded, problem, report };
  const inside = prefixes.flatMap(({ block, state, prefix }) =>
    prefix !== undefined && prefix.length >= subnet.length && prefixContains(subnet, prefix.ip)
      ? [{ block, state, range: rangeOfPrefix(prefix) }]
      : [],
  );
  return { ...source, epoch, asOf, blocks: inside, excluded, problem, report };
}

function reportOf(status: z.output<typeof reportStatus>): SourceReport | undefined {
  const { reason = "", heard = "", member = "", maxBlocks, others = [] } = status;
  if (reason === "" && heard === "" && member === "" && maxBlocks === undefined && others.length === 0)
    return undefined;
  const known = others.map(({ member, blocks, ips }) => ({
    member,
    blocks,
    ranges: ips.flatMap((text) => parseRange(text) ?? []),
  }));
  return { reason, heard, member, share: maxBlocks, others: known };
}

interface SourceStatus extends Pick<PoolSource, "epoch" | "asOf"> {
  /** Default: none. */
  readonly excluded?: readonly Range[];
  /** Default: "". */
  readonly problem?: string;
  readonly report?: SourceReport | undefined;
  readonly blocks: readonly Pick<SourceBlock, "block" | "state">[];
}

/** Returns `status.source` as a merge patch. */
export function encodeSourceStatus(status: SourceStatus) {
  const { epoch, asOf, blocks, excluded = [], problem = "", report = NO_REPORT } = status;
  const text = problem === "" ? null : problem.slice(0, MAX_PROBLEM);
  const listed = blocks.map(({ block, state }) => ({ block, state }));
  const few = fewRanges(excluded).map(formatRange);
  return { epoch, asOf: asOf || null, blocks: listed, excluded: few, problem: text, ...encodeReport(report) };
}

/** Joins ranges. Of too many the last ones become one: it excludes more, never less. */
function fewRanges(excluded: readonly Range[]): readonly Range[] {
  const [any] = excluded;
  const ranges = any === undefined ? [] : joinRanges(excluded, any.first.family);
  const [from, last] = [ranges[MAX_RANGES - 1], ranges.at(-1)];
  if (from === undefined || last === undefined) return ranges;
  return [...ranges.slice(0, MAX_RANGES - 1), { first: from.first, last: last.last }];
}

function encodeReport({ reason, heard, member, share, others }: SourceReport) {
  let left = MAX_OTHER_RANGES;
  const listed = others.slice(0, MAX_OTHERS).map(({ member, blocks, ranges }) => {
    const ips = ranges.slice(0, left).map(formatRange);
    left -= ips.length;
    return { member, blocks, ips };
  });
  return {
    ...{ reason: reason || null, heard: heard || null, member: member || null, maxBlocks: share ?? null },
    others: listed.length === 0 ? null : listed,
  };
}

/** Returns the other cluster that had the address in the controller's last report. */
export function otherMemberOf({ report }: PoolSource, ip: Ip): string | undefined {
  return report?.others.find(({ ranges }) => ranges.some((range) => rangeContains(range, ip)))?.member;
}

/** Returns the addresses that may be given: the ranges of a pool. */
export function rangesOfSource({ blocks }: PoolSource, { ip: { family } }: Prefix): readonly Range[] {
  const serving = blocks.filter(({ state }) => SERVING.includes(state)).map(({ range }) => range);
  return withoutSpecial(joinRanges(serving, family));
}

/** Returns whether the block goes back when none of its addresses is in use any more. */
export function isLeaving({ state }: { readonly state: string }): boolean {
  return state === "Draining" || state === "Returning";
}

/** Returns `2 Active, 1 Resting`; `none`. */
export function countBlockStates({ blocks }: PoolSource): string {
  const counts = [...Map.groupBy(blocks, ({ state }) => state)].map(([state, { length }]) => `${length} ${state}`);
  return counts.join(", ") || "none";
}

/** An agent's knowledge of the registry, by which it checks blocks. */
export interface SeenRegistry {
  readonly epoch: string | undefined;
  /** Start of unbroken contact with it (gaps below {@link UNHEARD_MS}), by the wall clock: milliseconds. */
  readonly sinceMs: number;
}

/**
 * Returns until when no address of the blocks is given, a clause. Undefined if they are certainly the cluster's: the
 * hub has confirmed them for this registry, and the cluster was not off since for so long that it may have been
 * declared gone.
 */
export function findDoubt(source: PoolSource, seen: SeenRegistry): string | undefined {
  const { epoch, asOf } = source;
  const confirmed = `until ${nameServer(source)} has confirmed its blocks`;
  if (epoch === "" || epoch !== seen.epoch) return `${confirmed} in this epoch of the registry`;
  if (Date.parse(asOf) > seen.sinceMs - UNHEARD_MS) return undefined;
  return `${confirmed}: the cluster was off, had no controller, or was out of this node's reach, ${asOf === "" ? "all the time" : `since ${asOf}`}`;
}
