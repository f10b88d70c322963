/**
 * Drops the parts of a large JSON text that its reader does not use, before it is parsed. Reading a megabyte byte by
 * byte takes a few milliseconds; parsing it takes ten and more, and leaves as much to be collected.
 */

/** The part of a value that is read. A value of another type than expected is kept whole, for its decoder to refuse. */
export type Part =
  | "all"
  /** For an object: the members that are read, and the part of each. */
  | { readonly members: Readonly<Record<string, Part>> }
  /**
   * For an object whose members are data: selects the members, `most` at most. `at` counts them from 0, wanted or not.
   */
  | { readonly entries: (key: string, at: number) => boolean; readonly most?: number }
  /** For a list: the items whose text contains this. */
  | { readonly containing: string }
  /** For a list: the part of each item. */
  | { readonly each: Part };

const [QUOTE, COMMA, COLON, OPEN_LIST, ESCAPE, CLOSE_LIST, OPEN, CLOSE, BLANK] = [...'",:[\\]{} '].map((each) =>
  each.charCodeAt(0),
) as [number, number, number, number, number, number, number, number, number];

/**
 * Returns the text without the members that `part` leaves out; undefined for a text that is not compact (blanks
 * outside of strings) or that ends too soon. Other malformed parts remain so, or are left out. Keys are compared as
 * they are written. UTF-8 in and out.
 */
export function pruneJson(text: Buffer, part: Part): Buffer | undefined {
  const pruner = new Pruner(text);
  return pruner.prune(part);
}

class Pruner {
  readonly #text: Buffer;
  #at = 0;
  /** Start of what is kept since the last gap. */
  #kept = 0;
  readonly #pieces: Buffer[] = [];

  constructor(text: Buffer) {
    this.#text = text;
  }

  prune(part: Part): Buffer | undefined {
    this.#value(part);
    if (this.#at !== this.#text.length) return undefined;
    this.#cut(this.#at, this.#at);
    return Buffer.concat(this.#pieces);
  }

  /** Passes the value that begins here. Stops in front of what it does not expect, and the caller with it. */
  #value(part: Part): void {
    const first = this.#text[this.#at];
    if (part === "all") this.#skip();
    else if ("containing" in part) {
      if (first === OPEN_LIST) this.#list(part.containing);
      else this.#skip();
    } else if ("each" in part) {
      if (first === OPEN_LIST) this.#each(part.each);
      else this.#skip();
    } else if (first === OPEN) this.#object(part);
    else this.#skip();
  }

  #each(part: Part): void {
    this.#sequence(CLOSE_LIST, () => {
      this.#value(part);
      return true;
    });
  }

  #object(part: Exclude<Part, "all" | { containing: string } | { each: Part }>): void {
    let kept = 0;
    this.#sequence(CLOSE, (at) => {
      const key = this.#key();
      if (key === undefined) return false;
      if ("entries" in part) {
        this.#skip();
        return kept < (part.most ?? Number.POSITIVE_INFINITY) && part.entries(key, at) && ++kept > 0;
      }
      const own = Object.hasOwn(part.members, key) ? part.members[key] : undefined;
      if (own === undefined) this.#skip();
      else this.#value(own);
      return own !== undefined;
    });
  }

  #list(containing: string): void {
    let next = this.#find(containing, this.#at);
    this.#sequence(CLOSE_LIST, () => {
      const start = this.#at;
      this.#skip();
      if (next < start) next = this.#find(containing, start);
      return next < this.#at;
    });
  }

  #find(text: string, from: number): number {
    const found = this.#text.indexOf(text, from, "latin1");
    return found < 0 ? this.#text.length : found;
  }

  /**
   * Members or items up to `end`, with the commas that divide those that are kept. `pass` passes one, and returns
   * whether it is kept.
   */
  #sequence(end: number, pass: (at: number) => boolean): void {
    const text = this.#text;
    this.#at++;
    let isFirst = true;
    for (let count = 0; text[this.#at] !== end && this.#at < text.length; count++) {
      const comma = this.#at;
      if (count > 0 && text[comma] !== COMMA) return;
      const start = count > 0 ? comma + 1 : comma;
      this.#at = start;
      if (isFirst) this.#cut(comma, start);
      const isKept = pass(count);
      if (this.#at === start) return;
      if (!isKept) this.#cut(isFirst ? start : comma, this.#at);
      isFirst &&= !isKept;
    }
    this.#at++;
  }

  /** Leaves out the bytes from `start` up to `end`, and keeps those between this gap and the one before. */
  #cut(start: number, end: number): void {
    if (start > this.#kept) this.#pieces.push(this.#text.subarray(this.#kept, start));
    this.#kept = end;
  }

  /** Passes a key and its colon. Goes beyond the end of the text, and returns undefined, if there is none. */
  #key(): string | undefined {
    const text = this.#text;
    const start = this.#at;
    const end = text[start] === QUOTE ? endOfString(text, start) : start;
    if (text[end] !== COLON || end === start) {
      this.#at = text.length + 1;
      return undefined;
    }
    this.#at = end + 1;
    return text.toString("utf8", start + 1, end - 1);
  }

  /** Passes a value of any kind. Goes beyond the end at a blank: the text is not compact. */
  #skip(): void {
    const text = this.#text;
    let at = this.#at;
    for (let depth = 0; at < text.length; ) {
      const byte = text[at] as number;
      const isClose = byte === CLOSE || byte === CLOSE_LIST;
      if (depth === 0 && (isClose || byte === COMMA)) break;
      if (byte <= BLANK) at = text.length;
      else if (byte === OPEN || byte === OPEN_LIST) depth++;
      else if (isClose) depth--;
      at = byte === QUOTE ? endOfString(text, at) : at + 1;
      if (depth === 0 && (isClose || byte === QUOTE)) break;
    }
    this.#at = at;
  }
}

/** Returns the place behind the string that begins at `start`; beyond the end of the text if it has none. */
function endOfString(text: Buffer, start: number): number {
  let at = start + 1;
  for (; at < text.length && text[at] !== QUOTE; at++) if (text[at] === ESCAPE) at++;
  return at + 1;
}
