/**
 * The source of a pool that leases its addresses: blocks of an AddressRange of the hub (docs/decisions/0055). The
 * pool's specification names the range; the controller writes the blocks into the status, and agents give addresses
 * of them.
 */
import * as z from "zod";
import { objectName } from "../config/fields/names.ts";
import { joinRanges } from "../core/spans.ts";
import type { Ip } from "../net/ip.ts";
import { type Prefix, parsePrefix, prefixContains } from "../net/prefix.ts";
import { formatRange, type Range, rangeContains, rangeOfPrefix } from "../net/range.ts";
import { withoutSpecial } from "../net/special.ts";
import { MAX_RANGES, ranges } from "./fields/address-spec.ts";

/** Most blocks of a pool. @limit */
const MAX_POOL_BLOCKS = 1_024;

/** The text of a block: at most a whole IPv6 prefix. */
export const blockText = z.string().max(43);

export const uuidText = z.string().max(36);

/** Longest problem: characters. */
const MAX_PROBLEM = 1_024;

const blockState = z.enum(["Resting", "New", "Active", "Draining", "Returning", "Disputed"]);

/** Addresses are given of blocks that are New, Active or Draining. */
export type BlockState = z.output<typeof blockState>;

/** States in which addresses of a block are given. */
export const SERVING: readonly BlockState[] = ["New", "Active", "Draining"];

export interface SourceBlock {
  /** As the hub names it: `10.6.0.16/28`. */
  readonly block: string;
  readonly range: Range;
  readonly state: BlockState;
}

export interface PoolSource {
  /** Name of the AddressRange. */
  readonly range: string;
  /** The registry's epoch (docs/decisions/0052) in which the hub confirmed the blocks; "" before the first time. */
  readonly epoch: string;
  readonly blocks: readonly SourceBlock[];
  /** Addresses of the range that no pod of any cluster gets, ascending. */
  readonly excluded: readonly Range[];
  /** Why no further blocks are leased: a sentence without its full stop; "" if nothing is in the way. */
  readonly problem: string;
}

export const poolSourceSpec = z.strictObject({
  range: objectName.meta({ description: "The AddressRange of the hub that the pool takes its blocks from." }),
});

export const poolSourceStatus = z.object({
  epoch: uuidText.meta({
    description: "The registry's epoch in which the hub confirmed the blocks. In another one no address is given.",
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
    .max(MAX_POOL_BLOCKS)
    .meta({ description: "The blocks that the cluster has leased for the pool." }),
  excluded: ranges.optional().meta({
    description: "Addresses of the range that no pod of any cluster gets: of routers, of nodes, excluded ones.",
  }),
  problem: z.string().max(MAX_PROBLEM).optional().meta({ description: "Why no further blocks are leased." }),
});

/** Returns no blocks for a malformed status, and leaves out blocks outside the subnet. */
export function decodePoolSource(range: string, status: unknown, subnet: Prefix): PoolSource {
  const decoded = poolSourceStatus.safeParse(status).data ?? { epoch: "", blocks: [] };
  const { epoch, blocks, excluded = [], problem = "" } = decoded;
  const prefixes = blocks.map(({ block, state }) => ({ block, state, prefix: parsePrefix(block) }));
  if (prefixes.some(({ prefix }) => prefix === undefined)) return { range, epoch: "", blocks: [], excluded, problem };
  const inside = prefixes.flatMap(({ block, state, prefix }) =>
    prefix !== undefined && prefix.length >= subnet.length && prefixContains(subnet, prefix.ip)
      ? [{ block, state, range: rangeOfPrefix(prefix) }]
      : [],
  );
  return { range, epoch, blocks: inside, excluded, problem };
}

interface SourceStatus extends Pick<PoolSource, "epoch"> {
  /** Default: none. */
  readonly excluded?: readonly Range[];
  /** Default: "". */
  readonly problem?: string;
  readonly blocks: readonly Pick<SourceBlock, "block" | "state">[];
}

/** Returns `status.source` as a merge patch. */
export function encodeSourceStatus({ epoch, blocks, excluded = [], problem = "" }: SourceStatus) {
  const text = problem === "" ? null : problem.slice(0, MAX_PROBLEM);
  const listed = blocks.map(({ block, state }) => ({ block, state }));
  return { epoch, blocks: listed, excluded: fewRanges(excluded).map(formatRange), problem: text };
}

/** Of too many ranges, which ascend, the last ones become one: it excludes more, never less. */
function fewRanges(ranges: readonly Range[]): readonly Range[] {
  const [from, last] = [ranges[MAX_RANGES - 1], ranges.at(-1)];
  if (from === undefined || last === undefined) return ranges;
  return [...ranges.slice(0, MAX_RANGES - 1), { first: from.first, last: last.last }];
}

/** Returns whether pods may have the address. */
export function givesAddress({ blocks }: PoolSource, ip: Ip): boolean {
  return blocks.some(({ state, range }) => SERVING.includes(state) && rangeContains(range, ip));
}

/** Returns the addresses that may be given: the ranges of a pool. */
export function rangesOfSource({ blocks }: PoolSource, { ip: { family } }: Prefix): readonly Range[] {
  const serving = blocks.filter(({ state }) => SERVING.includes(state)).map(({ range }) => range);
  return withoutSpecial(joinRanges(serving, family));
}

/** Returns `2 Active, 1 Resting`; `none`. */
export function countBlockStates({ blocks }: PoolSource): string {
  const counts = [...Map.groupBy(blocks, ({ state }) => state)].map(([state, { length }]) => `${length} ${state}`);
  return counts.join(", ") || "none";
}

/**
 * Returns whether the hub has confirmed the blocks since the registry was last found to be another one; `inForce` is
 * its epoch now.
 */
export function isConfirmed({ epoch }: PoolSource, inForce: string | undefined): boolean {
  return epoch !== "" && epoch === inForce;
}
