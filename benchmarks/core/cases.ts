/** What is measured of the core: sizes, fills, operations, and the chance that fills pools alike in every language. */

export interface Size {
  readonly name: string;
  readonly family: 4 | 6;
  /** The window has 2^bits ordinals. */
  readonly bits: number;
}

/** Of a size's first address: its high half, and the last four bytes, which stand at `at` of its bytes. */
export function firstOf({ family }: Size): { readonly high: bigint; readonly low: number; readonly at: number } {
  return family === 4 ? { high: 0n, low: 0x0a000000, at: 0 } : { high: 0x20010db8n << 32n, low: 0, at: 12 };
}

export const SIZES: readonly Size[] = [
  { name: "/24", family: 4, bits: 8 },
  { name: "/16", family: 4, bits: 16 },
  { name: "/10", family: 4, bits: 22 },
  { name: "/8", family: 4, bits: 24 },
  { name: "IPv6 /64", family: 6, bits: 24 },
];

export type Pattern = "packed" | "random";

export interface Case {
  readonly size: Size;
  /** Share of the ordinals that are used; at least one is free. */
  readonly fill: number;
  readonly pattern: Pattern;
}

const FILLS = [0, 0.5, 0.99, 0.9999];

export const CASES: readonly Case[] = SIZES.flatMap((size) =>
  FILLS.flatMap((fill) =>
    (fill === 0 ? (["packed"] as const) : (["packed", "random"] as const)).map((pattern) => ({ size, fill, pattern })),
  ),
);

export type Operation = "allocate" | "ascending" | "find" | "test" | "toggle" | "address";

export const OPERATION_NAMES: readonly Operation[] = ["allocate", "ascending", "find", "test", "toggle", "address"];

/** Calls of the core in one turn of the operation's loop; toggle makes three where the ordinal was free, else two. */
export function callsPerTurn(operation: Operation, fill: number): number {
  return { allocate: 2, ascending: 2, find: 1, test: 1, toggle: 3 - fill, address: 1 }[operation];
}

export const WHAT: Readonly<Record<Operation, string>> = {
  allocate: "allocate by hash, release",
  ascending: "allocate the lowest, release",
  find: "find a free one from anywhere",
  test: "is it used?",
  toggle: "claim and release by ordinal",
  address: "write an address, is it used?",
};

/** xorshift32, as in assembly/bench/loop.ts and twin.c; the number is signed, which JavaScript reckons faster with. */
export function nextSeed(seed: number): number {
  let x = seed;
  x ^= x << 13;
  x ^= x >>> 17;
  return x ^ (x << 5);
}

export const FIRST_SEED = 2463534242 | 0;

/** Calls `claim` for the ordinals that the case has used; ordinal 2^bits - 1 stays free. */
export function fillCase({ size, fill, pattern }: Case, claim: (ordinal: number) => void): void {
  const most = 2 ** size.bits - 1;
  const packed = Math.min(most, Math.floor(2 ** size.bits * fill));
  const limit = Math.floor(fill * 2 ** 32);
  let seed = FIRST_SEED;
  for (let ordinal = 0; ordinal < most; ordinal++) {
    seed = nextSeed(seed);
    if (pattern === "packed" ? ordinal < packed : seed >>> 0 < limit) claim(ordinal);
  }
}
