/**
 * The annotation `ipam.vendor.io/ippool-ip-number`: how many addresses a generated pool holds (specification, Resolved A).
 * Called by the annotations; the arithmetic with replicas is ipam/generated-pool's.
 */

/** `"N"` is fixed: `count` addresses; `"+N"` is flexible: the replicas and `count` more. */
export interface PoolNumber {
  readonly kind: "fixed" | "flexible";
  readonly count: number;
}

export const DEFAULT_POOL_NUMBER: PoolNumber = { kind: "flexible", count: 1 };

/** What {@link parsePoolNumber} accepts, for error texts. */
export const POOL_NUMBER_FORM = '"N" (that many addresses) or "+N" (replicas and N more), N a decimal number';

/** Undefined when the text is neither form. */
export function parsePoolNumber(text: string): PoolNumber | undefined {
  const match = /^(\+?)([0-9]+)$/.exec(text);
  const count = Number(match?.[2]);
  if (match === null || !Number.isSafeInteger(count)) return undefined;
  return { kind: match[1] === "+" ? "flexible" : "fixed", count };
}
