/** Cuts lists of addresses into parts that one question may have. */
import type { Ip } from "../../../host/net/ip.ts";
import type { Range } from "../../../host/net/range.ts";

/** Returns the same addresses in the same order; each part has at most so many addresses, and so many ranges. */
export function cutRanges(
  list: readonly Range[],
  limits: { readonly addresses: number; readonly ranges: number },
): readonly (readonly Range[])[] {
  const parts: Range[][] = [];
  let left = 0;
  for (const { first, last } of list) {
    const { family } = first;
    const ip = (value: bigint): Ip => ({ family, value });
    for (let from = first.value; from <= last.value; ) {
      const part = parts.at(-1);
      if (part === undefined || left === 0 || part.length === limits.ranges) {
        parts.push([]);
        left = limits.addresses;
        continue;
      }
      const to = from + BigInt(left) - 1n < last.value ? from + BigInt(left) - 1n : last.value;
      part.push({ first: ip(from), last: ip(to) });
      left -= Number(to - from + 1n);
      from = to + 1n;
    }
  }
  return parts;
}
