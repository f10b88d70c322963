import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import { formatRange } from "../../../host/net/range.ts";
import { ip, range } from "../../world/values.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { shape, textOf } from "./words.ts";

/** The last bytes of packed IPv4 addresses. */
function lastBytes(packed: Uint8Array): number[] {
  return [...packed].filter((_, index) => index % 4 === 3);
}

describe.each(CORE_BUILDS)("Pool beyond one address ($build)", ({ wasm }) => {
  const pool = (ranges: string[], masked: string[] = []) => PoolSpace.open(wasm).createPool(shape(ranges, masked));

  it("allocates in each order", () => {
    const p = pool(["10.0.0.0/29"], ["10.0.0.0"]);
    expect(textOf(p.allocate("ASCENDING"))).toBe("10.0.0.1");
    expect(textOf(p.allocate("ROUND_ROBIN"))).toBe("10.0.0.2");
    expect(p.release(ip("10.0.0.1"))).toBe("released");
    expect(textOf(p.allocate("ROUND_ROBIN"))).toBe("10.0.0.3");
    expect(textOf(p.allocate("HASHED", 14))).toBe("10.0.0.6");
    expect(textOf(p.allocate("HASHED", 6))).toBe("10.0.0.7");
    expect(() => p.allocate("LEAST_RECENTLY_FREED")).toThrow(CoreError);
  });

  it("gives what was freed longest ago only when all was used once", () => {
    const p = pool(["10.0.0.0/30"]);
    p.trackFreed();
    expect(textOf(p.allocate("LEAST_RECENTLY_FREED"))).toBe("10.0.0.0");
    p.release(ip("10.0.0.0"));
    const order = [1, 2, 3].map(() => textOf(p.allocate("LEAST_RECENTLY_FREED")));
    expect(order).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    p.release(ip("10.0.0.2"));
    p.edit(shape(["10.0.0.0/30"], ["10.0.0.1"]));
    expect(textOf(p.allocate("LEAST_RECENTLY_FREED"))).toBe("10.0.0.0");
    expect(textOf(p.allocate("LEAST_RECENTLY_FREED"))).toBe("10.0.0.2");
    expect(p.allocate("LEAST_RECENTLY_FREED")).toBeUndefined();
  });

  it("allocates and releases many at once, fewer when no more are free", () => {
    const p = pool(["10.0.0.0-10.0.0.3", "10.0.0.8-10.0.0.11"], ["10.0.0.9"]);
    expect(lastBytes(p.allocateMany(5, "ASCENDING"))).toEqual([0, 1, 2, 3, 8]);
    const rest = p.allocateMany(100, "HASHED", 6);
    expect(lastBytes(rest)).toEqual([10, 11]);
    expect(p.releaseMany(rest)).toBe(2);
    expect(p.releaseMany(rest)).toBe(0);
    expect(() => p.releaseMany(new Uint8Array(3))).toThrow("got 3 bytes, wanted a multiple of 4");
    expect(() => p.allocateMany(-1, "ASCENDING")).toThrow("got -1, ASCENDING");
  });

  it("finds runs inside one range, aligned by address", () => {
    const p = pool(["10.0.0.3-10.0.0.9", "10.0.0.20-10.0.0.40"]);
    const run = (count: number, alignBits: number, seed = 0) => {
      const found = p.findFreeRun(count, alignBits, seed);
      return found === undefined ? undefined : formatRange(found);
    };
    expect(run(4, 0)).toBe("10.0.0.3-10.0.0.6");
    expect(run(4, 2)).toBe("10.0.0.4-10.0.0.7");
    expect(run(8, 3)).toBe("10.0.0.24-10.0.0.31");
    expect(run(2, 0, 6)).toBe("10.0.0.20-10.0.0.21");
    expect(run(22, 0)).toBeUndefined();
    expect(() => run(0, 0)).toThrow("got count 0, alignBits 0");
  });

  it("goes beyond the window in wide order", () => {
    const p = pool(["2001:db8::/64"], ["2001:db8::8000:0:0:0-2001:db8::8000:0:0:ffff"]);
    expect(textOf(p.findFreeWide(5n))).toBe("2001:db8::5");
    expect(textOf(p.findFreeWide((7n << 100n) | (1n << 40n)))).toBe("2001:db8::100:0:0");
    p.claim(ip("2001:db8::100:0:0"));
    expect(textOf(p.findFreeWide(1n << 40n))).toBe("2001:db8::100:0:1");
    expect(textOf(p.findFreeWide(1n << 63n))).toBe("2001:db8::8000:0:1:0");
    p.claim(ip("2001:db8::ffff:ffff:ffff:ffff"));
    expect(textOf(p.findFreeWide(2n ** 64n - 1n))).toBe("2001:db8::");
  });

  it("says what is used", () => {
    const p = pool(["10.0.0.0/24"]);
    for (const host of [3, 4, 5, 200]) p.claim(ip(`10.0.0.${host}`));
    using used = p.used();
    expect(used.ranges().map(formatRange)).toEqual(["10.0.0.3-10.0.0.5", "10.0.0.200"]);
    expect([...p.freePerBlock()]).toEqual([252]);
  });

  it("saves, and loads into a pool of the same ranges only", () => {
    const space = PoolSpace.open(wasm);
    const a = space.createPool(shape(["10.0.0.0/16"], ["10.0.0.0"]));
    const b = space.createPool(shape(["10.0.0.0/17", "10.0.128.0/17"]));
    for (let seed = 0; seed < 1000; seed++) a.allocate("HASHED", seed * 7919);
    const saved = a.save();
    expect(b.load(saved)).toBe("loaded");
    expect(b.save()).toEqual(saved);
    expect(b.counts().digest).toBe(a.counts().digest);
    expect(space.createPool(shape(["10.1.0.0/16"])).load(saved)).toBe("other pool");
    expect(a.load(saved.subarray(1))).toBe("damaged");
    const flipped = Uint8Array.from(saved, (byte, index) => (index === 40 ? byte ^ 1 : byte));
    expect(a.load(flipped)).toBe("damaged");
    expect(a.load(Uint8Array.from(saved, (byte, index) => (index === 4 ? 2 : byte)))).toBe("other version");
    expect(a.save()).toEqual(saved);
  });

  it("packs a dense /16 into 1 KB and a random one into 11 KB", () => {
    const dense = pool(["10.0.0.0/16"]);
    dense.allocateMany(60_000, "ASCENDING");
    expect(dense.save().length).toBeLessThan(1024);
    const random = pool(["10.0.0.0/16"]);
    for (let seed = 1; seed <= 32_768; seed++) random.allocate("HASHED", Math.imul(seed, 0x9e3779b1));
    expect(random.save().length).toBeLessThan(11 * 1024);
  });

  it("clones the whole instance", () => {
    const space = PoolSpace.open(wasm);
    const p = space.createPool(shape(["10.0.0.0/30"]));
    p.claim(ip("10.0.0.0"));
    const clone = space.clone([p]);
    const [copy] = clone.pools;
    p.claim(ip("10.0.0.1"));
    expect(textOf(copy?.findFreeAscending())).toBe("10.0.0.1");
    const fresh = clone.space.createPool(shape(["10.0.0.0/8"]));
    expect(textOf(fresh.findFreeAscending())).toBe("10.0.0.0");
    expect(textOf(p.findFreeAscending())).toBe("10.0.0.2");
    expect(clone.space.sizeBytes()).toBeGreaterThan(space.sizeBytes());
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
});

describe.each(CORE_BUILDS)("RangeSet ($build)", ({ wasm }) => {
  it("does algebra on ranges of one family", () => {
    const space = PoolSpace.open(wasm);
    using a = space.rangeSet(4, ["10.0.0.0/24", "10.0.0.128-10.0.2.0"].map(range));
    using b = space.rangeSet(4, [range("10.0.1.0/24")]);
    using union = a.union(b);
    using rest = a.subtract(b);
    using both = a.intersect(b);
    expect(union.ranges().map(formatRange)).toEqual(["10.0.0.0-10.0.2.0"]);
    expect(rest.ranges().map(formatRange)).toEqual(["10.0.0.0-10.0.0.255", "10.0.2.0"]);
    expect(both.prefixes()).toEqual([{ ip: ip("10.0.1.0"), length: 24 }]);
    expect([a.overlaps(b), rest.overlaps(b), a.includes(b), b.includes(a)]).toEqual([true, false, true, false]);
    expect(a.size()).toBe(513n);
    expect([a.contains(ip("10.0.2.0")), a.contains(ip("10.0.2.1")), a.contains(ip("::1"))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("holds all of IPv6", () => {
    using all = PoolSpace.open(wasm).rangeSet(6, [range("::/0")]);
    expect(all.size()).toBe(2n ** 128n);
    expect(all.prefixes()).toEqual([{ ip: ip("::"), length: 0 }]);
  });

  it("refuses mixed families, dropped sets, and sets of another instance", () => {
    const space = PoolSpace.open(wasm);
    const a = space.rangeSet(4, [range("10.0.0.0/24")]);
    using six = space.rangeSet(6, [range("::/64")]);
    expect(() => space.rangeSet(4, [range("::/64")])).toThrow("got a range of IPv6 in a set of IPv4");
    expect(() => a.union(six)).toThrow("the families differ");
    expect(() => a.union(PoolSpace.open(wasm).rangeSet(4, []))).toThrow("two instances");
    a.drop();
    expect(() => a.size()).toThrow('"set_size" refused with status -1');
  });
});

it("a module of another major version is refused", () => {
  const release = CORE_BUILDS[0]?.wasm ?? new Uint8Array();
  const at = Buffer.from(release).indexOf(Buffer.from([0x41, 0x80, 0x80, 0x04, 0x0b])); // i32.const 1 << 16, end
  expect(at).toBeGreaterThan(0);
  const other = Uint8Array.from(release, (byte, index) => (index === at + 3 ? 0x08 : byte));
  expect(() => PoolSpace.open(other)).toThrow("got major 2, wanted 1");
});
