/**
 * Random choices that a printed seed repeats, and mutations of bytes built on them.
 * Effects: none after creation; a generator has a state.
 */

/** A whole number in [0, below). */
export type Random = (below: number) => number;

/** xorshift32 (Marsaglia 2003). `seed` must not be 0. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Bytes that mean something to JSON or HTTP, and some that break UTF-8. */
const SPECIAL = Buffer.from('{}[]",:\\/u0019.eE+-tfn \t\r\n\0\x7f\x80\xbf\xc0\xc2\xe0\xed\xf0\xf4\xff', "latin1");

function splice(bytes: Buffer, start: number, removed: number, inserted: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, start), inserted, bytes.subarray(start + removed)]);
}

/** One to four small changes: a byte replaced, removed or inserted, a piece doubled or cut off. */
export function mutate(original: Buffer, random: Random): Buffer {
  let bytes = original;
  for (let change = random(4); change >= 0; change--) {
    const at = random(bytes.length + 1);
    const special = SPECIAL.subarray(random(SPECIAL.length)).subarray(0, 1);
    const pieceLength = random(16);
    const edits = [
      () => splice(bytes, at, 1, special),
      () => splice(bytes, at, 0, special),
      () => splice(bytes, at, 1 + random(3), Buffer.alloc(0)),
      () => splice(bytes, at, 0, bytes.subarray(at, at + pieceLength)),
      () => splice(bytes, at, 1, Buffer.from([random(256)])),
      () => (random(8) === 0 ? bytes.subarray(0, at) : bytes),
    ];
    bytes = edits[random(edits.length)]?.() ?? bytes;
  }
  return bytes;
}
