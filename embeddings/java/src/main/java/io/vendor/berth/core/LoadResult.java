package io.vendor.berth.core;

/** What became of a snapshot. On all but LOADED the pool is as before. */
public enum LoadResult {
  LOADED,
  /** It is damaged, cut short, or no snapshot. */
  DAMAGED,
  /** It is of another version of the format. */
  OTHER_VERSION,
  /** It is sound, but of a pool with other ranges. */
  OTHER_POOL
}
