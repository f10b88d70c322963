/**
 * The four who do the same work: the core called from JavaScript, the core inside Wasm, a JavaScript twin, a C twin.
 * Effects: the C compiler and asc write to a temporary folder; child processes.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { type Case, FIRST_SEED, fillCase, nextSeed, OPERATION_NAMES, type Operation } from "./cases.ts";
import { Uint32Twin } from "./uint32-twin.ts";

export const CONTESTANTS = ["JavaScript → core", "inside Wasm", "JavaScript twin", "C twin"] as const;

export type Contestant = (typeof CONTESTANTS)[number];

/** Nanoseconds per turn of an operation's loop. */
export type Timings = Readonly<Record<Operation, number>>;

type Loop = (count: number) => void;
type Exports = Readonly<Record<string, (...args: number[]) => number>> & { readonly memory: WebAssembly.Memory };

/** Turns of a contest that do not count: the engine compiles meanwhile. */
const WARM_ROUNDS = 3;

export interface Toolbox {
  readonly core: WebAssembly.Module;
  readonly loops: WebAssembly.Module;
  readonly native: string;
}

/** Builds what the contest needs beyond the core itself: the folder it is in. */
export function buildToolbox(): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-core-bench-"));
  const asc = join(root, "node_modules", ".bin", "asc");
  execFileSync(asc, ["assembly/bench/loop.ts", "--target", "release", "--outFile", join(folder, "loop.wasm")], {
    cwd: root,
    stdio: "pipe",
  });
  execFileSync("cc", ["-O2", "-Wall", "-o", join(folder, "twin"), join(root, "benchmarks/core/twin.c")]);
  return folder;
}

/** Loads what {@link buildToolbox} built, and the core. */
export function openToolbox(folder: string): Toolbox {
  const load = (path: string) => new WebAssembly.Module(readFileSync(path));
  const core = load(join(root, "dist/core/berth-core.wasm"));
  return { core, loops: load(join(folder, "loop.wasm")), native: join(folder, "twin") };
}

/** An instance with a pool as the case wants it, and what it takes to reach it. */
export function openPool(module: WebAssembly.Module, size: Case["size"]): { exports: Exports; pool: number } {
  const exports = new WebAssembly.Instance(module, {}).exports as unknown as Exports;
  const call = (name: string, ...args: number[]): number => exports[name]?.(...args) ?? Number.NaN;
  const at = call("exchange", 1 << 20);
  const view = new DataView(exports.memory.buffer, at, 1 << 20);
  if (size.family === 4) {
    view.setUint32(0, 0x0a000000);
    view.setUint32(4, 0x0a000000 + 2 ** size.bits - 1);
  } else {
    view.setBigUint64(0, 0x20010db8n << 32n);
    view.setBigUint64(16, 0x20010db8n << 32n);
    view.setBigUint64(24, 0xffffffffffffffffn);
  }
  const pool = call("pool_create", call("set_create", size.family, 1), call("set_create", size.family, 0));
  if (!(pool > 0)) throw new Error(`pool_create: ${pool}`);
  return { exports, pool };
}

function loopsFromJavaScript(module: WebAssembly.Module, work: Case): Record<Operation, Loop> {
  const { exports, pool } = openPool(module, work.size);
  const { pool_allocate, pool_release_at, pool_claim_at, pool_find, pool_test_at } = exports;
  if (!pool_allocate || !pool_release_at || !pool_claim_at || !pool_find || !pool_test_at) throw new Error("exports");
  fillCase(work, (ordinal) => pool_claim_at(pool, ordinal));
  const shift = 32 - work.size.bits;
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
  };
}

function loopsInsideWasm(module: WebAssembly.Module, work: Case): Record<Operation, Loop> {
  const { exports, pool } = openPool(module, work.size);
  fillCase(work, (ordinal) => exports.pool_claim_at?.(pool, ordinal));
  const loop = (operation: Operation): Loop => {
    return (count) => exports[`loop_${operation}`]?.(pool, count, FIRST_SEED, work.size.bits);
  };
  return {
    allocate: loop("allocate"),
    ascending: loop("ascending"),
    find: loop("find"),
    test: loop("test"),
    toggle: loop("toggle"),
  };
}

function loopsOfTwin(work: Case): Record<Operation, Loop> {
  const twin = new Uint32Twin(work.size.bits);
  fillCase(work, (ordinal) => twin.claim(ordinal));
  const shift = 32 - work.size.bits;
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
  };
}

export function median(samples: readonly number[]): number {
  return [...samples].sort((a, b) => a - b)[samples.length >> 1] ?? Number.NaN;
}

/** What the C twin measured, and the sum of what its first 1,000 searches found. */
function timeNative(toolbox: Toolbox, { size, fill, pattern }: Case, count: number, rounds: number) {
  const args = [size.bits, fill, pattern, count, rounds].map(String);
  const lines = execFileSync(toolbox.native, args, { encoding: "utf8" }).trim().split("\n");
  const values = Object.fromEntries(lines.map((line) => line.split(" ")).map(([name, value]) => [name, Number(value)]));
  return { timings: values as Timings, audit: values.audit };
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

/** Times every operation for everybody over one case: the contestants take turns, and the median of the rounds counts. Throws when they do not find the same. */
export function contest(toolbox: Toolbox, work: Case, count: number, rounds: number): Record<Contestant, Timings> {
  const ours = {
    "JavaScript → core": loopsFromJavaScript(toolbox.core, work),
    "inside Wasm": loopsInsideWasm(toolbox.loops, work),
    "JavaScript twin": loopsOfTwin(work),
  };
  const native = timeNative(toolbox, work, count, rounds);
  const audits = [native.audit, ...auditOurs(toolbox, work)];
  if (new Set(audits).size !== 1) throw new Error(`The contestants find different addresses: ${audits.join(", ")}`);
  const names = Object.keys(ours) as (keyof typeof ours)[];
  const medians = new Map<string, number>();
  for (const operation of OPERATION_NAMES) {
    const samples = new Map(names.map((name) => [name, [] as number[]]));
    for (let round = -WARM_ROUNDS; round < rounds; round++) {
      for (const name of names) {
        ours[name][operation](count); // brings its pool back into the caches, where the C twin's always is
        const started = process.hrtime.bigint();
        ours[name][operation](count);
        const ended = process.hrtime.bigint();
        if (round >= 0) samples.get(name)?.push(Number(ended - started) / count);
      }
    }
    for (const name of names) medians.set(`${name} ${operation}`, median(samples.get(name) ?? []));
  }
  const timings = (name: string): Timings =>
    Object.fromEntries(OPERATION_NAMES.map((operation) => [operation, medians.get(`${name} ${operation}`)])) as Timings;
  return {
    "JavaScript → core": timings("JavaScript → core"),
    "inside Wasm": timings("inside Wasm"),
    "JavaScript twin": timings("JavaScript twin"),
    "C twin": native.timings,
  };
}
