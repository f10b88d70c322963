/**
 * The registry's limits, each explained in docs/limits.md.
 * Effects: none.
 */

/** Room kept back so that a DEL can be recorded on a full disk: bytes. A handful of WAL pages per DEL. */
export const RESERVE_BYTES = 1024 * 1024;

/** How often the agent writes to its registry to see whether it can, while all is well: milliseconds. While it cannot it tries every second. */
export const PROBE_INTERVAL_MS = 5_000;

/** What has to find room before a registry that had none is used again: bytes. More than a claim of many NICs writes. */
export const PROBE_BYTES = 64 * 1024;

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

/** How long a claim of a cluster waits for the API server in all: milliseconds. Shorter than the shim's 90 seconds. */
export const CLAIM_PATIENCE_MS = 60_000;

/** How long a write whose answer was lost may still be carried out: milliseconds. Until then an object that is not there is not believed to be gone. */
export const DOUBT_MS = 5_000;

/** How often one address is looked at again because somebody else has written to its object in the meantime. */
export const MAX_STEPS = 12;

/** The first pause before what failed for an address is tried again: milliseconds. Each pause is twice the one before, less a random part. */
export const RETRY_FIRST_MS = 1_000;

/** Where that pause stops growing: milliseconds. After an outage a full pool has its released addresses back within this time. */
export const RETRY_MAX_MS = 5_000;

/** How long the janitor waits for the API server in one round: milliseconds. The work goes on behind it. */
export const EXPIRE_WAIT_MS = 2_000;

/** Objects or names in one page of a list. */
export const LIST_PAGE = 500;

/** How often a list is begun whose later pages the API server has compacted away meanwhile. */
export const LIST_ATTEMPTS = 3;

/** Names in one page of a list that has nothing but names. */
export const NAMES_PAGE = 5_000;

/** Pools of together so many addresses are asked for by name when they seem full, two of /16; for larger ones the answer would be many megabytes. */
export const SURVEY_MAX_ADDRESSES = 131_072;

/** How long a pool's usage object is not asked for again: milliseconds. It is written about as often. */
export const USAGE_FRESH_MS = 2_000;

/** How long that question may take: milliseconds. An ADD waits for it, and does as well without an answer. */
export const USAGE_PATIENCE_MS = 1_000;

/** How long after a list of a pool's names its usage object has nothing to add: milliseconds. As long as it may be old. */
export const SURVEYED_MS = 10_000;

/** Pools up to this size always tell the API server of their addresses that cool: others may have to take them over. */
export const SMALL_POOL_ADDRESSES = 256;

/** A larger pool tells so, too, from this share in use. */
export const TIGHT_SHARE = 0.8;

/** How long a pool that was found nearly full, or wanted, is taken for that: milliseconds. */
export const TIGHT_MS = 600_000;

/** A pool is marked as wanted at most so often: milliseconds. */
export const WANTED_INTERVAL_MS = 10_000;

/** Most objects of other nodes that are remembered; the one met longest ago is forgotten first. */
export const MAX_FOREIGN_OBJECTS = 4_096;

/** Most objects that were this node's of which the last version is remembered, so that a late event is known for one; the one that ended longest ago is forgotten first. */
export const MAX_FORMER_OBJECTS = 4_096;

/** How often an ADD looks whether an earlier pod's node has let go of an address that it waits for: milliseconds. */
export const HAND_OVER_LOOK_MS = 200;
