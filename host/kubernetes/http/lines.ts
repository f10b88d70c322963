/** Splits the bytes of a watch, as they arrive, into events: one JSON object per line. */

/** Longest line of a watch, which is one object: bytes. etcd takes objects of 1.5 MB. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;
const BLANK = 0x20;

/** Splits at newlines only, which are never part of another character in UTF-8. */
export class Lines {
  #parts: Uint8Array[] = [];
  #lengthBytes = 0;

  /** Returns the lines that this piece completes, without newlines and blank lines. Throws RangeError for a line that is too long. */
  push(piece: Uint8Array): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#keep(piece.subarray(start, end));
      const line = this.#take();
      if (!isBlank(line)) lines.push(line);
      start = end + 1;
    }
    this.#keep(piece.subarray(start));
    return lines;
  }

  /** Returns what came after the last newline. */
  rest(): Buffer {
    return this.#take();
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#lengthBytes += part.length;
    if (this.#lengthBytes > MAX_EVENT_BYTES) throw new RangeError(`A line is longer than ${MAX_EVENT_BYTES} bytes`);
    this.#parts.push(part);
  }

  #take(): Buffer {
    const line = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#lengthBytes = 0;
    return line;
  }
}

/** Returns whether there is nothing but blanks. */
export function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte <= BLANK);
}
