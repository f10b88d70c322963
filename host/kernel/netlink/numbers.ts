/**
 * Numbers in messages, in the machine's byte order, which is little-endian wherever Berth runs. Callers check lengths;
 * bytes beyond the end are read as zero.
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

/** Writes the lower 16 bits of `value`. */
export function putUint16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff;
  bytes[at + 1] = (value >>> 8) & 0xff;
}

/** Writes the lower 32 bits of `value`, signed or unsigned. */
export function putUint32(bytes: Uint8Array, at: number, value: number): void {
  putUint16(bytes, at, value);
  putUint16(bytes, at + 2, value >>> 16);
}
