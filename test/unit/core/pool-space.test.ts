import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { CoreModule } from "../../../host/core/module.ts";
import { Pool } from "../../../host/core/pool.ts";
import { createSetHandle } from "../../../host/core/pool-shape.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import type { Range } from "../../../host/net/range.ts";
import { ip, range } from "../../world/values.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { shape, textOf } from "./words.ts";

describe.each(CORE_BUILDS)("PoolSpace ($build)", ({ wasm }) => {
  const pool = (ranges: string[], masked: string[] = []) => PoolSpace.open(wasm).createPool(shape(ranges, masked));

  it("knows addresses outside, masked and of the other family", () => {
    const p = pool(["10.0.0.0/30"], ["10.0.0.1"]);
    expect(p.contains(ip("10.0.0.0"))).toBe(true);
    expect(p.contains(ip("10.0.0.1"))).toBe(false);
    expect(p.contains(ip("10.0.0.4"))).toBe(false);
    expect(p.contains(ip("::a00:0"))).toBe(false);
    expect(p.claim(ip("10.0.0.4"))).toBe("outside");
    expect(p.release(ip("9.255.255.255"))).toBe("outside");
    expect(p.claim(ip("::a00:0"))).toBe("outside");
    expect(p.test(ip("::a00:0"))).toBe(false);
  });

  it("takes nothing where memory has grown since the last exchange", () => {
    const space = PoolSpace.open(wasm);
    const small = space.createPool(shape(["10.0.0.0/30"]));
    const sizeBytes = space.sizeBytes();
    // Each has a bitmap of its own, and the first exchange was before all of them.
    for (let net = 0; net < 40; net++) {
      const p = space.createPool(shape([`${net + 11}.0.0.0/9`]));
      expect(p.claimMany(new Uint8Array(0))).toBe(0);
      p.claim(ip(`${net + 11}.0.0.1`));
    }
    expect(space.sizeBytes()).toBeGreaterThan(sizeBytes);
    expect(small.claimMany(new Uint8Array(0))).toBe(0);
  });

  it("has nothing to give in an empty pool, and can grow from it", () => {
    const p = pool([]);
    expect(p.findFree(0)).toBeUndefined();
    expect(p.counts()).toMatchObject({ total: 0n, used: 0, usedMasked: 0, free: 0n, window: 0 });
    p.edit(shape(["2001:db8::/126"]));
    expect(textOf(p.findFree(0))).toBe("2001:db8::");
    expect(() => p.edit(shape(["10.0.0.0/24"]))).toThrow(CoreError);
    p.edit(shape([]));
    expect(p.findFree(9)).toBeUndefined();
  });

  it("names the refused value", () => {
    const space = PoolSpace.open(wasm);
    const twoFamilies = { ranges: [range("10.0.0.0/8"), range("::/64")], masked: [] };
    expect(() => space.createPool(twoFamilies)).toThrow("the families differ");
    const backwards = { ranges: [{ first: ip("10.0.0.2"), last: ip("10.0.0.1") }], masked: [] };
    expect(() => space.createPool(backwards)).toThrow("a range ends before it starts");
    const p = space.createPool(shape(["10.0.0.0/24"]));
    p.drop();
    expect(() => p.findFree(0)).toThrow('"pool_find" refused with status -1');
    expect(() => p.drop()).toThrow(CoreError);
  });

  it("packs a dense /16 into 1 KB and a random one into 11 KB", () => {
    const dense = pool(["10.0.0.0/16"]);
    for (let count = 0; count < 60_000; count++) dense.allocate("ASCENDING");
    expect(dense.save().length).toBeLessThan(1024);
    const random = pool(["10.0.0.0/16"]);
    for (let seed = 1; seed <= 32_768; seed++) random.allocate("HASHED", Math.imul(seed, 0x9e3779b1));
    expect(random.save().length).toBeLessThan(11 * 1024);
  });

  it("ends a pool with its scope", () => {
    const space = PoolSpace.open(wasm);
    const before = space.createPool(shape(["10.0.0.0/8"]));
    before.drop();
    const grown = space.sizeBytes();
    for (let round = 0; round < 10; round++) {
      using scoped = space.createPool(shape(["10.0.0.0/8"]));
      scoped.claim(ip("10.1.2.3"));
    }
    expect(space.sizeBytes() - grown).toBeLessThan(4096);
  });

  it("finds the exchange buffer again that the raw exports have moved", () => {
    const core = CoreModule.open(wasm);
    const p = Pool.create(core, shape(["10.0.0.0/24"]));
    // Memory has room for both buffers before, so that nothing detaches the view of the old one.
    const raw = core.share();
    raw.memory.grow(8);
    expect(p.test(ip("10.0.0.1"))).toBe(false);
    raw.exchange(65536);
    expect(p.claim(ip("10.0.0.77"))).toBe("claimed");
    expect([p.test(ip("10.0.0.77")), p.counts().used]).toEqual([true, 1]);
  });
});

/** `count` ranges that take 38 prefixes each: an answer 24 times as long as the question. */
function ragged(count: number): Range[] {
  const at = (value: number) => ({ family: 4, value: BigInt(value) }) as const;
  return Array.from({ length: count }, (_, index) => {
    const start = 2 ** 21 * index;
    return { first: at(start + 1), last: at(start + 2 ** 20 - 2) };
  });
}

/** Takes the rest of the core's memory, in pieces of 32 KiB at least. */
function exhaust(core: CoreModule): void {
  for (const size of ["10.0.0.0/8", "10.0.0.0/12", "10.0.0.0/16", "10.0.0.0/19", "10.0.0.0/20"]) {
    try {
      for (;;) {
        const { handle } = Pool.create(core, shape([size]));
        core.check("pool_track_freed", core.exports.pool_track_freed(handle));
      }
    } catch (error) {
      expect(error).toBeInstanceOf(CoreError);
    }
  }
}

describe.each(CORE_BUILDS)("the core out of memory ($build)", ({ wasm }) => {
  it("in the middle of an answer, after the exchange buffer has moved, leaves everything usable", () => {
    const core = CoreModule.open(wasm);
    const pool = Pool.create(core, shape(["10.0.0.0/24"]));
    expect(pool.claim(ip("10.0.0.0"))).toBe("claimed");
    const set = createSetHandle(core, 4, ragged(200));
    // Leaves free blocks of 8 and 16 KiB behind: the buffer moves twice before it cannot grow.
    for (const count of [120, 250]) core.exports.drop(createSetHandle(core, 4, ragged(count)));
    exhaust(core);
    const list = () => core.check("set_prefixes", core.exports.set_prefixes(set));
    expect(list).toThrow("the core's memory is exhausted");
    expect(pool.test(ip("10.0.0.0"))).toBe(true);
    expect(pool.test(ip("10.0.0.9"))).toBe(false);
    expect(pool.claim(ip("10.0.0.9"))).toBe("claimed");
    expect(textOf(pool.findFree(9))).toBe("10.0.0.10");
    expect(list).toThrow("the core's memory is exhausted");
  });
});

it("a module of another major version is refused", () => {
  const release = CORE_BUILDS[0]?.wasm ?? new Uint8Array();
  const at = Buffer.from(release).indexOf(Buffer.from([0x41, 0x80, 0x80, 0x04, 0x0b])); // i32.const 1 << 16, end
  expect(at).toBeGreaterThan(0);
  const other = Uint8Array.from(release, (byte, index) => (index === at + 3 ? 0x08 : byte));
  expect(() => PoolSpace.open(other)).toThrow("got major 2, wanted 1");
});
