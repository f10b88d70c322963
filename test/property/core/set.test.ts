import { afterAll, describe, expect, it } from "vitest";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";
import { holdsAddress, type Span, sizeOf, tidy } from "./pool-model.ts";
import { putSpans } from "./pool-pair.ts";
import { bytesOf, joinBytes, numberOf, RawCore } from "./raw-core.ts";
import { randomSpans } from "./shapes.ts";

const SEED = Number(process.env.SEED ?? 20261120);

/** Ranges around an origin in a universe of 300 addresses, so that a Set of them is the model. */
function smallSpans(random: Seeded, origin: bigint, last: bigint): Span[] {
  return Array.from({ length: random.below(12) }, () => {
    const first = origin + BigInt(random.below(300));
    const end = first + BigInt(random.below(random.chance(0.3) ? 60 : 4));
    return [first, end > last ? last : end] as const;
  });
}

function membersOf(spans: readonly Span[]): Set<bigint> {
  const members = new Set<bigint>();
  for (const [first, last] of spans) for (let address = first; address <= last; address++) members.add(address);
  return members;
}

function spansOf(members: Iterable<bigint>): Span[] {
  return tidy([...members].map((address) => [address, address] as const));
}

function readSpans(core: RawCore, set: number, width: number): Span[] {
  const count = core.call("set_ranges", set);
  const bytes = core.take(count * 2 * width);
  const at = (index: number) => numberOf(bytes.subarray(index * width, (index + 1) * width));
  return Array.from({ length: count }, (_, index) => [at(2 * index), at(2 * index + 1)] as const);
}

interface Prefix {
  readonly first: bigint;
  readonly length: number;
}

function readPrefixes(core: RawCore, set: number, width: number): Prefix[] {
  const count = core.call("set_prefixes", set);
  const bytes = core.take(count * (width + 1));
  return Array.from({ length: count }, (_, index) => {
    const item = bytes.subarray(index * (width + 1), (index + 1) * (width + 1));
    return { first: numberOf(item.subarray(0, width)), length: item[width] ?? -1 };
  });
}

/** The fewest prefixes, by the definition: cut a prefix in two until it is all inside or all outside. */
function cover(spans: readonly Span[], first: bigint, length: number, bits: number): Prefix[] {
  const last = first + (1n << BigInt(bits - length)) - 1n;
  if (spans.some(([start, end]) => start <= first && last <= end)) return [{ first, length }];
  if (!spans.some(([start, end]) => start <= last && first <= end)) return [];
  const middle = first + (1n << BigInt(bits - length - 1));
  return [...cover(spans, first, length + 1, bits), ...cover(spans, middle, length + 1, bits)];
}

let operations = 0;

