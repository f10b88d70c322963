/**
 * Checks of arguments that several exports share.
 * Called by the ABI.
 * Effects: none.
 */
import { BAD_FAMILY, BAD_HANDLE, KIND_POOL, KIND_SET, OK, SHORT_EXCHANGE } from "./abi";
import { holds } from "./exchange";
import { resolve } from "./handles";
import { poolFamily } from "./pool";
import { familyOf } from "./range-set";
import { widthOf } from "./u128";

/** OK when both handles are live sets of one family. */
export function checkPair(a: i32, b: i32): i32 {
  const x = resolve(a, KIND_SET);
  const y = resolve(b, KIND_SET);
  if (x == 0 || y == 0) return BAD_HANDLE;
  return familyOf(x) == familyOf(y) ? OK : BAD_FAMILY;
}

/** OK when the handle is a live pool and the exchange buffer holds `count` addresses of its family. */
export function checkAddresses(handle: i32, count: i32): i32 {
  const pool = resolve(handle, KIND_POOL);
  if (pool == 0) return BAD_HANDLE;
  return holds(count, widthOf(poolFamily(pool))) ? OK : SHORT_EXCHANGE;
}
