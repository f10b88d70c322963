/**
 * The ABI: every export of the module, by the file that holds it. abi.json describes each one; host/core and the
 * embeddings call nothing else.
 * Effects: those of the exports.
 */
export { abi_version, drop, exchange, exchange_size } from "./exports-base";
export {
  pool_address,
  pool_claim,
  pool_claim_many,
  pool_contains,
  pool_counts,
  pool_create,
  pool_edit,
  pool_find,
  pool_release,
  pool_test,
} from "./exports-pool";
export {
  set_contains,
  set_count,
  set_create,
  set_intersect,
  set_overlaps,
  set_prefixes,
  set_ranges,
  set_size,
  set_subtract,
  set_union,
} from "./exports-set";
