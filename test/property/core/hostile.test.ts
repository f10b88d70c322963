import { describe, expect, it } from "vitest";
import { ABI, type AbiExport } from "../../../scripts/generate/abi-description.ts";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";
import { putSpans } from "./pool-pair.ts";
import { bytesOf, checksumOf, joinBytes, RawCore } from "./raw-core.ts";

const SEED = Number(process.env.SEED ?? 20261120);
const BAD_HANDLE = -1;
const SHORT_EXCHANGE = -5;
const MEMORY_CEILING = 2 ** 30;
const STATUS_NAMES = new Map(ABI.statuses.map(({ name, code }) => [code, name]));
/** Largest number of objects made by the fuzz that may live at a time. */
const MOST_OBJECTS = 40;

/** A world with things in it that no hostile call may touch: a used pool and a set, apart from the victims. */
class World {
  readonly core: RawCore;
  readonly random: Seeded;
  handles: number[] = [];
  /** Handles whose objects are gone. */
  readonly dead: number[] = [];
  readonly #precious: number;
  readonly #saved: Buffer;

  constructor(build: "release" | "debug", seed: number) {
    this.core = new RawCore(build);
    this.random = new Seeded(seed);
    const ranges = putSpans(this.core, 4, [[0x0a000000n, 0x0a00ffffn]]);
    const masks = putSpans(this.core, 4, [[0x0a000100n, 0x0a0001ffn]]);
    this.#precious = this.core.call("pool_create", ranges, masks);
    for (let ordinal = 7; ordinal < 65536; ordinal += 3 + (ordinal % 11))
      this.core.call("pool_claim_at", this.#precious, ordinal);
    this.#saved = this.#save();
    for (const spans of [[[0n, 99n]], [[50n, 5000n]], [[0n, (1n << 32n) - 1n]]] as const)
      this.keep(putSpans(this.core, 4, spans));
    for (const spans of [[[0n, (1n << 128n) - 1n]], [[1n << 64n, 1n << 90n]]] as const)
      this.keep(putSpans(this.core, 6, spans));
    for (const [r, m] of [
      [2, 3],
      [4, 2],
      [5, 6],
      [6, 5],
    ] as const)
      this.keep(this.core.call("pool_create", this.handles[r - 2] ?? 0, this.handles[m - 2] ?? 0));
  }

  drop(handle: number): void {
    this.handles = this.handles.filter((other) => other !== handle);
    this.dead.push(handle);
  }

  keep(handle: number): void {
    if (handle > 0) this.handles.push(handle);
  }

  #save(): Buffer {
    const length = this.core.call("pool_save", this.#precious);
    expect(length).toBeGreaterThan(1000);
    return Buffer.from(this.core.take(length));
  }

  /** Fails when the precious pool has changed. */
  check(): void {
    expect(Buffer.compare(this.#save(), this.#saved)).toBe(0);
    expect(this.core.call("pool_find", this.#precious, 0x100)).toBe(
      0x200 + (this.core.call("pool_test_at", this.#precious, 0x200) === 1 ? 1 : 0),
    );
  }

  /** The precious handle is never guessed: everything else is. */
  handle(): number {
    const { random } = this;
    const roll = random.below(10);
    if (roll < 6 && this.handles.length > 0) return random.pick(this.handles);
    if (roll < 8 && this.dead.length > 0) return random.pick(this.dead);
    const guess = random.pick([
      0,
      -1,
      1,
      0x7fffffff,
      -0x80000000,
      65536,
      65535,
      random.u32() | 0,
      (1 << 16) + random.below(80),
    ]);
    return guess === this.#precious ? 0 : guess;
  }

  number(): number {
    const { random } = this;
    const edge = random.pick([
      0,
      1,
      2,
      4,
      6,
      24,
      31,
      32,
      33,
      63,
      64,
      127,
      128,
      129,
      255,
      256,
      4095,
      4096,
      65535,
      65536,
      1 << 20,
      1 << 24,
      0x7fffffff,
    ]);
    return random.pick([edge, -edge, edge + 1, edge - 1, random.u32() | 0, random.below(300)]) | 0;
  }

  /** Fills part of the exchange buffer with noise that looks like addresses now and then. */
  noise(): void {
    const { random } = this;
    const length = random.pick([0, 4, 8, 16, 32, 72, 500]);
    const parts = Array.from({ length: Math.ceil(length / 4) }, () =>
      bytesOf(BigInt(random.pick([0, 1, 0xffffffff, random.u32(), random.below(6000)])), 4),
    );
    this.core.put(joinBytes(parts));
  }
}

function argumentsFor(world: World, entry: AbiExport): number[] {
  return entry.params.map(({ name, is }) => {
    if (is.includes("handle")) return world.random.chance(0.95) ? world.handle() : world.number();
    if (name === "bytes") return world.random.pick([0, -1, 5000, 1 << 29, 0x7fffffff, -0x80000000, 1 << 20]);
    if (name === "family" && world.random.chance(0.8)) return world.random.pick([4, 6]);
    return world.number();
  });
}

describe.each(["release", "debug"] as const)("hostile calls (%s)", (build) => {
  it("give a status that the ABI names for them, never a trap, and never touch another pool", () => {
    const world = new World(build, SEED);
    const seen = new Map<string, Set<string>>();
    for (let round = 0; round < times(8_000); round++) {
      const entry = world.random.pick(ABI.exports);
      if (world.random.chance(0.7)) world.noise();
      const args = argumentsFor(world, entry);
      const result = world.core.call(entry.name, ...args);
      if (result < 0) {
        const status = STATUS_NAMES.get(result) ?? `${result}`;
        expect(entry.statuses, `round ${round}: ${entry.name}(${args}) = ${result}`).toContain(status);
        seen.set(entry.name, (seen.get(entry.name) ?? new Set()).add(status));
      } else if (entry.result.endsWith("handle")) world.keep(result);
      const dead = args.find(
        (handle, index) => entry.params[index]?.is.includes("handle") && world.dead.includes(handle),
      );
      if (dead !== undefined) expect(result, `round ${round}: ${entry.name}(${args})`).toBe(BAD_HANDLE);
      if (result === 0 && entry.name === "drop") world.drop(args[0] ?? 0);
      while (world.handles.length > MOST_OBJECTS) {
        const oldest = world.handles[9] ?? 0;
        expect(world.core.call("drop", oldest)).toBe(0);
        world.drop(oldest);
      }
      if (round % 1000 === 0) world.check();
    }
    world.check();
    expect(world.core.memory.buffer.byteLength).toBeLessThan(MEMORY_CEILING);
    const refused = ABI.exports.filter(({ statuses }) => statuses.length > 0).map(({ name }) => name);
    expect([...seen.keys()].sort()).toEqual(refused.sort());
  });

  it("input of exactly the buffer's length is taken, one more is not", () => {
    const core = new RawCore(build);
    core.put(new Uint8Array(4096));
    const size = core.call("exchange_size");
    const pool = core.call("pool_create", putSpans(core, 4, [[0n, 9n]]), putSpans(core, 4, []));
    const set = putSpans(core, 6, [[0n, 9n]]);
    const takers: readonly (readonly [string, number[], number])[] = [
      ["set_create", [4], 8],
      ["set_create", [6], 32],
      ["set_create_prefixes", [4], 5],
      ["set_create_prefixes", [6], 17],
      ["set_contains_many", [set], 16],
      ["pool_test_many", [pool], 4],
      ["pool_contains_many", [pool], 4],
      ["pool_test_at_many", [pool], 4],
      ["pool_load", [pool], 1],
    ];
    for (const [name, args, width] of takers) {
      core.put(new Uint8Array(size));
      expect(core.call(name, ...args, Math.floor(size / width)), name).not.toBe(SHORT_EXCHANGE);
      expect(core.call(name, ...args, Math.floor(size / width) + 1), name).toBe(SHORT_EXCHANGE);
      expect(core.call(name, ...args, -1), name).toBe(SHORT_EXCHANGE);
    }
    expect(core.call("exchange_size")).toBe(size);
    const closed = new RawCore(build);
    for (const [name, args] of [
      ["prefix_first", [4, 8]],
      ["prefix_part", [6, 8, 9, 0]],
      ["set_create", [4, 1]],
    ] as const) {
      expect(closed.call(name, ...args), name).toBe(SHORT_EXCHANGE);
    }
  });

  it("a snapshot with any byte changed, cut or lengthened is refused and changes nothing", () => {
    const core = new RawCore(build);
    const random = new Seeded(SEED);
    const ranges = putSpans(core, 6, [[1n << 64n, (1n << 64n) + (1n << 40n)]]);
    const pool = core.call("pool_create", ranges, putSpans(core, 6, []));
    for (let index = 0; index < 600; index++)
      core.call("pool_claim_at", pool, index < 300 ? index * 3 : random.below(20_000));
    for (let index = 0; index < 50; index++) {
      core.put(bytesOf((1n << 64n) + (1n << 30n) + BigInt(random.below(100)), 16));
      core.call("pool_claim", pool);
    }
    const length = core.call("pool_save", pool);
    const saved = core.take(length);
    const load = (bytes: Uint8Array): number => {
      core.put(bytes);
      return core.call("pool_load", pool, bytes.length);
    };
    for (let at = 0; at < length; at++) {
      const changed = saved.slice();
      changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
      expect([-10, -11], `byte ${at}`).toContain(load(changed));
      expect(load(saved.subarray(0, at))).toBe(-10);
    }
    expect(load(joinBytes([saved, Uint8Array.of(0)]))).toBe(-10);
    expect(core.call("pool_save", pool)).toBe(length);
    expect(Buffer.compare(core.take(length), saved)).toBe(0);
  });

  it("a snapshot with a right checksum over wrong contents is refused or sound", () => {
    const core = new RawCore(build);
    const random = new Seeded(SEED + 1);
    const ranges = putSpans(core, 6, [[0n, (1n << 24n) + 5000n]]);
    const masks = putSpans(core, 6, [[64n, 127n]]);
    const pool = core.call("pool_create", ranges, masks);
    for (let index = 0; index < 4; index++) core.call("pool_claim_run", pool, index * 5000, 30);
    core.put(bytesOf((1n << 24n) + 7n, 16));
    core.call("pool_claim", pool);
    const saved = core.take(core.call("pool_save", pool));
    let accepted = 0;
    for (let round = 0; round < times(8_000); round++) {
      const body = saved.slice(0, saved.length - 8 + random.below(12));
      for (let changes = 1 + random.below(4); changes > 0; changes--) {
        const at = 16 + random.below(body.length - 16);
        body[at] = random.pick([0, 1, 2, 3, 127, 128, 255, random.below(256)]);
      }
      const forged = joinBytes([body, checksumOf(body)]);
      core.put(forged);
      const status = core.call("pool_load", pool, forged.length);
      expect([0, -10, -12]).toContain(status);
      if (status !== 0) continue;
      accepted++;
      expect(core.call("pool_counts", pool)).toBe(72);
      const view = new DataView(core.take(72).buffer);
      const used = core.call("pool_used", pool);
      core.call("set_size", used);
      expect(Number(core.take(17).reduce((value, byte) => value * 256 + byte, 0))).toBe(view.getUint32(40, true));
      core.call("drop", used);
    }
    expect(accepted).toBeGreaterThan(0);
    expect(core.call("live_objects")).toBe(3);
  });
});
