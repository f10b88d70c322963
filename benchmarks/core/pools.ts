/** The pools that the allocators are measured on, filled alike for all of them. */
import { formatIp, type Ip } from "../../host/net/ip.ts";

export interface BenchPool {
  readonly name: string;
  /** The IPv4 prefix has 2^bits addresses. */
  readonly bits: number;
  /** Share of the addresses that are used: the first ones, or those that chance chooses. */
  readonly fill: number;
  readonly pattern: "packed" | "random";
}

export const POOLS: readonly BenchPool[] = [
  { name: "/24 50 % random", bits: 8, fill: 0.5, pattern: "random" },
  { name: "/16 empty", bits: 16, fill: 0, pattern: "packed" },
  { name: "/16 50 % random", bits: 16, fill: 0.5, pattern: "random" },
  { name: "/16 99 % random", bits: 16, fill: 0.99, pattern: "random" },
  { name: "/16 99 % packed", bits: 16, fill: 0.99, pattern: "packed" },
];

export function addressAt(ordinal: number): Ip {
  return { family: 4, value: BigInt(0x0a000000 + ordinal) };
}

/**
 * Returns the used ordinals, ascending, without the network and the broadcast address, which every allocator keeps to
 * itself.
 */
export function usedOrdinals({ bits, fill, pattern }: BenchPool): number[] {
  const size = 2 ** bits;
  const used: number[] = [];
  let seed = 2_463_534_242;
  for (let ordinal = 1; ordinal < size - 1; ordinal++) {
    seed = nextSeed(seed);
    if (pattern === "packed" ? ordinal < size * fill : seed < 2 ** 32 * fill) used.push(ordinal);
  }
  return used;
}

/** xorshift32. */
function nextSeed(seed: number): number {
  let x = seed;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  return x >>> 0;
}

/** The pool as the peers' program reads it. */
export function describePool(pool: BenchPool): { name: string; prefix: string; used: string[] } {
  const used = usedOrdinals(pool).map((ordinal) => formatIp(addressAt(ordinal)));
  return { name: pool.name, prefix: `${formatIp(addressAt(0))}/${32 - pool.bits}`, used };
}
