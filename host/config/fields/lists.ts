/** Schemas of lists: at least one entry, a maximum, no repeated keys. */
import * as z from "zod";

/** Returns the schema of a list with at least one entry. */
export function nonEmptyList<S extends z.ZodType>(entry: S) {
  return z.array(entry).min(1, { error: "a list of at least one entry" });
}

/** Returns the schema of a list with 1 to `most` entries. The error of a longer list has its length. */
export function boundedList<S extends z.ZodType>(entry: S, most: number, what: string) {
  return nonEmptyList(entry).check(({ value, issues }) => {
    if (value.length <= most) return;
    const [message, params] = [`at most ${most}`, { got: `${value.length} ${what}` }];
    issues.push({ code: "custom", path: [], message, params, input: value });
  });
}

/**
 * Returns a zod check that refuses the first entry with the key of an earlier entry; `field` is the key's path.
 * Entries without a key are not compared. `wanted` replaces the text that names the earlier entry.
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
      const message = wanted ?? `a value other than that of entry [${before}]`;
      issues.push({ code: "custom", path: [index, field], message, input: value });
      return;
    }
  };
}
