/**
 * The stories that test/vectors/core tells: calls of the raw ABI in order. `npm run generate` records results
 * and outputs from the core; every embedding replays them.
 */
import { walk } from "./walk-scenario.ts";

/** Records one call: its input, its arguments, how many bytes of output to keep (or how many per item of the result; of these `atMost`). */
export type Perform = (
  call: string,
  args: number[],
  options?: { input?: string; keep?: number; keepEach?: number; atMost?: number },
) => number;

export interface Scenario {
  readonly name: string;
  readonly doc: string;
  perform(perform: Perform): void;
}

function v4(...octets: number[]): string {
  return Buffer.from(octets).toString("hex");
}

function v6(high: bigint, low: bigint): string {
  return high.toString(16).padStart(16, "0") + low.toString(16).padStart(16, "0");
}

/** A pool over hexadecimal pairs, the sets dropped again. */
function createPool(perform: Perform, family: 4 | 6, ranges: readonly string[], masks: readonly string[] = []): number {
  const r = perform("set_create", [family, ranges.length], { input: ranges.join("") });
  const m = perform("set_create", [family, masks.length], { input: masks.join("") });
  const pool = perform("pool_create", [r, m]);
  perform("drop", [r]);
  perform("drop", [m]);
  return pool;
}

const DB8 = 0x20010db8n << 32n;

const prefixes: Scenario = {
  name: "prefixes",
  doc: "CIDR arithmetic in both families, to both ends of the address space.",
  perform(perform) {
    perform("abi_version", []);
    for (const length of [0, 8, 23, 31, 32]) {
      for (const call of ["prefix_first", "prefix_last", "prefix_mask", "prefix_next"]) {
        perform(call, [4, length], { input: v4(10, 1, 3, 77), keep: 4 });
      }
    }
    for (const length of [0, 1, 63, 64, 65, 127, 128]) {
      for (const call of ["prefix_first", "prefix_last", "prefix_mask", "prefix_next"]) {
        perform(call, [6, length], { input: v6(DB8 | 0xffffn, 0xffff_ffff_ffff_fffen), keep: 16 });
      }
    }
    perform("prefix_next", [4, 24], { input: v4(255, 255, 255, 9) });
    for (const index of [0, 1, 15, 16])
      perform("prefix_part", [4, 20, 24, index], { input: v4(10, 0, 17, 1), keep: 4 });
    perform("prefix_part", [6, 48, 112, -1], { input: v6(DB8, 5n), keep: 16 });
    perform("prefix_common", [4], { input: v4(10, 0, 3, 255) + v4(10, 0, 1, 0) });
    perform("prefix_common", [6], { input: v6(DB8, 0n) + v6(DB8, 1n) });
    perform("prefix_first", [5, 8], { input: v4(10, 0, 0, 0) });
    perform("prefix_first", [4, 33], { input: v4(10, 0, 0, 0) });
  },
};

const sets: Scenario = {
  name: "sets",
  doc: "Algebra, membership, size and shortest prefixes of range sets.",
  perform(perform) {
    const a = perform("set_create", [4, 3], {
      input: v4(10, 0, 0, 128, 10, 0, 1, 5) + v4(10, 0, 0, 0, 10, 0, 0, 127) + v4(10, 0, 3, 0, 10, 0, 3, 255),
    });
    const b = perform("set_create_prefixes", [4, 2], { input: v4(10, 0, 1, 77, 24) + v4(10, 0, 3, 9, 32) });
    for (const set of [a, b]) {
      const count = perform("set_count", [set]);
      perform("set_ranges", [set], { keep: count * 8 });
      perform("set_size", [set], { keep: 17 });
      perform("set_prefixes", [set], { keepEach: 5 });
    }
    for (const call of ["set_union", "set_intersect", "set_subtract"]) {
      const set = perform(call, [a, b]);
      perform("set_ranges", [set], { keepEach: 8 });
      perform("set_overlaps", [set, b]);
      perform("set_includes", [a, set]);
      perform("drop", [set]);
    }
    perform("set_contains", [a], { input: v4(10, 0, 1, 5) });
    perform("set_contains_many", [a, 3], { input: v4(10, 0, 1, 5) + v4(10, 0, 1, 6) + v4(10, 0, 3, 0), keep: 3 });
    const all = perform("set_create", [6, 1], { input: v6(0n, 0n) + v6((1n << 64n) - 1n, (1n << 64n) - 1n) });
    perform("set_size", [all], { keep: 17 });
    perform("set_prefixes", [all], { keepEach: 17 });
    perform("set_union", [a, all]);
    perform("set_create", [4, 1], { input: v4(10, 0, 0, 2, 10, 0, 0, 1) });
    perform("set_create_prefixes", [4, 1], { input: v4(10, 0, 0, 2, 33) });
    perform("drop", [all]);
    perform("set_count", [all]);
    perform("live_objects", []);
  },
};

