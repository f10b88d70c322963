import { describe, expect, it } from "vitest";
import { ofRun } from "../../world/long-cases.ts";
import { putSpans } from "./pool-pair.ts";
import { type Build, bytesOf, RawCore } from "./raw-core.ts";

const NO_MEMORY = -6;
const OVER_CEILING = -7;
const LEAST_RECENTLY_FREED = 3;
const BASE = 0x0a000000n;

function createPool(core: RawCore, family: 4 | 6, first: bigint, size: bigint): number {
  const ranges = putSpans(core, family, [[first, first + size - 1n]]);
  const masks = putSpans(core, family, []);
  const pool = core.call("pool_create", ranges, masks);
  for (const set of [ranges, masks]) core.call("drop", set);
  return pool;
}

/** Ranges of one address each, two apart. */
function putAlternating(core: RawCore, first: number, count: number): number {
  const words = new Uint32Array(2 * count);
  for (let index = 0; index < count; index++) words.fill(first + 2 * index, 2 * index, 2 * index + 2);
  core.put(new Uint8Array(Buffer.from(words.buffer).swap32()));
  return core.call("set_create", 4, count);
}

/** The debug build takes three times as long. */
const BUILDS = ofRun<Build>(["release", "debug"], (build) => build === "release");

describe.each(BUILDS)("ceilings (%s)", (build) => {
  it("an empty /8, and an empty IPv6 /64, take less than 64 KiB", () => {
    const core = new RawCore(build);
    for (const [family, first, size] of [
      [4, BASE, 1n << 24n],
      [6, 1n << 64n, 1n << 64n],
    ] as const) {
      createPool(core, family, first, 1n);
      const before = core.call("state_bytes");
      expect(createPool(core, family, first, size)).toBeGreaterThan(0);
      expect(core.call("state_bytes") - before).toBeLessThan(64 * 1024);
    }
  });

  it("dropped memory is used again: 200 lives of a full /16 take no more of it than two", () => {
    const core = new RawCore(build);
    let steadyBytes = 0;
    for (let life = 0; life < 200; life++) {
      const pool = createPool(core, 4, BASE, 65536n);
      expect(core.call("pool_claim_run", pool, 0, 65536)).toBe(1);
      expect(core.call("pool_find", pool, 5)).toBe(-9);
      expect(core.call("drop", pool)).toBe(0);
      if (life === 1) steadyBytes = core.call("state_bytes");
    }
    expect(core.call("state_bytes")).toBe(steadyBytes);
  });

  it("out of memory, everything says so and nothing is lost", () => {
    const core = new RawCore(build);
    const precious = createPool(core, 4, BASE, 1n << 24n);
    expect(core.call("pool_claim_run", precious, 100, 5000)).toBe(1);
    const ordered = createPool(core, 4, BASE, 65536n);
    core.call("pool_release_at", ordered, core.call("pool_allocate", ordered, 0, 0)); // the first chunk is there
    expect(core.call("pool_track_freed", ordered)).toBe(0);
    let status = 0;
    while (status === 0) {
      const pool = createPool(core, 4, BASE, 1n << 24n);
      status = pool < 0 ? pool : core.call("pool_track_freed", pool);
    }
    expect(status).toBe(NO_MEMORY);
    while (core.call("exchange", core.call("exchange_size") * 2) >= 0);
    while (createPool(core, 4, BASE, 1n << 24n) > 0);
    let ordinal = 0;
    for (let result = 1; result >= 0; ordinal += 4096) result = core.call("pool_claim_at", precious, ordinal);
    expect(core.call("pool_claim_at", precious, ordinal)).toBe(NO_MEMORY);
    expect(core.call("pool_claim_run", precious, ordinal, 9000)).toBe(NO_MEMORY);
    expect(core.call("pool_test_at", precious, ordinal)).toBe(0);
    expect(core.call("pool_claim_run", ordered, 10, 9000)).toBe(NO_MEMORY);
    const inOrder = [0, 1, 2].map(() => core.call("pool_allocate", ordered, LEAST_RECENTLY_FREED, 0));
    expect(inOrder, "a run that failed is no release").toEqual([0, 1, 2]);
    core.call("pool_release_run", ordered, 0, 3);
    expect(core.call("pool_allocate", ordered, LEAST_RECENTLY_FREED, 0)).toBe(3);
    for (let next = 4; next < 12; next++)
      expect(core.call("pool_allocate", ordered, LEAST_RECENTLY_FREED, 0)).toBe(next);
    expect(core.call("pool_allocate", precious, 2, ordinal)).toBe(NO_MEMORY);
    expect(core.call("pool_track_freed", precious)).toBe(NO_MEMORY);
    expect(core.call("pool_test_at", precious, 100) + core.call("pool_test_at", precious, 5099)).toBe(2);
    expect(core.call("pool_find", precious, 100)).toBe(5100);
    expect(core.call("pool_release_run", precious, 100, 5000)).toBeGreaterThan(4990);
    expect(core.call("pool_claim_at", precious, 100)).toBe(1);
  });

  it("65,536 objects, and then no more until one is dropped", () => {
    const core = new RawCore(build);
    const handles: number[] = [];
    core.put(new Uint8Array(8));
    for (let handle = core.call("set_create", 4, 1); handle > 0; handle = core.call("set_create", 4, 1))
      handles.push(handle);
    expect(handles.length).toBe(65536);
    expect(new Set(handles).size).toBe(65536);
    expect(core.call("set_create", 4, 1)).toBe(OVER_CEILING);
    expect(core.call("set_union", handles[0] ?? 0, handles[1] ?? 0)).toBe(OVER_CEILING);
    expect(core.call("pool_create", handles[0] ?? 0, handles[1] ?? 0)).toBe(OVER_CEILING);
    expect(core.call("drop", handles[40_000] ?? 0)).toBe(0);
    const next = core.call("set_create", 4, 1);
    expect(next).toBeGreaterThan(0);
    expect(handles).not.toContain(next);
  });

  it("a handle of a slot comes back after 32,767 others", () => {
    const core = new RawCore(build);
    core.put(new Uint8Array(8));
    const seen = new Set<number>();
    for (let life = 0; life < 32_767; life++) {
      const handle = core.call("set_create", 4, 1);
      seen.add(handle);
      core.call("drop", handle);
    }
    expect(seen.size).toBe(32_767);
    expect(seen.has(core.call("set_create", 4, 1))).toBe(true);
  });

  it("1,048,576 ranges in a set", () => {
    const core = new RawCore(build);
    const most = 1 << 20;
    const set = putAlternating(core, 0, most);
    expect(core.call("set_count", set)).toBe(most);
    const beyond = putAlternating(core, 0x7fffff00, 1);
    expect(core.call("set_union", set, beyond)).toBe(OVER_CEILING);
    expect(core.call("set_subtract", set, beyond)).toBeGreaterThan(0);
    expect(putAlternating(core, 0, most + 1)).toBe(OVER_CEILING);
    expect(core.call("exchange", (1 << 28) + 1)).toBe(OVER_CEILING);
  });

  it("1,048,576 used runs in the set of used addresses", () => {
    const core = new RawCore(build);
    const pool = createPool(core, 4, BASE, 1n << 24n);
    for (let ordinal = 0; ordinal < 1 << 21; ordinal += 2) core.call("pool_claim_at", pool, ordinal);
    expect(core.call("set_count", core.call("pool_used", pool))).toBe(1 << 20);
    core.call("pool_claim_at", pool, 1 << 22);
    expect(core.call("pool_used", pool)).toBe(OVER_CEILING);
  });

  it("1,048,576 used addresses beyond the window, and they survive a save", () => {
    const core = new RawCore(build);
    const pool = createPool(core, 6, 0n, 1n << 64n);
    const most = 1 << 20;
    const [count, batch] = [1 << 16, new DataView(new ArrayBuffer(16 << 16))];
    for (let index = 0; index < most; index += count) {
      for (let at = 0; at < count; at++) batch.setBigUint64(16 * at + 8, (1n << 32n) + BigInt(index + at) * 3n);
      core.put(new Uint8Array(batch.buffer));
      core.call("pool_claim_many", pool, count);
      expect(core.take(count).every((status) => status === 1)).toBe(true);
    }
    core.put(bytesOf(1n << 33n, 16));
    expect(core.call("pool_claim", pool)).toBe(OVER_CEILING);
    expect(core.call("pool_claim_many", pool, 1)).toBe(OVER_CEILING);
    expect([...core.take(1)]).toEqual([OVER_CEILING & 255]);
    const length = core.call("pool_save", pool);
    const saved = core.take(length);
    core.put(saved);
    expect(core.call("pool_load", pool, length)).toBe(0);
    expect(core.call("pool_save", pool)).toBe(length);
    expect(Buffer.compare(core.take(length), saved)).toBe(0);
  });

  it.each([8, 1000])("the order of release holds through thousands of releases of one address of %i", (size) => {
    const core = new RawCore(build);
    const pool = createPool(core, 4, BASE, BigInt(size));
    expect(core.call("pool_track_freed", pool)).toBe(0);
    expect(core.call("pool_claim_run", pool, 0, size)).toBe(1);
    core.call("pool_release_at", pool, 5);
    for (let round = 0; round < 5000; round++) {
      core.call("pool_release_at", pool, 2);
      core.call("pool_claim_at", pool, 2);
    }
    core.call("pool_release_at", pool, 2);
    core.call("pool_release_at", pool, 7);
    const taken = [5, 2, 7, -9].map(() => core.call("pool_allocate", pool, LEAST_RECENTLY_FREED, 0));
    expect(taken).toEqual([5, 2, 7, -9]);
  });
});
