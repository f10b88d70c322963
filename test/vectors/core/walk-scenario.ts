/**
 * A random walk over the whole ABI as one of the stories: good, edge and hostile arguments on a handful of living and
 * dead objects. It reaches cases that no written scenario has; the seed is fixed, so that it is the same walk every
 * time.
 */
import { ABI, type AbiExport } from "../../../scripts/generate/abi-description.ts";
import { Seeded } from "../../world/seeded.ts";
import type { Call, Scenario } from "./scenarios.ts";

const SEED = 20_261_120;
const STEPS = 1_200;
/** So many bytes of a call's result are kept. */
const KEEP = 48;
const LARGEST_EXCHANGE = 10_000;
const MOST_OBJECTS = 24;

interface Living {
  readonly kind: "set" | "pool";
  readonly family: number;
  readonly handle: number;
}

class Walk {
  readonly #random = new Seeded(SEED);
  readonly #perform: Call;
  /**
   * Sets of a few thousand addresses at which the noise aims: pools are made of these, so that the memory stays small.
   */
  readonly #homes: Living[] = [];
  readonly #living: Living[] = [];
  #dropped = 0;
  /** Family of the call that is being made up: its objects are of one family, most of the time. */
  #family = 4;

  constructor(call: Call) {
    this.#perform = call;
  }

  run(): void {
    for (const [family, span] of [
      [4, "0a0000000a000fff"],
      [6, `${"0".repeat(24)}0a000000${"0".repeat(24)}0a000fff`],
    ] as const) {
      const handle = this.#perform("set_create", [family, 1], { input: span });
      this.#homes.push({ kind: "set", family, handle });
      const masks = this.#perform("set_create", [family, 0]);
      this.#living.push({ kind: "set", family, handle: masks });
      this.#living.push({ kind: "pool", family, handle: this.#perform("pool_create", [handle, masks]) });
    }
    const exports = ABI.exports.filter(({ name }) => name !== "drop");
    for (let step = 0; step < STEPS; step++) {
      if (this.#living.length > MOST_OBJECTS) this.#drop();
      else this.#call(this.#random.pick(exports));
    }
  }

  #drop(): void {
    const at = this.#random.below(this.#living.length);
    this.#dropped = this.#living.splice(at, 1)[0]?.handle ?? 0;
    this.#perform("drop", [this.#dropped]);
  }

  #call(entry: AbiExport): void {
    this.#family = this.#random.pick([4, 6]);
    const args = entry.params.map((param) => this.#argument(entry, param));
    const input = entry.input !== undefined && this.#random.chance(0.95) ? { input: this.#noise(entry.input) } : {};
    const result = this.#perform(entry.name, args, { ...input, ...keepOf(entry, args) });
    const kind = /^(set|pool) handle/.exec(entry.result)?.[1] as Living["kind"] | undefined;
    if (result > 0 && kind !== undefined) this.#living.push({ kind, family: this.#family, handle: result });
  }

  #argument({ input = "" }: AbiExport, { name, is }: AbiExport["params"][number]): number {
    const random = this.#random;
    if (is.includes("handle")) return this.#handle(name, is.startsWith("pool") ? "pool" : "set");
    if (name === "bytes") return random.pick([0, -1, random.below(LARGEST_EXCHANGE)]);
    if (name === "family") return random.chance(0.95) ? this.#family : random.below(9);
    if (name === "policy") return random.below(4) - (random.chance(0.05) ? 1 : 0);
    if (name === "count") return random.below(input === "" ? 100 : 8);
    if (name === "align_bits") return random.below(26);
    if (name.endsWith("length")) return random.below(this.#family === 4 ? 34 : 130);
    const far = random.pick([-1, 0x7fffffff, -0x80000000, 4095, 4096, 4097, random.u32() | 0]);
    return random.chance(0.1) ? far : random.below(4_096);
  }

  #handle(name: string, kind: Living["kind"]): number {
    const random = this.#random;
    if (random.chance(0.03)) return random.pick([this.#dropped, 0, -1, 65_535, random.u32() | 0]);
    const known = [...this.#homes, ...(name === "ranges" ? [] : this.#living)].filter((one) => one.kind === kind);
    const own = known.filter(({ family }) => family === this.#family);
    return random.pick(own.length > 0 && random.chance(0.95) ? own : known.length > 0 ? known : this.#homes).handle;
  }

  /** Addresses of the pools, some of them far out; or ordinals. */
  #noise(input: string): string {
    const random = this.#random;
    const isOrdinals = input.includes("u32");
    const words = Array.from({ length: 16 }, () => {
      const near = isOrdinals ? random.below(4_200) : 0x0a000000 + random.below(4_200);
      const word = Buffer.alloc(4);
      const value = random.chance(0.97) ? near : random.u32();
      if (isOrdinals) word.writeUInt32LE(value);
      else word.writeUInt32BE(value);
      const front = isOrdinals || this.#family === 4 ? "" : "0".repeat(24);
      return front + word.toString("hex");
    });
    return isSpans(input) ? spansOf(words) : words.join("");
  }
}

const isSpans = (input: string): boolean => input.includes("last address");

/** Each pair the right way round; hexadecimal of one length is in the order of numbers. */
function spansOf(words: readonly string[]): string {
  return Array.from({ length: words.length / 2 }, (_, index) => words.slice(2 * index, 2 * index + 2).sort())
    .flat()
    .join("");
}

/** Tells how much of the output counts; at least so much is there because the call has succeeded. */
function keepOf(
  { output = "" }: AbiExport,
  args: readonly number[],
): { keep?: number; keepEach?: number; atMost?: number } {
  if (output.startsWith("result")) return { keepEach: 1, atMost: KEEP };
  if (output.startsWith("count")) return { keep: args.at(-1) ?? 0, atMost: KEEP };
  if (output === "") return {};
  return { keep: Number(/^(\d\d)/.exec(output)?.[1] ?? 4) };
}

export const walk: Scenario = {
  name: "walk",
  doc: `${STEPS} random calls over the whole ABI: good, edge and hostile arguments on living and dead objects.`,
  run: (call) => new Walk(call).run(),
};
