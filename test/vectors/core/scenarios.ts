/**
 * The stories of the conformance vectors: calls of the raw ABI in order. The build records results
 * and outputs from the core; every embedding replays them.
 */
import { walk } from "./walk-scenario.ts";

/**
 * Records one call: its input, its arguments, how many bytes of output to keep (or how many per item of the result;
 * of these `atMost`).
 */
export type Call = (
  call: string,
  args: number[],
  options?: { input?: string; keep?: number; keepEach?: number; atMost?: number },
) => number;

export interface Scenario {
  readonly name: string;
  readonly doc: string;
  run(call: Call): void;
}

function v4(...octets: number[]): string {
  return Buffer.from(octets).toString("hex");
}

function v6(high: bigint, low: bigint): string {
  return high.toString(16).padStart(16, "0") + low.toString(16).padStart(16, "0");
}

/** A pool over hexadecimal pairs, the sets dropped again. */
function createPool(call: Call, family: 4 | 6, ranges: readonly string[], masks: readonly string[] = []): number {
  const r = call("set_create", [family, ranges.length], { input: ranges.join("") });
  const m = call("set_create", [family, masks.length], { input: masks.join("") });
  const pool = call("pool_create", [r, m]);
  call("drop", [r]);
  call("drop", [m]);
  return pool;
}

const DB8 = 0x20010db8n << 32n;

const prefixes: Scenario = {
  name: "prefixes",
  doc: "CIDR arithmetic in both families, to both ends of the address space.",
  run(call) {
    call("abi_version", []);
    for (const length of [0, 8, 23, 31, 32]) {
      for (const verb of ["prefix_first", "prefix_last", "prefix_mask", "prefix_next"]) {
        call(verb, [4, length], { input: v4(10, 1, 3, 77), keep: 4 });
      }
    }
    for (const length of [0, 1, 63, 64, 65, 127, 128]) {
      for (const verb of ["prefix_first", "prefix_last", "prefix_mask", "prefix_next"]) {
        call(verb, [6, length], { input: v6(DB8 | 0xffffn, 0xffff_ffff_ffff_fffen), keep: 16 });
      }
    }
    call("prefix_next", [4, 24], { input: v4(255, 255, 255, 9) });
    for (const index of [0, 1, 15, 16]) call("prefix_part", [4, 20, 24, index], { input: v4(10, 0, 17, 1), keep: 4 });
    call("prefix_part", [6, 48, 112, -1], { input: v6(DB8, 5n), keep: 16 });
    call("prefix_common", [4], { input: v4(10, 0, 3, 255) + v4(10, 0, 1, 0) });
    call("prefix_common", [6], { input: v6(DB8, 0n) + v6(DB8, 1n) });
    call("prefix_first", [5, 8], { input: v4(10, 0, 0, 0) });
    call("prefix_first", [4, 33], { input: v4(10, 0, 0, 0) });
  },
};

const sets: Scenario = {
  name: "sets",
  doc: "Algebra, membership, size and shortest prefixes of range sets.",
  run(call) {
    const a = call("set_create", [4, 3], {
      input: v4(10, 0, 0, 128, 10, 0, 1, 5) + v4(10, 0, 0, 0, 10, 0, 0, 127) + v4(10, 0, 3, 0, 10, 0, 3, 255),
    });
    const b = call("set_create_prefixes", [4, 2], { input: v4(10, 0, 1, 77, 24) + v4(10, 0, 3, 9, 32) });
    for (const set of [a, b]) {
      const count = call("set_count", [set]);
      call("set_ranges", [set], { keep: count * 8 });
      call("set_size", [set], { keep: 17 });
      call("set_prefixes", [set], { keepEach: 5 });
    }
    for (const verb of ["set_union", "set_intersect", "set_subtract"]) {
      const set = call(verb, [a, b]);
      call("set_ranges", [set], { keepEach: 8 });
      call("set_overlaps", [set, b]);
      call("set_includes", [a, set]);
      call("drop", [set]);
    }
    call("set_contains", [a], { input: v4(10, 0, 1, 5) });
    call("set_contains_many", [a, 3], { input: v4(10, 0, 1, 5) + v4(10, 0, 1, 6) + v4(10, 0, 3, 0), keep: 3 });
    const all = call("set_create", [6, 1], { input: v6(0n, 0n) + v6((1n << 64n) - 1n, (1n << 64n) - 1n) });
    call("set_size", [all], { keep: 17 });
    call("set_prefixes", [all], { keepEach: 17 });
    call("set_union", [a, all]);
    call("set_create", [4, 1], { input: v4(10, 0, 0, 2, 10, 0, 0, 1) });
    call("set_create_prefixes", [4, 1], { input: v4(10, 0, 0, 2, 33) });
    call("drop", [all]);
    call("set_count", [all]);
    call("live_objects", []);
  },
};

