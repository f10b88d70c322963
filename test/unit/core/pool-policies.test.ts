import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import { ip } from "../../world/values.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { shape, textOf } from "./words.ts";

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

  it("packs a dense /16 into 1 KB and a random one into 11 KB", () => {
    const dense = pool(["10.0.0.0/16"]);
    for (let count = 0; count < 60_000; count++) dense.allocate("ASCENDING");
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

it("a module of another major version is refused", () => {
  const release = CORE_BUILDS[0]?.wasm ?? new Uint8Array();
  const at = Buffer.from(release).indexOf(Buffer.from([0x41, 0x80, 0x80, 0x04, 0x0b])); // i32.const 1 << 16, end
  expect(at).toBeGreaterThan(0);
  const other = Uint8Array.from(release, (byte, index) => (index === at + 3 ? 0x08 : byte));
  expect(() => PoolSpace.open(other)).toThrow("got major 2, wanted 1");
});
