/**
 * A fuzzer of code in JavaScript, guided by the engine's block coverage: it changes inputs of a corpus in memory, and
 * keeps those that reach a block for the first time. It runs in a thread of its own, so that an endless loop and
 * memory without bound end the thread alone (guided-thread.ts).
 */
import { type Profiler, Session } from "node:inspector";
import { createRandom, mutate, type Random } from "../e2e/shim/random.ts";
import { type Campaign, MAX_INPUT_BYTES } from "./native.ts";

export interface GuidedTarget {
  readonly seeds: readonly (string | Uint8Array)[];
  /** Reads the input; throws only errors that `isDeclared` knows. */
  readonly read: (input: Buffer) => void;
  readonly isDeclared: (error: unknown) => boolean;
}

/** A look at the coverage costs as much as many inputs: the batches double while nothing new is reached. */
const BATCH = 100;
const MAX_BATCH = 3_200;
/** Longest time for one input, twice in a row: the machine may have had other work. */
const MAX_MS = 1_000;

/** Which characters of the product's modules have been executed since the start. */
class Coverage {
  readonly #session = new Session();
  readonly #reached = new Map<string, Uint8Array>();

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Returns whether something was reached for the first time; with `isKept`, the next look does not find it new. */
  isNew(isKept: boolean): boolean {
    let scripts: Profiler.ScriptCoverage[] = [];
    this.#session.post("Profiler.takePreciseCoverage", (_error, answer) => {
      scripts = answer.result;
    });
    let isNew = false;
    for (const { scriptId, url, functions } of scripts) {
      if (!url.includes("/host/") && !url.includes("/test/fuzz/targets")) continue;
      const end = Math.max(...functions.map(({ ranges }) => ranges[0]?.endOffset ?? 0));
      const now = new Uint8Array(end);
      // inner ranges and functions follow the outer ones
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) now.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      const before = this.#reached.get(scriptId) ?? new Uint8Array(0);
      let more = 0;
      for (let at = 0; at < end; at++) if (now[at] === 1 && before[at] !== 1) more++;
      if (more === 0) continue;
      isNew = true;
      if (!isKept) continue;
      const both = new Uint8Array(Math.max(end, before.length));
      both.set(before);
      for (let at = 0; at < end; at++) if (now[at] === 1) both[at] = 1;
      this.#reached.set(scriptId, both);
    }
    return isNew;
  }
}

/** The next value of JSON: a text, a number, or an object or list without another inside. */
function valueBehind(input: Buffer, at: number): { start: number; end: number } {
  const value = /"[^"]*"|-?\d[\d.]*|\{[^{}]*\}|\[[^[\]]*\]/g;
  value.lastIndex = at;
  const found = value.exec(input.toString("latin1"));
  return found === null ? { start: at, end: at } : { start: found.index, end: value.lastIndex };
}

/** Returns a changed input: bytes, values of JSON, words of the seeds, and parts of other inputs. */
function change(corpus: readonly Buffer[], words: readonly Buffer[], random: Random): Buffer {
  const pick = (from: readonly Buffer[]): Buffer => from[random(from.length)] ?? Buffer.alloc(0);
  let input = pick(corpus);
  for (let more = random(3); more >= 0; more--) {
    const at = random(input.length + 1);
    const kind = random(10);
    if (kind < 5) input = mutate(input, random);
    else if (kind < 7) {
      const { start, end } = valueBehind(input, at);
      input = Buffer.concat([input.subarray(0, start), pick(words), input.subarray(end)]);
    } else if (kind < 9) input = Buffer.concat([input.subarray(0, at), pick(words), input.subarray(at + random(8))]);
    else {
      const other = pick(corpus);
      input = Buffer.concat([input.subarray(0, at), other.subarray(random(other.length + 1))]);
    }
  }
  return input.subarray(0, MAX_INPUT_BYTES);
}

const JSON_WORDS = ["null", "true", "-1", "1e9", "[]", "{}", '""'];

/** Words, numbers and strings of the seeds, and values of JSON. */
function wordsOf(seeds: readonly Buffer[]): Buffer[] {
  const texts = seeds.flatMap((seed) => seed.toString("latin1").match(/[\w.:/-]{2,}|"[^"]*"/g) ?? []);
  return [...new Set([...texts, ...JSON_WORDS])].map((text) => Buffer.from(text, "latin1"));
}

/**
 * Fuzzes for some seconds; tells `onInput` each input before it is read. Throws for an error that is not declared,
 * and for an input that takes too long.
 */
export function fuzzGuided(
  { seeds, read, isDeclared }: GuidedTarget,
  { seconds, seed, isGuided = true }: { seconds: number; seed: number; isGuided?: boolean },
  onInput: (input: Buffer) => void = () => {},
): Campaign {
  const coverage = new Coverage();
  const random = createRandom(seed);
  const corpus: Buffer[] = seeds.map((one) => Buffer.from(one));
  const words = wordsOf(corpus);
  const endMs = performance.now() + seconds * 1_000;
  let executions = 0;
  const runOne = (input: Buffer): number => {
    onInput(input);
    executions++;
    const startMs = performance.now();
    try {
      read(input);
    } catch (cause) {
      if (!isDeclared(cause)) throw cause;
    }
    return performance.now() - startMs;
  };
  /** Keeps those inputs that reach something new: finds them by halves. */
  const explore = (inputs: readonly Buffer[]): void => {
    for (const input of inputs)
      if (runOne(input) > MAX_MS && runOne(input) > MAX_MS) throw new Error(`More than ${MAX_MS} ms`);
    if (!isGuided || !coverage.isNew(inputs.length === 1)) return;
    if (inputs.length === 1) corpus.push(...inputs);
    else for (const half of [inputs.slice(0, inputs.length >> 1), inputs.slice(inputs.length >> 1)]) explore(half);
  };
  for (const input of corpus) runOne(input);
  coverage.isNew(true);
  for (let size = BATCH; performance.now() < endMs; ) {
    const before = corpus.length;
    explore(Array.from({ length: size }, () => change(corpus, words, random)));
    size = corpus.length > before ? BATCH : Math.min(MAX_BATCH, size * 2);
  }
  return { executions, kept: corpus.length };
}
