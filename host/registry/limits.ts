/**
 * The registry's limits, each explained in docs/limits.md.
 * Effects: none.
 */

/** Room kept back so that a DEL can be recorded on a full disk: bytes. A handful of WAL pages per DEL. */
export const RESERVE_BYTES = 1024 * 1024;

/** Most operations that share one commit. */
export const MAX_GROUP = 128;

/** How often a second agent looks whether the state directory is free: milliseconds. */
export const LOCK_RETRY_MS = 100;

/** Most addresses that start to cool, or become free, as one piece: a thread with a small heap holds them all. */
export const MAX_AT_ONCE = 4_096;

/** Most addresses that become free in one transaction: what a claim may have to wait for. */
export const MAX_FREED_AT_ONCE = 64;

/** How long the log grows before it is written into the table with an fsync, milliseconds that a claim may wait: pages of 4 KiB. */
export const CHECKPOINT_PAGES = 4_000;
