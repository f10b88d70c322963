/**
 * Estimates what a decoded value takes of the heap. A limit in bytes of text would not bound it: `{}` and a comma are
 * three bytes of JSON, and 64 of the heap.
 */

/** An object without members: header, and the room that the engine reserves for four. */
const OBJECT = 56;

/**
 * A member of an object: its place, and its part in the description of an object of this shape, which few objects
 * share if tenants choose the keys.
 */
const MEMBER = 112;

const LIST = 32;

/** A place in a list, or a reference. */
const SLOT = 8;

/** Header of a text, of a list's storage, or of a number that is no small integer. */
const HEADER = 16;

/** Objects inside of each other that are counted; a deeper value counts as endless. */
const MAX_DEPTH = 64;

/**
 * Returns an estimate that is no lower than what V8 takes for a value as `JSON.parse` makes it, and at most some three
 * times as high: bytes. Shared texts and shapes count for each use. Infinite for a value that is nested too deeply;
 * counting stops above `most`.
 */
export function heapBytes(value: unknown, most = Number.POSITIVE_INFINITY, depth = 0): number {
  if (typeof value === "string") return textBytes(value);
  if (typeof value === "number") return HEADER;
  if (typeof value !== "object" || value === null) return typeof value === "bigint" ? 2 * HEADER : 0;
  if (depth === MAX_DEPTH) return Number.POSITIVE_INFINITY;
  let bytes = Array.isArray(value) ? LIST + HEADER : OBJECT;
  if (Array.isArray(value))
    for (const item of value) {
      bytes += SLOT + heapBytes(item, most - bytes, depth + 1);
      if (bytes > most) break;
    }
  else
    for (const key in value) {
      bytes +=
        MEMBER + textBytes(key) + heapBytes((value as Readonly<Record<string, unknown>>)[key], most - bytes, depth + 1);
      if (bytes > most) break;
    }
  return bytes;
}

/** Two bytes for each character if one of them needs two. */
export function textBytes(text: string): number {
  const width = /[^\0-\xff]/.test(text) ? 2 : 1;
  return HEADER + SLOT * Math.ceil((text.length * width) / SLOT);
}