const marks: Scenario = {
  name: "marks",
  doc: "Claim, release, test by address and ordinal, one and many; masks; a live edit that keeps what is used.",
  perform(perform) {
    const pool = createPool(
      perform,
      4,
      [v4(10, 0, 0, 0, 10, 0, 0, 255), v4(10, 0, 2, 0, 10, 0, 2, 63)],
      [v4(10, 0, 0, 0, 10, 0, 0, 9)],
    );
    for (const host of [5, 10, 10, 255]) perform("pool_claim", [pool], { input: v4(10, 0, 0, host) });
    for (const call of ["pool_contains", "pool_test", "pool_claim", "pool_release", "pool_ordinal"]) {
      for (const address of [v4(10, 0, 0, 5), v4(10, 0, 1, 0), v4(10, 0, 2, 63)])
        perform(call, [pool], { input: address });
    }
    for (const ordinal of [0, 319, 320, -1]) {
      perform("pool_claim_at", [pool, ordinal]);
      perform("pool_test_at", [pool, ordinal]);
      perform("pool_address", [pool, ordinal], { keep: 4 });
    }
    perform("pool_release_at", [pool, 319]);
    const some = v4(10, 0, 0, 20) + v4(10, 0, 1, 20) + v4(10, 0, 0, 20) + v4(10, 0, 2, 20);
    for (const call of ["claim", "test", "contains", "release"])
      perform(`pool_${call}_many`, [pool, 4], { input: some, keep: 4 });
    const ordinals = "07000000ff00000040010000";
    for (const call of ["claim", "test", "release"])
      perform(`pool_${call}_at_many`, [pool, 3], { input: ordinals, keep: 3 });
    perform("pool_claim_run", [pool, 100, 50]);
    perform("pool_claim_run", [pool, 149, 2]);
    perform("pool_counts", [pool], { keep: 72 });
    const ranges = perform("set_create", [4, 1], { input: v4(10, 0, 0, 120, 10, 0, 4, 0) });
    const masks = perform("set_create", [4, 1], { input: v4(10, 0, 0, 130, 10, 0, 0, 139) });
    perform("pool_edit", [pool, ranges, masks]);
    const used = perform("pool_used", [pool]);
    perform("set_ranges", [used], { keepEach: 8 });
    perform("pool_counts", [pool], { keep: 72 });
    perform("set_count", [perform("pool_ranges", [pool])]);
    perform("set_count", [perform("pool_masks", [pool])]);
    perform("pool_release_run", [pool, 0, 40]);
    perform("pool_blocks", [pool], { keepEach: 2 });
  },
};

const policies: Scenario = {
  name: "policies",
  doc: "Every policy, runs, and hashed order beyond the window of an IPv6 /64.",
  perform(perform) {
    const pool = createPool(perform, 4, [v4(172, 16, 0, 0, 172, 16, 31, 255)], [v4(172, 16, 0, 0, 172, 16, 0, 0)]);
    for (let round = 0; round < 3; round++) perform("pool_allocate", [pool, 0, 0]);
    perform("pool_release_at", [pool, 1]);
    for (let round = 0; round < 3; round++) perform("pool_allocate", [pool, 1, 0]);
    for (const hash of [5000, 5000, 0x9e3779b9 | 0]) perform("pool_allocate", [pool, 2, hash]);
    perform("pool_allocate_many", [pool, 2, 4090, 20], { keepEach: 4 });
    perform("pool_allocate_many", [pool, 1, 0, 3], { keepEach: 4 });
    perform("pool_allocate", [pool, 3, 0]);
    perform("pool_track_freed", [pool]);
    for (const ordinal of [5000, 2, 5001]) perform("pool_release_at", [pool, ordinal]);
    perform("pool_claim_at", [pool, 2]);
    perform("pool_release_at", [pool, 2]);
    perform("pool_allocate_many", [pool, 3, 0, 8192]);
    perform("pool_find", [pool, 77]);
    for (const ordinal of [63, 64, 65, 66, 4095, 4096, 4097]) perform("pool_release_at", [pool, ordinal]);
    perform("pool_find", [pool, 70]);
    perform("pool_find_run", [pool, 0, 3, 0]);
    perform("pool_find_run", [pool, 0, 3, 1]);
    perform("pool_find_run", [pool, 4096, 2, 0]);
    perform("pool_find_run", [pool, 0, 5, 0]);
    for (let round = 0; round < 4; round++) perform("pool_allocate", [pool, 3, 0]);
    const wide = createPool(
      perform,
      6,
      [v6(DB8, 0n) + v6(DB8, (1n << 64n) - 1n)],
      [v6(DB8, 1n << 40n) + v6(DB8, 1n << 41n)],
    );
    for (const seed of [7n, 1n << 30n, 1n << 40n, (1n << 64n) - 1n]) {
      for (let round = 0; round < 2; round++) {
        perform("pool_find_wide", [wide], { input: v6(0xabcdn, seed), keep: 16 });
        perform("pool_claim", [wide]);
      }
    }
    perform("pool_counts", [wide], { keep: 72 });
  },
};

const snapshots: Scenario = {
  name: "snapshots",
  doc: "Save and load: empty, full, sparse, dense and random chunks, addresses beyond the window, and refusals.",
  perform(perform) {
    const range = v6(DB8, 0n) + v6(DB8, (1n << 32n) - 1n);
    const pool = createPool(perform, 6, [range]);
    perform("pool_claim_run", [pool, 4096, 8192]);
    perform("pool_claim_run", [pool, 20_000, 17]);
    for (let index = 0; index < 1500; index++)
      perform("pool_claim_at", [pool, 40_960 + ((index * index * 7 + index) % 4096)]);
    for (const low of [1n << 24n, (1n << 24n) + 1n, (1n << 32n) - 1n])
      perform("pool_claim", [pool], { input: v6(DB8, low) });
    const length = perform("pool_save", [pool], { keepEach: 1 });
    perform("pool_release_run", [pool, 0, 50_000]);
    perform("pool_load", [pool, length]);
    perform("pool_save", [pool], { keepEach: 1 });
    perform("pool_load", [pool, length - 1]);
    const other = createPool(perform, 6, [v6(DB8, 0n) + v6(DB8, 1n << 32n)]);
    perform("pool_save", [pool]);
    perform("pool_load", [other, length]);
    perform("exchange_size", []);
    perform("state_bytes", []);
  },
};

export const SCENARIOS: readonly Scenario[] = [prefixes, sets, marks, policies, snapshots, walk];
