import { describe, expect, it } from "vitest";
import { putSpans } from "./pool-pair.ts";
import { bytesOf, checksumOf, joinBytes, RawCore } from "./raw-core.ts";

const BAD_SNAPSHOT = -10;
const WINDOW = 1n << 24n;
const [EMPTY, FULL, RUNS, RAW] = [0, 1, 2, 3];

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

function token(kind: number, count = 0): number[] {
  return varint((BigInt(count) << 2n) | BigInt(kind));
}

function runs(...lengths: number[]): number[] {
  return [...token(RUNS), ...lengths.flatMap((length) => varint(BigInt(length)))];
}

function raw(...ordinals: number[]): number[] {
  const bits = new Array<number>(512).fill(0);
  for (const ordinal of ordinals) bits[ordinal >> 3] = (bits[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
  return [...token(RAW), ...bits];
}

function beyond(gapHigh: bigint, gapLow: bigint, length: bigint): number[] {
  return [...varint(gapHigh), ...varint(gapLow), ...varint(length - 1n)];
}

interface Forgery {
  readonly name: string;
  readonly body: number[];
  readonly used?: number;
  readonly runs?: number;
  readonly cursor?: number;
  readonly wanted: number;
}

/** Loads a snapshot with this body and a right header and checksum. */
function load(core: RawCore, pool: number, { body, used = 0, runs = 0, cursor = 0 }: Forgery): number {
  core.call("pool_save", pool);
  const header = core.take(32);
  const view = new DataView(header.buffer);
  view.setUint32(20, used, true);
  view.setUint32(24, runs, true);
  view.setUint32(28, cursor, true);
  const bytes = joinBytes([header, Uint8Array.from(body)]);
  const forged = joinBytes([bytes, checksumOf(bytes)]);
  core.put(forged);
  return core.call("pool_load", pool, forged.length);
}

const inOneChunk: readonly Forgery[] = [
  { name: "runs", body: runs(10, 5, 4081), used: 5, wanted: 0 },
  { name: "runs from the first on", body: runs(0, 100, 3996), used: 100, cursor: 100, wanted: 0 },
  { name: "runs past the window", body: runs(90, 11, 3995), used: 11, wanted: BAD_SNAPSHOT },
  { name: "runs past the chunk", body: runs(10, 5, 4082), used: 5, wanted: BAD_SNAPSHOT },
  { name: "an empty run in the middle", body: runs(10, 5, 0, 5, 4076), used: 10, wanted: BAD_SNAPSHOT },
  { name: "runs cut short", body: runs(10, 5), used: 5, wanted: BAD_SNAPSHOT },
  { name: "an endless number", body: [...token(RUNS), ...new Array<number>(20).fill(255)], wanted: BAD_SNAPSHOT },
  {
    name: "runs with a count",
    body: [...token(RUNS, 1), ...runs(10, 5, 4081).slice(1)],
    used: 5,
    wanted: BAD_SNAPSHOT,
  },
  { name: "raw", body: raw(0, 99), used: 2, wanted: 0 },
  { name: "raw past the window", body: raw(0, 100), used: 2, wanted: BAD_SNAPSHOT },
  { name: "raw cut short", body: raw(0).slice(0, 400), used: 1, wanted: BAD_SNAPSHOT },
  { name: "raw with a count", body: [...token(RAW, 1), ...raw(0).slice(1)], used: 1, wanted: BAD_SNAPSHOT },
  { name: "nothing", body: token(EMPTY, 1), wanted: 0 },
  { name: "no chunk", body: [...token(EMPTY, 0), ...token(EMPTY, 1)], wanted: BAD_SNAPSHOT },
  { name: "a chunk too many", body: token(EMPTY, 2), wanted: BAD_SNAPSHOT },
  { name: "a full chunk over a short window", body: token(FULL, 1), used: 100, wanted: BAD_SNAPSHOT },
  { name: "a byte too many", body: [...token(EMPTY, 1), 0], wanted: BAD_SNAPSHOT },
  { name: "another number of used ones", body: runs(10, 5, 4081), used: 6, wanted: BAD_SNAPSHOT },
  { name: "a cursor past the window", body: token(EMPTY, 1), cursor: 101, wanted: BAD_SNAPSHOT },
  { name: "a missing run beyond", body: token(EMPTY, 1), runs: 1, wanted: BAD_SNAPSHOT },
];

const window = token(EMPTY, 4096);
const below = (1n << 64n) - 1n;

const beyondTheWindow: readonly Forgery[] = [
  { name: "two runs", body: [...window, ...beyond(0n, 3n, 2n), ...beyond(0n, 1n, 4n)], runs: 2, wanted: 0 },
  { name: "a run past the ranges", body: [...window, ...beyond(0n, 9n, 2n)], runs: 1, wanted: BAD_SNAPSHOT },
  { name: "a run far past them", body: [...window, ...beyond(1n, 0n, 1n)], runs: 1, wanted: BAD_SNAPSHOT },
  { name: "a run without end", body: [...window, ...beyond(0n, 0n, 1n << 60n)], runs: 1, wanted: BAD_SNAPSHOT },
  {
    name: "a run that comes round into the window",
    body: [...window, ...beyond(below, below - WINDOW + 6n, 1n)],
    used: 1,
    runs: 1,
    wanted: BAD_SNAPSHOT,
  },
  { name: "a full window", body: token(FULL, 4096), used: 1 << 24, wanted: 0 },
];

describe.each(["release", "debug"] as const)("forged snapshots (%s)", (build) => {
  it.each(inOneChunk)("of 100 addresses: $name", (forgery) => {
    const core = new RawCore(build);
    const pool = core.call("pool_create", putSpans(core, 4, [[50n, 149n]]), putSpans(core, 4, []));
    expect(load(core, pool, forgery)).toBe(forgery.wanted);
    core.call("pool_counts", pool);
    const counts = new DataView(core.take(72).buffer);
    expect(counts.getUint32(40, true)).toBe(forgery.wanted === 0 ? (forgery.used ?? 0) : 0);
  });

  it.each(beyondTheWindow)("of 2^24 + 10 addresses: $name", (forgery) => {
    const core = new RawCore(build);
    const pool = core.call("pool_create", putSpans(core, 6, [[7n, WINDOW + 16n]]), putSpans(core, 6, []));
    expect(load(core, pool, forgery)).toBe(forgery.wanted);
    core.put(bytesOf(WINDOW + 7n + 3n, 16));
    expect(core.call("pool_test", pool)).toBe(Number(forgery.wanted === 0 && forgery.runs === 2));
  });
});
