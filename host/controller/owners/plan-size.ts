/** How many addresses a workload's pool should have, and why. */
import type { PoolNumber } from "../../config/pool-number.ts";
import type { Need } from "./tracked-object.ts";

export interface Size {
  readonly count: number;
  /** A sentence without a full stop. */
  readonly reason: string;
}

/** Returns the size for the current version. `objectCount`: how many objects the need was counted from. */
export function planSize(need: Need, number: PoolNumber, objectCount = 1): Size {
  if (number.kind === "fixed") return fixed(number.count);
  const { count, surge } = need;
  const extra = Math.max(number.count, surge);
  const why = surge > number.count ? " while it is rolled out (maxSurge)" : "";
  return flexible(count, extra, `${describeNeed(need, objectCount)}${extra === 0 ? "" : ` and ${extra} more`}${why}`);
}

/** Returns the size for pods of a former version, which only become fewer: one spare address lets them be replaced. */
export function planFormerSize(need: Need, number: PoolNumber, objectCount = 1): Size {
  if (number.kind === "fixed" && number.count <= need.count) return fixed(number.count);
  const extra = number.kind === "fixed" ? 0 : Math.min(number.count, 1);
  const more = extra === 0 ? "" : ` and ${extra} more`;
  return flexible(need.count, extra, `${describeNeed(need, objectCount)} of a former version${more}`);
}

function fixed(count: number): Size {
  return { count, reason: `${count} as ippool-ip-number says` };
}

function flexible(count: number, extra: number, reason: string): Size {
  return { count: Math.min(count + extra, Number.MAX_SAFE_INTEGER), reason };
}

function describeNeed({ unit, count, isSuspended }: Need, objectCount: number): string {
  if (isSuspended && count === 0) return "0 while it is suspended";
  if (unit === "parallelism") return `parallelism ${count}${objectCount > 1 ? ` of ${objectCount} Jobs` : ""}`;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
