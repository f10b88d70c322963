import { describe, expect, it } from "vitest";
import { CoreModule } from "../../../host/core/module.ts";
import { Pool } from "../../../host/core/pool.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import { RangeSet } from "../../../host/core/range-set.ts";
import { formatRange } from "../../../host/net/range.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { ip, range, shape, textOf } from "./words.ts";

describe.each(CORE_BUILDS)("batches, runs and copies of a pool ($build)", ({ wasm }) => {
  const pool = (ranges: string[], masked: string[] = []) => PoolSpace.open(wasm).createPool(shape(ranges, masked));

  it("tells for each address of a batch whether it is allocatable, and whether it is used", () => {
    const p = pool(["10.0.0.0/30"], ["10.0.0.3"]);
    p.claim(ip("10.0.0.1"));
    const packed = Uint8Array.from([10, 0, 0, 1, 10, 0, 0, 3, 11, 0, 0, 0, 10, 0, 0, 0]);
    expect([...p.testMany(packed)]).toEqual([1, 0, 0, 0]);
    expect([...p.containsMany(packed)]).toEqual([1, 0, 0, 1]);
    expect([...p.testMany(new Uint8Array(0))]).toEqual([]);
    expect(() => p.testMany(new Uint8Array(3))).toThrow("got 3 bytes, wanted a multiple of 4");
  });

  it("claims and releases a run, all of it or nothing", () => {
    const p = pool(["10.0.0.0/24"], ["10.0.0.100"]);
    expect(p.claimRun(range("10.0.0.8-10.0.0.15"))).toBe("claimed");
    expect(p.claimRun(range("10.0.0.15-10.0.0.20"))).toBe("taken");
    expect(p.claimRun(range("10.0.0.99-10.0.0.101"))).toBe("taken");
    expect(p.counts().used).toBe(8);
    expect(p.releaseRun(range("10.0.0.12-10.0.0.20"))).toBe(4);
    expect(p.counts().used).toBe(4);
  });

  it("takes no run that leaves the pool, crosses a gap, or is of the other family", () => {
    const p = pool(["10.0.0.0/30", "10.0.1.0/30"]);
    for (const outside of ["10.0.0.2-10.0.0.4", "10.0.0.3-10.0.1.0", "9.0.0.0", "fd00::1-fd00::2"]) {
      expect(p.claimRun(range(outside)), outside).toBe("outside");
      expect(p.releaseRun(range(outside)), outside).toBe("outside");
    }
    expect(p.counts().used).toBe(0);
    expect(() => p.claimRun({ first: ip("10.0.0.2"), last: ip("10.0.0.1") })).toThrow('"pool_claim_run"');
  });

  it("counts what is used beyond the window", () => {
    const p = pool(["fd00::/64"]);
    p.claim(ip("fd00::1"));
    p.claim(ip("fd00::ffff:0:1"));
    expect(p.counts()).toMatchObject({ used: 2, beyond: 1 });
    expect(p.claimRun(range("fd00::ffff:0:1"))).toBe("outside");
  });

  it("shows its ranges and masks", () => {
    const p = pool(["10.0.0.0/30", "10.0.0.4/30"], ["10.0.0.7-10.0.0.9"]);
    expect(p.ranges().ranges().map(formatRange)).toEqual(["10.0.0.0-10.0.0.7"]);
    expect(p.masks().ranges().map(formatRange)).toEqual(["10.0.0.7"]);
    expect(p.family).toBe(4);
  });

  it("asks a set about a batch, and counts its ranges", () => {
    const set = PoolSpace.open(wasm).rangeSet(6, [range("fd00::/126"), range("fd00::8")]);
    const packed = Uint8Array.from(["fd00::1", "fd00::4", "fd00::8"].flatMap((text) => [...bytesOf(text)]));
    expect([...set.containsMany(packed)]).toEqual([1, 0, 1]);
    expect(set.count()).toBe(2);
    expect(() => set.containsMany(new Uint8Array(4))).toThrow("got 4 bytes, wanted a multiple of 16");
  });

  it("opens a module that is compiled already, and has its objects in a clone", () => {
    const core = CoreModule.open(new WebAssembly.Module(new Uint8Array(wasm)));
    const set = RangeSet.create(core, 4, [range("10.0.0.0/24")]);
    const p = Pool.create(core, shape(["10.0.0.0/24"]));
    const clone = core.clone();
    expect(set.inClone(clone).size()).toBe(256n);
    expect(textOf(p.inClone(clone).allocate("ASCENDING"))).toBe("10.0.0.0");
    expect([p.counts().used, p.inClone(clone).counts().used]).toEqual([0, 1]);
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
    expect(p.used().ranges().map(formatRange)).toEqual(["10.0.0.77"]);
  });
});

function bytesOf(text: string): Uint8Array {
  const { value } = ip(text);
  return Uint8Array.from({ length: 16 }, (_, index) => Number((value >> BigInt(120 - 8 * index)) & 255n));
}