describe.each(["release", "debug"] as const)("sets do what the reference model does (%s)", (build) => {
  it.each([4, 6] as const)("on small sets at the ends of IPv%i", (family) => {
    const random = new Seeded(SEED + family);
    const core = new RawCore(build);
    const width = family === 4 ? 4 : 16;
    const bits = width * 8;
    const last = (1n << BigInt(bits)) - 1n;
    for (let round = 0; round < times(500); round++) {
      const origin = random.pick([0n, last - 299n, 1n << BigInt(bits / 2), (1n << 31n) - 150n]);
      const [a, b] = [smallSpans(random, origin, last), smallSpans(random, origin, last)];
      const [x, y] = [membersOf(a), membersOf(b)];
      const [p, q] = [putSpans(core, family, a), putSpans(core, family, b)];
      const results: readonly (readonly [string, Span[]])[] = [
        ["union", spansOf([...x, ...y])],
        ["intersect", spansOf([...x].filter((address) => y.has(address)))],
        ["subtract", spansOf([...x].filter((address) => !y.has(address)))],
      ];
      for (const [operation, wanted] of results) {
        const set = core.call(`set_${operation}`, p, q);
        expect(readSpans(core, set, width), `${operation}, round ${round}`).toEqual(wanted);
        expect(core.call("set_size", set)).toBe(17);
        expect(numberOf(core.take(17))).toBe(sizeOf(wanted));
        expect(readPrefixes(core, set, width)).toEqual(cover(wanted, 0n, 0, bits));
        core.call("drop", set);
      }
      expect(core.call("set_overlaps", p, q)).toBe(Number([...x].some((address) => y.has(address))));
      expect(core.call("set_includes", p, q)).toBe(Number([...y].every((address) => x.has(address))));
      const probes = Array.from({ length: 20 }, () => origin + BigInt(random.below(300)));
      core.put(joinBytes(probes.map((address) => bytesOf(address, width))));
      expect(core.call("set_contains_many", p, probes.length)).toBe(probes.filter((address) => x.has(address)).length);
      expect([...core.take(probes.length)]).toEqual(probes.map((address) => Number(x.has(address))));
      for (const set of [p, q]) core.call("drop", set);
      operations += 12 + probes.length;
    }
    expect(core.call("live_objects")).toBe(0);
  });

  it("on sets of any width, by their laws", () => {
    const random = new Seeded(SEED);
    const core = new RawCore(build);
    for (let round = 0; round < times(400); round++) {
      const family = random.pick([4, 6] as const);
      const width = family === 4 ? 4 : 16;
      const scale = 1n << BigInt(4 + random.below(family === 4 ? 27 : 120));
      const [a, b] = [randomSpans(random, family, scale, 30), randomSpans(random, family, scale, 30)];
      const sets = [putSpans(core, family, a), putSpans(core, family, b)];
      const derive = (operation: string, x: number, y: number): number => {
        const set = core.call(`set_${operation}`, x, y);
        expect(set).toBeGreaterThan(0);
        sets.push(set);
        return set;
      };
      const [p = 0, q = 0] = sets;
      expect(readSpans(core, p, width)).toEqual(tidy(a));
      const both = derive("intersect", p, q);
      const rest = derive("subtract", p, q);
      const either = derive("union", p, q);
      expect(readSpans(core, derive("union", rest, both), width)).toEqual(tidy(a));
      expect(readSpans(core, derive("union", rest, q), width)).toEqual(readSpans(core, either, width));
      expect(core.call("set_overlaps", rest, q)).toBe(0);
      expect(core.call("set_includes", either, p) + core.call("set_includes", p, both)).toBe(2);
      const cut = readSpans(core, rest, width)
        .flat()
        .find((address) => holdsAddress(tidy(b), address));
      expect(cut).toBeUndefined();
      for (const set of sets) core.call("drop", set);
      operations += 10;
    }
    expect(core.call("live_objects")).toBe(0);
  });

  it("on prefixes: first, last, mask, next, part, common", () => {
    const random = new Seeded(SEED);
    const core = new RawCore(build);
    for (let round = 0; round < 5000; round++) {
      const family = random.pick([4, 6] as const);
      const bits = family === 4 ? 32 : 128;
      const width = bits / 8;
      const length = random.below(bits + 1);
      const address = random.chance(0.1) ? (1n << BigInt(bits)) - 1n : random.belowBig(1n << BigInt(bits));
      const host = (1n << BigInt(bits - length)) - 1n;
      const first = address & ~host;
      const ask = (name: string, input: bigint[], ...args: number[]): bigint | number => {
        core.put(joinBytes(input.map((value) => bytesOf(value, width))));
        const status = core.call(`prefix_${name}`, family, ...args);
        return status === 0 && name !== "common" ? numberOf(core.take(width)) : status;
      };
      const whole = (1n << BigInt(bits)) - 1n;
      expect(ask("first", [address], length)).toBe(first);
      expect(ask("last", [address], length)).toBe(address | host);
      expect(ask("mask", [address], length)).toBe(whole & ~host);
      expect(ask("next", [address], length)).toBe((address | host) === whole ? -9 : (address | host) + 1n);
      const part = length + random.below(bits - length + 1);
      const index = random.chance(0.5) ? random.below(8) : random.u32();
      const parts = 1n << BigInt(part - length);
      const wanted = BigInt(index) < parts ? first + (BigInt(index) << BigInt(bits - part)) : -8;
      expect(ask("part", [address], length, part, index | 0)).toBe(wanted);
      const other = random.chance(0.5) ? address ^ random.belowBig(host + 1n) : random.belowBig(whole + 1n);
      const difference = (address ^ other).toString(2);
      expect(ask("common", [address, other])).toBe(address === other ? bits : bits - difference.length);
      operations += 6;
    }
  });

  afterAll(() => console.log(`core sets (${build}): ${operations} operations so far from seed ${SEED}`));
});
