/**
 * Numbers in messages, in the machine's byte order, which is little-endian wherever Berth runs.
 * Lengths are the caller's business: what lies beyond the end is read as zero.
 * Effects: the functions that put write into `bytes`.
 */

export function uint8At(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

export function uint16At(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
}

export function int32At(bytes: Uint8Array, at: number): number {
  return uint16At(bytes, at) | (uint16At(bytes, at + 2) << 16);
}

export function uint32At(bytes: Uint8Array, at: number): number {
  return int32At(bytes, at) >>> 0;
}

/** Of `value` the lower 16 bits. */
export function putUint16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff;
  bytes[at + 1] = (value >>> 8) & 0xff;
}

/** Of `value`, with a sign or without, the lower 32 bits. */
export function putUint32(bytes: Uint8Array, at: number, value: number): void {
  putUint16(bytes, at, value);
  putUint16(bytes, at + 2, value >>> 16);
}
