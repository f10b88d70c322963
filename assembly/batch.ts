/**
 * Batch forms: one call for many addresses, which stand one after another in the exchange buffer.
 * Called by the ABI; a call across the border costs more than an operation in most embeddings.
 * Effects: linear memory; may grow it.
 */
import { OUTSIDE } from "./abi";
import { exchangeAt } from "./exchange";
import { claimAddress, poolFamily } from "./pool";
import { readHi, readLo, widthOf } from "./u128";

/** Marks `count` addresses used and passes over those outside: how many were newly marked, or a status. */
export function claimMany(pool: usize, count: u32): i32 {
  const family = poolFamily(pool);
  const width = widthOf(family);
  let added = 0;
  for (let index: u32 = 0; index < count; index++) {
    const at = exchangeAt() + index * width;
    const result = claimAddress(pool, readHi(family, at), readLo(family, at));
    if (result > 0) added++;
    else if (result != 0 && result != OUTSIDE) return result;
  }
  return added;
}
