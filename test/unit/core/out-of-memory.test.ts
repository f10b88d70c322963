import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import type { Range } from "../../../host/net/range.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { ip, shape, textOf } from "./words.ts";

/** `count` ranges that take 38 prefixes each: an answer 24 times as long as the question. */
function ragged(count: number): Range[] {
  const at = (value: number) => ({ family: 4, value: BigInt(value) }) as const;
  return Array.from({ length: count }, (_, index) => {
    const start = 2 ** 21 * index;
    return { first: at(start + 1), last: at(start + 2 ** 20 - 2) };
  });
}

/** Takes what is left of the core's memory, in pieces of 32 KiB at least. */
function exhaust(space: PoolSpace): void {
  for (const size of ["10.0.0.0/8", "10.0.0.0/12", "10.0.0.0/16", "10.0.0.0/19", "10.0.0.0/20"]) {
    try {
      for (;;) space.createPool(shape([size])).trackFreed();
    } catch (error) {
      expect(error).toBeInstanceOf(CoreError);
    }
  }
}

describe.each(CORE_BUILDS)("the core out of memory ($build)", ({ wasm }) => {
  it("in the middle of an answer, after the exchange buffer has moved, leaves everything usable", () => {
    const space = PoolSpace.open(wasm);
    const pool = space.createPool(shape(["10.0.0.0/24"]));
    expect(pool.claim(ip("10.0.0.0"))).toBe("claimed");
    const set = space.rangeSet(4, ragged(200));
    // Leaves free blocks of 8 and 16 KiB behind: the buffer moves twice before it cannot grow.
    for (const count of [120, 250]) space.rangeSet(4, ragged(count)).drop();
    exhaust(space);
    expect(() => set.prefixes()).toThrow("the core's memory is exhausted");
    expect(pool.test(ip("10.0.0.0"))).toBe(true);
    expect(pool.test(ip("10.0.0.9"))).toBe(false);
    expect(pool.claim(ip("10.0.0.9"))).toBe("claimed");
    expect(textOf(pool.findFree(9))).toBe("10.0.0.10");
    expect(set.contains(ip("0.0.0.0"))).toBe(false);
    expect(set.contains(ip("0.0.0.1"))).toBe(true);
  });
});
