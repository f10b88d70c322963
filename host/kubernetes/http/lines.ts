/** Splits the bytes of a watch, as they arrive, into events: one JSON object per line. */

/** Longest line of a watch, which is one object: bytes. etcd takes objects of 1.5 MB. @limit */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Splits at newlines only, which are never part of another character in UTF-8. */
export class Lines {
  #parts: Uint8Array[] = [];
  #lengthBytes = 0;

  /** Returns the lines that this piece completes, without newlines and empty lines. Throws RangeError for a line that is too long. */
  push(piece: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#keep(piece.subarray(start, end));
      const line = this.#take();
      if (line.trim() !== "") lines.push(line);
      start = end + 1;
    }
    this.#keep(piece.subarray(start));
    return lines;
  }

  /** Returns what came after the last newline. */
  rest(): string {
    return this.#take();
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#lengthBytes += part.length;
    if (this.#lengthBytes > MAX_EVENT_BYTES) throw new RangeError(`A line is longer than ${MAX_EVENT_BYTES} bytes`);
    this.#parts.push(part);
  }

  #take(): string {
    const text = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#lengthBytes = 0;
    return text;
  }
}
