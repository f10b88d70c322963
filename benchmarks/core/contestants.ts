/**
 * The four who do the same work: the core called from JavaScript, the core inside Wasm, a JavaScript twin, a C twin.
 * Effects: the C compiler and asc write to a temporary folder; child processes.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { type Case, FIRST_SEED, fillCase, firstOf, nextSeed, OPERATION_NAMES, type Operation } from "./cases.ts";
import { Uint32Twin } from "./uint32-twin.ts";

export const CONTESTANTS = ["JavaScript → core", "inside Wasm", "JavaScript twin", "C twin"] as const;

export type Contestant = (typeof CONTESTANTS)[number];

/** Nanoseconds per turn of an operation's loop. */
export type Timings = Readonly<Record<Operation, number>>;

type Loop = (count: number) => void;
type Exports = Readonly<Record<string, (...args: number[]) => number>> & { readonly memory: WebAssembly.Memory };

/** Turns of a contest that do not count: the engine compiles meanwhile. */
const WARM_ROUNDS = 3;

/**
 * So many turns of an operation's loop again and again are the same code on the same pool without misses: their cache lines stay in the first
 * level, and the branch predictor learns their way.
 */
export const REPEATED_TURNS = 64;

/** The addon that twin.c is. */
interface Native {
  /** Makes the one pool, whose first address has that high half and those last four bytes: the audit's sum. */
  open(bits: number, fill: number, isPacked: boolean, high: bigint, low: number): number;
  /** Runs the loop of an operation, by its index in OPERATION_NAMES. */
  turn(operation: number, count: number): void;
  /** Loads from random places of 2^bits bytes, each place known only when the load before is done. */
  load(bits: number, count: number): void;
}

export interface Toolbox {
  readonly core: WebAssembly.Module;
  readonly loops: WebAssembly.Module;
  readonly native: Native;
}

/** Builds what the contest needs beyond the core itself: the folder it is in. */
export function buildToolbox(): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-core-bench-"));
  const asc = join(root, "node_modules", ".bin", "asc");
  execFileSync(asc, ["assembly/bench/loop.ts", "--target", "release", "--outFile", join(folder, "loop.wasm")], {
    cwd: root,
    stdio: "pipe",
  });
  const headers = join(dirname(dirname(process.execPath)), "include", "node");
  const flags = ["-O2", "-Wall", "-shared", "-fPIC", "-isystem", headers];
  execFileSync("cc", [...flags, "-o", join(folder, "twin.node"), join(root, "benchmarks/core/twin.c")]);
  return folder;
}

/** Loads what {@link buildToolbox} built, and the core. */
export function openToolbox(folder: string): Toolbox {
  const load = (path: string) => new WebAssembly.Module(readFileSync(path));
  const core = load(join(root, "dist/core/berth-core.wasm"));
  const native = createRequire(import.meta.url)(join(folder, "twin.node")) as Native;
  return { core, loops: load(join(folder, "loop.wasm")), native };
}

/** An instance with a pool as the case wants it, and what it takes to reach it. */
export function openPool(module: WebAssembly.Module, size: Case["size"]): { exports: Exports; pool: number } {
  const exports = new WebAssembly.Instance(module, {}).exports as unknown as Exports;
  const call = (name: string, ...args: number[]): number => exports[name]?.(...args) ?? Number.NaN;
  const at = call("exchange", 1 << 20);
  const view = new DataView(exports.memory.buffer, at, 1 << 20);
  const { high, low } = firstOf(size);
  if (size.family === 4) {
    view.setUint32(0, low);
    view.setUint32(4, low + 2 ** size.bits - 1);
  } else {
    view.setBigUint64(0, high);
    view.setBigUint64(16, high);
    view.setBigUint64(24, 0xffffffffffffffffn);
  }
  const pool = call("pool_create", call("set_create", size.family, 1), call("set_create", size.family, 0));
  if (!(pool > 0)) throw new Error(`pool_create: ${pool}`);
  return { exports, pool };
}

/** The exchange buffer with the pool's first address in it. Valid until the memory grows. */
function writeFirst({ memory, exchange }: Exports, size: Case["size"]): DataView {
  const input = new DataView(memory.buffer, exchange?.(0), 16);
  if (size.family === 6) input.setBigUint64(0, firstOf(size).high);
  input.setUint32(8, 0);
  return input;
}

function loopsFromJavaScript(module: WebAssembly.Module, work: Case): Record<Operation, Loop> {
  const { exports, pool } = openPool(module, work.size);
  const { pool_allocate, pool_release_at, pool_claim_at, pool_find, pool_test, pool_test_at } = exports;
  if (!pool_allocate || !pool_release_at || !pool_claim_at || !pool_find || !pool_test || !pool_test_at)
    throw new Error("exports");
  fillCase(work, (ordinal) => pool_claim_at(pool, ordinal));
  const shift = 32 - work.size.bits;
  const { low, at } = firstOf(work.size);
  let input = writeFirst(exports, work.size);
  return {
    allocate: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        pool_release_at(pool, pool_allocate(pool, 2, x));
      }
    },
    ascending: (count) => {
      for (let i = 0; i < count; i++) pool_release_at(pool, pool_allocate(pool, 0, 0));
    },
    find: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        pool_find(pool, x);
      }
    },
    test: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        pool_test_at(pool, x >>> shift);
      }
    },
    toggle: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        const ordinal = x >>> shift;
        if (pool_release_at(pool, ordinal) === 1) pool_claim_at(pool, ordinal);
        else {
          pool_claim_at(pool, ordinal);
          pool_release_at(pool, ordinal);
        }
      }
    },
    address: (count) => {
      if (input.buffer !== exports.memory.buffer) input = writeFirst(exports, work.size);
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        input.setUint32(at, low + (x >>> shift));
        pool_test(pool);
      }
    },
  };
}

