/**
 * Exports about the module as a whole: version, exchange buffer, end of objects.
 * Effects: linear memory; may grow it.
 */
import {
  ABI_VERSION,
  BAD_ARGUMENT,
  BAD_HANDLE,
  HEAP_START,
  HEAP_USED,
  KIND_POOL,
  KIND_SET,
  LIVE_OBJECTS,
  OK,
} from "../abi";
import { exchangeSize, reserveExchange } from "../memory/exchange";
import { forget, resolve } from "../memory/handles";
import { freePool } from "../pools/pool";
import { freeSet } from "../sets/range-set";

export function abi_version(): i32 {
  return ABI_VERSION;
}

export function exchange(bytes: i32): i32 {
  return bytes < 0 ? BAD_ARGUMENT : reserveExchange(<u32>bytes);
}

export function exchange_size(): i32 {
  return <i32>exchangeSize();
}

export function drop(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  const pool = resolve(handle, KIND_POOL);
  if (set == 0 && pool == 0) return BAD_HANDLE;
  forget(handle);
  if (set != 0) freeSet(set);
  else freePool(pool);
  return OK;
}

export function state_bytes(): i32 {
  return <i32>(<u32>HEAP_START + load<u32>(HEAP_USED));
}

export function live_objects(): i32 {
  return <i32>load<u32>(LIVE_OBJECTS);
}
