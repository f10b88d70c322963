/**
 * The benchmark's operations as loops inside Wasm, so that no border is crossed per operation. Not part of the core:
 * benchmarks/core builds it together with the core for itself. The same loops stand in benchmarks/core/twin.c.
 * Effects: those of the operations.
 */
import { pool_allocate, pool_find } from "../exports/find";
import { pool_claim_at, pool_release_at, pool_test, pool_test_at } from "../exports/mark";
import { exchangeAt } from "../memory/exchange";

/** xorshift32: the benchmark's chance in every language. */
function next(seed: u32): u32 {
  let x = seed;
  x ^= x << 13;
  x ^= x >>> 17;
  return x ^ (x << 5);
}

/** Hashed allocation and release, `count` times. */
export function loop_allocate(pool: i32, count: i32, seed: i32): i32 {
  let x = <u32>seed;
  for (let i = 0; i < count; i++) {
    x = next(x);
    pool_release_at(pool, pool_allocate(pool, 2, <i32>x));
  }
  return <i32>x;
}

/** Allocation of the lowest and release, `count` times. */
export function loop_ascending(pool: i32, count: i32, seed: i32): i32 {
  for (let i = 0; i < count; i++) pool_release_at(pool, pool_allocate(pool, 0, 0));
  return seed;
}

/** Search from anywhere, `count` times: the sum of what was found. */
export function loop_find(pool: i32, count: i32, seed: i32): i32 {
  let x = <u32>seed;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    x = next(x);
    sum += pool_find(pool, <i32>x);
  }
  return sum;
}

/** Test of any ordinal below 2^bits, `count` times: how many were used. */
export function loop_test(pool: i32, count: i32, seed: i32, bits: i32): i32 {
  let x = <u32>seed;
  let used = 0;
  for (let i = 0; i < count; i++) {
    x = next(x);
    used += pool_test_at(pool, <i32>(x >>> (32 - bits)));
  }
  return used;
}

/** Release and claim of ordinals that are used or not, `count` times each: the state stays. */
export function loop_toggle(pool: i32, count: i32, seed: i32, bits: i32): i32 {
  let x = <u32>seed;
  for (let i = 0; i < count; i++) {
    x = next(x);
    const ordinal = <i32>(x >>> (32 - bits));
    if (pool_release_at(pool, ordinal) == 1) {
      pool_claim_at(pool, ordinal);
    } else {
      pool_claim_at(pool, ordinal);
      pool_release_at(pool, ordinal);
    }
  }
  return <i32>x;
}

/**
 * Test of any address of the first 2^bits, `count` times: how many were used. The pool's first address is in the exchange
 * buffer, where its last four bytes, `low`, stand at `at`.
 */
export function loop_address(pool: i32, count: i32, seed: i32, bits: i32, low: i32, at: i32): i32 {
  let x = <u32>seed;
  let used = 0;
  for (let i = 0; i < count; i++) {
    x = next(x);
    store<u32>(exchangeAt() + at, bswap<u32>(<u32>low + (x >>> (32 - bits))));
    used += pool_test(pool);
  }
  return used;
}
