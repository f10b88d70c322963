/** The benchmark `core`: the cost of taking and releasing an address in the core, as the agent calls it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool } from "../../host/core/pool.ts";
import { PoolSpace } from "../../host/core/pool-space.ts";
import type { Ip } from "../../host/net/ip.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { percentile, type Table } from "../../test/lab/statistics.ts";
import type { Bench, BenchOptions, BenchReport, Target } from "../harness/report.ts";
import { tableOf } from "../harness/table.ts";

const WARM_UP_MS = 200;
const SAMPLE_MS = 30;
const SAMPLES = 9;
const TURNS = 3;

interface BenchPool {
  readonly name: string;
  /** The IPv4 prefix has 2^bits addresses. */
  readonly bits: number;
  /** Share of the addresses that are used: the first ones, or those that chance chooses. */
  readonly fill: number;
  readonly pattern: "packed" | "random";
}

const POOLS: readonly BenchPool[] = [
  { name: "/24 50 % random", bits: 8, fill: 0.5, pattern: "random" },
  { name: "/16 empty", bits: 16, fill: 0, pattern: "packed" },
  { name: "/16 50 % random", bits: 16, fill: 0.5, pattern: "random" },
  { name: "/16 99 % random", bits: 16, fill: 0.99, pattern: "random" },
  { name: "/16 99 % packed", bits: 16, fill: 0.99, pattern: "packed" },
];

/** Nanoseconds of one turn on one pool. */
interface Figure {
  readonly pool: string;
  readonly ns: number;
}

export const coreBench: Bench = { name: "core", run: async (options) => runCore(options) };

function runCore({ quick }: BenchOptions): BenchReport {
  const wasm = readFileSync(join(root, "dist", "core", "berth-core.wasm"));
  const turns = Array.from({ length: quick ? 1 : TURNS }, () =>
    POOLS.map((pool) => ({ pool: pool.name, ns: timeCore(wasm, pool) })),
  );
  return { tables: [tabulate(turns.flat())], targets: [sizeTarget(wasm)], notes: NOTES, versions: {} };
}

const MOST_BYTES = 16 * 1024;

function sizeTarget({ length }: Uint8Array): Target {
  const isMet = length <= MOST_BYTES;
  return { what: "the core's module", wanted: `≤ ${MOST_BYTES} bytes`, measured: `${length} bytes`, isMet };
}

const NOTES = ["The core takes addresses in turn (ROUND_ROBIN), called from Node.js as the agent calls it."];

/** Returns nanoseconds per address taken and given back: the median of the samples. */
function timeCore(wasm: Uint8Array, shape: BenchPool): number {
  const [first, last] = [addressAt(0), addressAt(2 ** shape.bits - 1)];
  const masked = [first, last].map((ip) => ({ first: ip, last: ip }));
  using pool = PoolSpace.open(wasm).createPool({ ranges: [{ first, last }], masked });
  for (const ordinal of usedOrdinals(shape)) pool.claim(addressAt(ordinal));
  sample(pool, WARM_UP_MS);
  return percentile(
    Array.from({ length: SAMPLES }, () => sample(pool, SAMPLE_MS)),
    0.5,
  );
}

/** The clock is read after 1, 2, 4, 8 … further pairs. */
function sample(pool: Pool, leastMs: number): number {
  const start = performance.now();
  for (let more = 1, total = 0; ; more *= 2) {
    for (let i = 0; i < more; i++) {
      const ip = pool.allocate("ROUND_ROBIN");
      if (ip === undefined) throw new Error("The pool is full");
      pool.release(ip);
    }
    total += more;
    const elapsedMs = performance.now() - start;
    if (elapsedMs >= leastMs) return (elapsedMs * 1e6) / total;
  }
}

/** The median of the turns. */
function tabulate(figures: readonly Figure[]): Table {
  const medianOf = (pool: string) => {
    const own = figures.filter((figure) => figure.pool === pool);
    return percentile(
      own.map(({ ns }) => ns),
      0.5,
    );
  };
  return tableOf<string>(
    "Take the next free address and give it back, ns",
    [
      ["pool", (pool) => pool],
      ["Berth's core", medianOf],
    ],
    POOLS.map(({ name }) => name),
  );
}

function addressAt(ordinal: number): Ip {
  return { family: 4, value: BigInt(0x0a000000 + ordinal) };
}

/**
 * Returns the used ordinals, ascending, without the network and the broadcast address, which are masked.
 */
function usedOrdinals({ bits, fill, pattern }: BenchPool): number[] {
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
