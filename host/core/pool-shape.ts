/** The shape of a pool and its counts; shapes as handles of the core. Effects: the core instance's memory. */
import type { Family } from "../net/ip.ts";
import type { Range } from "../net/range.ts";
import { CoreError } from "./core-error.ts";
import { CountOffset, Status } from "./core-exports.ts";
import { type CoreModule, readSize } from "./module.ts";

/**
 * The ranges and masks of a pool. All ranges are of one family; they may overlap, in any order. `masked` addresses
 * (excluded, reserved, gateway, network, broadcast) are never found, but keep their used marks.
 */
export interface PoolShape {
  readonly ranges: readonly Range[];
  readonly masked: readonly Range[];
}

export interface PoolCounts {
  /** Allocatable addresses: in the ranges and not masked. */
  readonly total: bigint;
  /** Addresses marked used, including masked ones. */
  readonly used: number;
  /** Number of those that are masked. */
  readonly usedMasked: number;
  /** Number of the used ones that are beyond the window. */
  readonly beyond: number;
  /** Allocatable addresses that are not used. */
  readonly free: bigint;
  /** Ordinals in the bitmap, at most 2^24; addresses beyond can be claimed but are found in wide order only. */
  readonly window: number;
  /** Identifies the ranges: pools with the same digest accept each other's snapshots. */
  readonly digest: bigint;
}

export function familyOfShape(shape: PoolShape, otherwise: Family): Family {
  return (shape.ranges[0] ?? shape.masked[0])?.first.family ?? otherwise;
}

/** Creates the set and returns its handle. The ranges may overlap and stand in any order. */
export function createSetHandle(core: CoreModule, family: Family, ranges: readonly Range[]): number {
  for (const range of ranges) {
    if (range.first.family !== family || range.last.family !== family) {
      throw new CoreError(
        "set_create",
        Status.BAD_FAMILY,
        `a range of IPv${range.first.family} in a set of IPv${family}`,
      );
    }
  }
  const spans = ranges.map(({ first, last }) => ({ first: first.value, last: last.value }));
  return core.createSet(family, spans);
}

/** Calls `use` with the handles of the shape's two sets, which end with it. */
export function withSets<T>(
  core: CoreModule,
  shape: PoolShape,
  family: Family,
  use: (ranges: number, masks: number) => T,
): T {
  const ranges = createSetHandle(core, family, shape.ranges);
  try {
    const masks = createSetHandle(core, family, shape.masked);
    try {
      return use(ranges, masks);
    } finally {
      core.exports.drop(masks);
    }
  } finally {
    core.exports.drop(ranges);
  }
}

/** Reads the results of `pool_counts` (docs/develop/wasm-abi.md, Counts). */
export function readCounts(view: DataView): PoolCounts {
  const total = readSize(view, CountOffset.size) - readSize(view, CountOffset.masked);
  const used = view.getUint32(CountOffset.used, true);
  const usedMasked = view.getUint32(CountOffset.usedMasked, true);
  return {
    total,
    used,
    usedMasked,
    beyond: view.getUint32(CountOffset.beyond, true),
    free: total - BigInt(used - usedMasked),
    window: view.getUint32(CountOffset.window, true),
    digest: view.getBigUint64(CountOffset.digest, true),
  };
}
