/**
 * The ABI: every export of the module, by the file that holds it. abi.json describes each one; host/core and the
 * embeddings call nothing else.
 * Effects: those of the exports.
 */

export {
  pool_allocate,
  pool_allocate_many,
  pool_find,
  pool_find_run,
  pool_find_wide,
} from "./exports/find";
export {
  pool_address,
  pool_claim,
  pool_claim_at,
  pool_claim_at_many,
  pool_claim_many,
  pool_claim_run,
  pool_contains,
  pool_contains_many,
  pool_ordinal,
  pool_release,
  pool_release_at,
  pool_release_at_many,
  pool_release_many,
  pool_release_run,
  pool_test,
  pool_test_at,
  pool_test_at_many,
  pool_test_many,
} from "./exports/mark";
export {
  abi_version,
  drop,
  exchange,
  exchange_size,
  live_objects,
  state_bytes,
} from "./exports/module";
export {
  pool_blocks,
  pool_counts,
  pool_create,
  pool_edit,
  pool_load,
  pool_masks,
  pool_ranges,
  pool_save,
  pool_track_freed,
  pool_used,
} from "./exports/pool";
export {
  prefix_common,
  prefix_first,
  prefix_last,
  prefix_mask,
  prefix_next,
  prefix_part,
} from "./exports/prefix";
export {
  set_contains,
  set_contains_many,
  set_count,
  set_create,
  set_create_prefixes,
  set_includes,
  set_intersect,
  set_overlaps,
  set_prefixes,
  set_ranges,
  set_size,
  set_subtract,
  set_union,
} from "./exports/set";
