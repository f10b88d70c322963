/**
 * Batch forms: one call for many addresses or ordinals, which stand one after another in the exchange buffer. Item i's
 * outcome replaces byte i of the buffer, which has been read by then.
 * Called by the ABI; a call across the border costs more than an operation in most embeddings.
 * Effects: linear memory; may grow it.
 */
import { OUTSIDE } from "../abi";
import { windowOf } from "../bitmap/bitmap";
import { exchangeAt } from "../memory/exchange";
import { readHi, readLo, widthOf } from "../numbers/u128";
import { operate, operateAt } from "./mark";
import { bitmapOf, poolFamily } from "./pool";

/** A result that ends the batch: neither an answer nor OUTSIDE. */
function isFailure(result: i32): bool {
  return result < 0 && result != OUTSIDE;
}

/**
 * Does an operation on `count` addresses, or on `count` ordinals of 4 bytes, little-endian: how many answered 1, or
 * the status of the first failure, and then it and those after it are not done. Bytes: 1, 0, or the low byte of the
 * status; all from the failure on bear its status.
 */
export function many(pool: usize, operation: u32, count: u32, byOrdinal: bool): i32 {
  const family = poolFamily(pool);
  const width = byOrdinal ? 4 : widthOf(family);
  const window = windowOf(bitmapOf(pool));
  let done = 0;
  for (let index: u32 = 0; index < count; index++) {
    const at = exchangeAt() + index * width;
    const ordinal = load<u32>(at);
    let result = OUTSIDE;
    if (!byOrdinal) result = operate(pool, operation, readHi(family, at), readLo(family, at));
    else if (ordinal < window) result = operateAt(pool, operation, ordinal);
    if (isFailure(result)) {
      memory.fill(exchangeAt() + index, <u8>result, count - index);
      return result;
    }
    store<u8>(exchangeAt() + index, <u8>result);
    done += i32(result == 1);
  }
  return done;
}
