/**
 * Many addresses as one piece of bytes, 4 or 16 big-endian each.
 */

/** Grows by doubling: a million addresses are four megabytes here and would be two hundred as rows. */
export class PackedAddresses {
  readonly #width: number;
  #bytes = new Uint8Array(1024);
  #length = 0;

  constructor(width: number) {
    this.#width = width;
  }

  push(address: Uint8Array): void {
    if (this.#length + this.#width > this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(address, this.#length);
    this.#length += this.#width;
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}
