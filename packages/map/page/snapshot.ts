/**
 * Reads the core's snapshots of used addresses (docs/develop/wasm-abi.md, Snapshots) as bits, without masks and without
 * addresses beyond the window.
 */

const MAGIC = 0x53545242;
const VERSION = 1;
const HEADER_BYTES = 32;
const CHUNK = 4_096;
const RAW_BYTES = 512;

/** The encodings of a chunk. */
const EMPTY = 0;
const FULL = 1;
const RUNS = 2;

/** Sets the bits `start` to `end` - 1. */
export function setRun(bits: Uint32Array, start: number, end: number): void {
  if (start >= end) return;
  const [first, last] = [start >>> 5, (end - 1) >>> 5];
  // Ones from the start of the run on, and up to its end.
  const [head, tail] = [-1 << (start & 31), -1 >>> (31 - ((end - 1) & 31))];
  if (first === last) {
    bits[first] = (bits[first] ?? 0) | (head & tail);
    return;
  }
  bits[first] = (bits[first] ?? 0) | head;
  if (last - first > 1) bits.fill(0xffffffff, first + 1, last);
  bits[last] = (bits[last] ?? 0) | tail;
}

export function setBit(bits: Uint32Array, at: number, value: boolean): void {
  const mask = 1 << (at & 31);
  const word = bits[at >>> 5] ?? 0;
  bits[at >>> 5] = value ? word | mask : word & ~mask;
}

/**
 * Returns one bit for each address of the window, set when it is used: address i is bit i mod 32 of word i / 32. The
 * words have room for whole chunks of 4,096. Throws on anything that is not a snapshot of this version.
 */
export function readSnapshot(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER_BYTES || view.getUint32(0, true) !== MAGIC || bytes[4] !== VERSION) {
    throw new Error("The map's bytes are no snapshot of version 1");
  }
  const chunks = Math.ceil(view.getUint32(16, true) / CHUNK);
  const bits = new Uint32Array((chunks * CHUNK) / 32);
  const raw = new Uint8Array(bits.buffer);
  let at = HEADER_BYTES;
  const next = (): number => {
    let value = 0;
    // No number of a map of 2^24 addresses has more than 28 bits.
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) break;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new Error("The map's bytes end too early");
  };
  for (let chunk = 0; chunk < chunks; ) {
    const token = next();
    const kind = token & 3;
    const count = kind === EMPTY || kind === FULL ? token >>> 2 : 1;
    if (count === 0 || count > chunks - chunk) throw new Error("The map's bytes are damaged");
    const first = chunk * CHUNK;
    if (kind === FULL) setRun(bits, first, first + count * CHUNK);
    else if (kind === RUNS) {
      let isSet = false;
      for (let bit = 0; bit < CHUNK; isSet = !isSet) {
        const end = bit + next();
        if (end > CHUNK || (end === bit && bit > 0)) throw new Error("The map's bytes are damaged");
        if (isSet) setRun(bits, first + bit, first + end);
        bit = end;
      }
    } else if (kind !== EMPTY) {
      if (at + RAW_BYTES > bytes.length) throw new Error("The map's bytes end too early");
      raw.set(bytes.subarray(at, at + RAW_BYTES), first / 8);
      at += RAW_BYTES;
    }
    chunk += count;
  }
  return bits;
}
