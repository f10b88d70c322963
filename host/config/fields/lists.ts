/**
 * Rules of lists: at least one entry, no more than so many, no two entries with one key.
 */
import { z } from "zod";

/** A list that, where it is written, says something. */
export function nonEmptyList<S extends z.ZodType>(entry: S) {
  return z.array(entry).min(1, { error: "a list of at least one entry" });
}

/** The same of at most `most` entries; a longer list is refused with its length. */
export function boundedList<S extends z.ZodType>(entry: S, most: number, what: string) {
  return nonEmptyList(entry).check(({ value, issues }) => {
    if (value.length <= most) return;
    const [message, params] = [`at most ${most}`, { got: `${value.length} ${what}` }];
    issues.push({ code: "custom", path: [], message, params, input: value });
  });
}

/**
 * For `.check`: refuses the first entry whose key an earlier one has; `field` is where the key stands. No key, no rule.
 * `wanted` replaces the words that name the earlier one.
 */
export function refuseRepeated<T>(keyOf: (entry: T) => string | undefined, field: string, wanted?: string) {
  return ({ value, issues }: z.core.ParsePayload<T[]>): void => {
    const seen = new Map<string, number>();
    for (const [index, entry] of value.entries()) {
      const key = keyOf(entry);
      if (key === undefined) continue;
      const before = seen.get(key);
      if (before === undefined) {
        seen.set(key, index);
        continue;
      }
      const message = wanted ?? `another one than entry [${before}] has`;
      issues.push({ code: "custom", path: [index, field], message, input: value });
      return;
    }
  };
}
