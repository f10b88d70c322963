/** The annotation `ipam.vendor.io/ippool-ip-number`: the size of a generated pool. */

/** `"N"` is fixed: `count` addresses. `"+N"` is flexible: `count` more than the replicas. */
export interface PoolNumber {
  readonly kind: "fixed" | "flexible";
  readonly count: number;
}

export const DEFAULT_POOL_NUMBER: PoolNumber = { kind: "flexible", count: 1 };

/** The form that {@link parsePoolNumber} accepts, for error texts. */
export const POOL_NUMBER_FORM = '"N" (that many addresses) or "+N" (replicas and N more), N a decimal number';

/** Returns undefined if the text has neither form. */
export function parsePoolNumber(text: string): PoolNumber | undefined {
  const match = /^(\+?)([0-9]+)$/.exec(text);
  const count = Number(match?.[2]);
  if (match === null || !Number.isSafeInteger(count)) return undefined;
  return { kind: match[1] === "+" ? "flexible" : "fixed", count };
}