const marks: Scenario = {
  name: "marks",
  doc: "Claim, release, test by address and ordinal, one and many; masks; a live edit that keeps what is used.",
  run(call) {
    const pool = createPool(
      call,
      4,
      [v4(10, 0, 0, 0, 10, 0, 0, 255), v4(10, 0, 2, 0, 10, 0, 2, 63)],
      [v4(10, 0, 0, 0, 10, 0, 0, 9)],
    );
    for (const host of [5, 10, 10, 255]) call("pool_claim", [pool], { input: v4(10, 0, 0, host) });
    for (const verb of ["pool_contains", "pool_test", "pool_claim", "pool_release", "pool_ordinal"]) {
      for (const address of [v4(10, 0, 0, 5), v4(10, 0, 1, 0), v4(10, 0, 2, 63)])
        call(verb, [pool], { input: address });
    }
    for (const ordinal of [0, 319, 320, -1]) {
      call("pool_claim_at", [pool, ordinal]);
      call("pool_test_at", [pool, ordinal]);
      call("pool_address", [pool, ordinal], { keep: 4 });
    }
    call("pool_release_at", [pool, 319]);
    const some = v4(10, 0, 0, 20) + v4(10, 0, 1, 20) + v4(10, 0, 0, 20) + v4(10, 0, 2, 20);
    for (const verb of ["claim", "test", "contains", "release"])
      call(`pool_${verb}_many`, [pool, 4], { input: some, keep: 4 });
    const ordinals = "07000000ff00000040010000";
    for (const verb of ["claim", "test", "release"])
      call(`pool_${verb}_at_many`, [pool, 3], { input: ordinals, keep: 3 });
    call("pool_claim_run", [pool, 100, 50]);
    call("pool_claim_run", [pool, 149, 2]);
    call("pool_counts", [pool], { keep: 72 });
    const ranges = call("set_create", [4, 1], { input: v4(10, 0, 0, 120, 10, 0, 4, 0) });
    const masks = call("set_create", [4, 1], { input: v4(10, 0, 0, 130, 10, 0, 0, 139) });
    call("pool_edit", [pool, ranges, masks]);
    const used = call("pool_used", [pool]);
    call("set_ranges", [used], { keepEach: 8 });
    call("pool_counts", [pool], { keep: 72 });
    call("set_count", [call("pool_ranges", [pool])]);
    call("set_count", [call("pool_masks", [pool])]);
    call("pool_release_run", [pool, 0, 40]);
    call("pool_blocks", [pool], { keepEach: 2 });
  },
};

const policies: Scenario = {
  name: "policies",
  doc: "Every policy, runs, and hashed order beyond the window of an IPv6 /64.",
  run(call) {
    const pool = createPool(call, 4, [v4(172, 16, 0, 0, 172, 16, 31, 255)], [v4(172, 16, 0, 0, 172, 16, 0, 0)]);
    for (let round = 0; round < 3; round++) call("pool_allocate", [pool, 0, 0]);
    call("pool_release_at", [pool, 1]);
    for (let round = 0; round < 3; round++) call("pool_allocate", [pool, 1, 0]);
    for (const hash of [5000, 5000, 0x9e3779b9 | 0]) call("pool_allocate", [pool, 2, hash]);
    call("pool_allocate_many", [pool, 2, 4090, 20], { keepEach: 4 });
    call("pool_allocate_many", [pool, 1, 0, 3], { keepEach: 4 });
    call("pool_allocate", [pool, 3, 0]);
    call("pool_track_freed", [pool]);
    for (const ordinal of [5000, 2, 5001]) call("pool_release_at", [pool, ordinal]);
    call("pool_claim_at", [pool, 2]);
    call("pool_release_at", [pool, 2]);
    call("pool_allocate_many", [pool, 3, 0, 8192]);
    call("pool_find", [pool, 77]);
    for (const ordinal of [63, 64, 65, 66, 4095, 4096, 4097]) call("pool_release_at", [pool, ordinal]);
    call("pool_find", [pool, 70]);
    call("pool_find_run", [pool, 0, 3, 0]);
    call("pool_find_run", [pool, 0, 3, 1]);
    call("pool_find_run", [pool, 4096, 2, 0]);
    call("pool_find_run", [pool, 0, 5, 0]);
    for (let round = 0; round < 4; round++) call("pool_allocate", [pool, 3, 0]);
    const wide = createPool(
      call,
      6,
      [v6(DB8, 0n) + v6(DB8, (1n << 64n) - 1n)],
      [v6(DB8, 1n << 40n) + v6(DB8, 1n << 41n)],
    );
    for (const seed of [7n, 1n << 30n, 1n << 40n, (1n << 64n) - 1n]) {
      for (let round = 0; round < 2; round++) {
        call("pool_find_wide", [wide], { input: v6(0xabcdn, seed), keep: 16 });
        call("pool_claim", [wide]);
      }
    }
    call("pool_counts", [wide], { keep: 72 });
  },
};

const snapshots: Scenario = {
  name: "snapshots",
  doc: "Save and load: empty, full, sparse, dense and random chunks, addresses beyond the window, and refusals.",
  run(call) {
    const range = v6(DB8, 0n) + v6(DB8, (1n << 32n) - 1n);
    const pool = createPool(call, 6, [range]);
    call("pool_claim_run", [pool, 4096, 8192]);
    call("pool_claim_run", [pool, 20_000, 17]);
    for (let index = 0; index < 1500; index++)
      call("pool_claim_at", [pool, 40_960 + ((index * index * 7 + index) % 4096)]);
    for (const low of [1n << 24n, (1n << 24n) + 1n, (1n << 32n) - 1n])
      call("pool_claim", [pool], { input: v6(DB8, low) });
    const length = call("pool_save", [pool], { keepEach: 1 });
    call("pool_release_run", [pool, 0, 50_000]);
    call("pool_load", [pool, length]);
    call("pool_save", [pool], { keepEach: 1 });
    call("pool_load", [pool, length - 1]);
    const other = createPool(call, 6, [v6(DB8, 0n) + v6(DB8, 1n << 32n)]);
    call("pool_save", [pool]);
    call("pool_load", [other, length]);
    call("exchange_size", []);
    call("state_bytes", []);
  },
};

export const SCENARIOS: readonly Scenario[] = [prefixes, sets, marks, policies, snapshots, walk];