/** A record of what each operation has. */
export function ofOperations<T>(make: (operation: Operation, index: number) => T): Record<Operation, T> {
  return Object.fromEntries(OPERATION_NAMES.map((name, index) => [name, make(name, index)])) as Record<Operation, T>;
}

function loopsInsideWasm(module: WebAssembly.Module, work: Case): Record<Operation, Loop> {
  const { exports, pool } = openPool(module, work.size);
  fillCase(work, (ordinal) => exports.pool_claim_at?.(pool, ordinal));
  writeFirst(exports, work.size);
  const { low, at } = firstOf(work.size);
  return ofOperations((operation) => (count) => {
    exports[`loop_${operation}`]?.(pool, count, FIRST_SEED, work.size.bits, low, at);
  });
}

function loopsOfTwin(work: Case): Record<Operation, Loop> {
  const twin = new Uint32Twin(work.size.bits);
  fillCase(work, (ordinal) => twin.claim(ordinal));
  const shift = 32 - work.size.bits;
  const { low, at } = firstOf(work.size);
  const input = new DataView(new ArrayBuffer(16));
  const cycle = (ordinal: number): void => {
    twin.claim(ordinal);
    twin.release(ordinal);
  };
  return {
    allocate: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        cycle(twin.find(x));
      }
    },
    ascending: (count) => {
      for (let i = 0; i < count; i++) cycle(twin.find(0));
    },
    find: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        twin.find(x);
      }
    },
    test: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        twin.test(x >>> shift);
      }
    },
    toggle: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        const ordinal = x >>> shift;
        if (twin.release(ordinal)) twin.claim(ordinal);
        else cycle(ordinal);
      }
    },
    address: (count) => {
      for (let i = 0, x = FIRST_SEED; i < count; i++) {
        x = nextSeed(x);
        input.setUint32(at, low + (x >>> shift));
        twin.test(input.getUint32(at) - low);
      }
    },
  };
}

export function median(samples: readonly number[]): number {
  return [...samples].sort((a, b) => a - b)[samples.length >> 1] ?? Number.NaN;
}

/** The sum of what 1,000 searches find: the contestants must agree before they race. */
function auditOf(find: (seed: number) => number): number {
  let sum = 0;
  for (let i = 0, seed = FIRST_SEED; i < 1000; i++) {
    seed = nextSeed(seed);
    sum += find(seed);
  }
  return sum % 2 ** 32;
}

function auditOurs(toolbox: Toolbox, work: Case): number[] {
  const cores = [toolbox.core, toolbox.loops].map((module) => {
    const { exports, pool } = openPool(module, work.size);
    fillCase(work, (ordinal) => exports.pool_claim_at?.(pool, ordinal));
    return auditOf((seed) => exports.pool_find?.(pool, seed) ?? Number.NaN);
  });
  const twin = new Uint32Twin(work.size.bits);
  fillCase(work, (ordinal) => twin.claim(ordinal));
  return [...cores, auditOf((seed) => twin.find(seed))];
}

export interface Contested {
  readonly turns: Readonly<Record<Contestant, Timings>>;
  /** JavaScript → core again, the same {@link REPEATED_TURNS} turns over and over. */
  readonly repeated: Timings;
  /** JavaScript → core in times of the C twin, in the median round: whatever disturbs a round disturbs both. */
  readonly times: Timings;
}

export function nanosecondsOf(work: () => void): number {
  const started = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - started);
}

/** Times every operation for all contestants over one case: they take turns, and the median of the rounds counts. Throws when they do not find the same. */
export function contest(toolbox: Toolbox, work: Case, count: number, rounds: number): Contested {
  const { native } = toolbox;
  const { high, low } = firstOf(work.size);
  const nativeAudit = native.open(work.size.bits, work.fill, work.pattern === "packed", high, low);
  const audits = [nativeAudit, ...auditOurs(toolbox, work)];
  if (new Set(audits).size !== 1) throw new Error(`The contestants find different addresses: ${audits.join(", ")}`);
  const loops: Readonly<Record<Contestant, Record<Operation, Loop>>> = {
    "JavaScript → core": loopsFromJavaScript(toolbox.core, work),
    "inside Wasm": loopsInsideWasm(toolbox.loops, work),
    "JavaScript twin": loopsOfTwin(work),
    "C twin": ofOperations((_, index) => (turns) => native.turn(index, turns)),
  };
  const medians = ofOperations((operation) => {
    const samples = CONTESTANTS.map((): number[] => []);
    const repeated: number[] = [];
    for (let round = -WARM_ROUNDS; round < rounds; round++) {
      for (const [index, name] of CONTESTANTS.entries()) {
        loops[name][operation](count); // brings its pool back into the caches
        const ns = nanosecondsOf(() => loops[name][operation](count));
        if (round >= 0) samples[index]?.push(ns / count);
      }
      const again = loops["JavaScript → core"][operation];
      const ns = nanosecondsOf(() => {
        for (let done = 0; done < count; done += REPEATED_TURNS) again(REPEATED_TURNS);
      });
      if (round >= 0) repeated.push(ns / count);
    }
    const [ours = [], , , native = []] = samples;
    const times = ours.map((ns, round) => ns / (native[round] ?? Number.NaN));
    return { samples: samples.map(median), repeated: median(repeated), times: median(times) };
  });
  const timings = CONTESTANTS.map((name, index) => [
    name,
    ofOperations((operation) => medians[operation].samples[index]),
  ]);
  return {
    turns: Object.fromEntries(timings) as Record<Contestant, Timings>,
    repeated: ofOperations((operation) => medians[operation].repeated),
    times: ofOperations((operation) => medians[operation].times),
  };
}
