/** Whether a pool can have its blocks as ranges, and which. */
import { areSame, sharedSpans, spansOf } from "../core/spans.ts";
import type { AddressRange } from "../resources/address-range.ts";
import type { SourceBlock } from "../resources/pool-source.ts";
import { blocksOf, waitedFor } from "./plan-range.ts";

export interface LeavingPool {
  readonly name: string;
  /** False: it has them as ranges already, and the hub does not know. */
  readonly isLeasing: boolean;
  /** As its status lists them. */
  readonly blocks: readonly Pick<SourceBlock, "block" | "range" | "state">[];
}

/** Returns why not: a clause; undefined if it can. */
export function refuseLeaving(range: AddressRange, member: string, pool: LeavingPool): string | undefined {
  const { spec, status } = range;
  const known = status.members[member];
  if (known?.isGone === true) return "the cluster was declared gone";
  if (known?.isContested === true) return "the cluster is contested: berthctl blocks rejoin";
  const waitsFor = waitedFor(range);
  if (waitsFor.length > 0) return `the hub went back in time, and waits for ${waitsFor.join(", ")}`;
  if (!pool.isLeasing) return undefined;
  if (pool.blocks.length === 0) return "it has no block";
  const idle = pool.blocks.filter(({ state }) => !["New", "Active", "Draining"].includes(state));
  if (idle.length > 0) return `wait: ${idle.map(({ block, state }) => `${block} is ${state}`).join(", ")}`;
  const leased = Object.entries(blocksOf(status, member)).flatMap(([block, of]) => (of === pool.name ? [block] : []));
  const differing = new Set(leased).symmetricDifference(new Set(pool.blocks.map(({ block }) => block)));
  if (differing.size > 0) return `wait: hub and pool do not agree on ${[...differing].join(", ")}`;
  const excluded = spansOf(spec.excluded);
  const hidden = pool.blocks.filter((each) =>
    areSame(sharedSpans(spansOf([each.range]), excluded), spansOf([each.range])),
  );
  if (hidden.length > 0) return `the range excludes ${hidden.map(({ block }) => block).join(", ")} as a whole`;
  return undefined;
}
