/**
 * The controller's limits, each explained in docs/limits.md.
 * Effects: none.
 */

/** Most names of pools, nodes and namespaces that are kept once for all allocations that have them. */
export const MAX_SHARED_TEXTS = 65_536;

/** How long a part that reports about pools rests after a round that failed, and a random time more: milliseconds. */
export const ROUND_FAILED_MS = 1_000;

/** A pool's usage object is written at most so often while little changes: milliseconds (allocation rule 11). */
export const USAGE_WRITE_MS = 10_000;

/** A usage object is written sooner than after USAGE_WRITE_MS when this share of the pool's addresses has become used or free since. */
export const USAGE_CHANGE_SHARE = 0.05;

/** A pool's usage object is never written more often than this: milliseconds. */
export const USAGE_MIN_MS = 1_000;

/** `status.used` of an IPPool follows after this when it is off by USAGE_CHANGE_SHARE of the pool: milliseconds. All agents watch the pools. */
export const POOL_COUNTS_MS = 60_000;

/** `status.used` of an IPPool follows after this when it is off by less: milliseconds. */
export const POOL_COUNTS_SLOW_MS = 600_000;

/** How often all usage objects are read, to find what somebody else has done to them: milliseconds. */
export const USAGE_RELOAD_MS = 600_000;

/** Usage objects on one page of a list: each may have 90 KB. */
export const USAGE_PAGE = 100;

/** How long after a change the networks of the cluster are looked at, so that several changes are one: milliseconds. */
export const NETWORKS_DELAY_MS = 200;

/** How often the networks of the cluster are looked at while a source has not been read: milliseconds. */
export const NETWORKS_LOOK_MS = 5_000;

/** Most places that a Coordinator's `status.reason` names for one key. */
export const MAX_NAMED_PLACES = 5;

/** Longest part of a Coordinator's `status.reason`, of which there are two: characters. */
export const MAX_FINDING_LENGTH = 480;

/** How often the collection looks whether something is due: milliseconds. Settings of `garbageCollection` hold from the next look on. */
export const COLLECTION_TICK_MS = 1_000;

/** How long one question of the collection is tried: milliseconds. Nobody waits for it, and the next look asks again. */
export const COLLECTION_PATIENCE_MS = 3_000;

/** After a look in vain, or one for which the API server had no answer, the next one comes no sooner than this: milliseconds. */
export const COLLECTION_RETRY_MS = 10_000;

/** Allocations that are looked at at once. */
export const COLLECTIONS_AT_ONCE = 4;

/** Allocations on one page of a sweep: half a kilobyte each. */
export const COLLECTION_PAGE = 500;

/** Pods on one page when those of a node are listed: some 10 KB each. */
export const COLLECTION_POD_PAGE = 100;

/** Nodes that are ready of which a sweep compares the allocations with the pods. The next sweep goes on with the next ones: their agents do the same much more often. */
export const READY_NODES_PER_SWEEP = 50;

/** The first pause before the addresses of a node that has just gone are looked at again: milliseconds. Each pause is twice the one before. */
export const NODE_LOOK_FIRST_MS = 1_000;

/** Where that pause stops growing, and from where on the sweeps do: milliseconds. */
export const NODE_LOOK_MAX_MS = 64_000;

/** Most addresses that one event of the collection names. */
export const MAX_NAMED_ADDRESSES = 8;

/** How long the parts may take to end after leading did until the process says of itself that it is stuck: milliseconds. Whoever watches it starts it anew. */
export const CLOSE_PATIENCE_MS = 60_000;

/** How long after a pool's deletion was seen its finalizer stays at least: milliseconds. Agents hear of the deletion meanwhile. */
export const POOL_LEAVING_MS = 2_000;

/** How often a pool is looked at that is being deleted, if no event says that its last address is free: milliseconds. */
export const POOL_LEAVING_LOOK_MS = 30_000;

/** Between two rounds that judge all pools, subnets and reserved addresses: milliseconds at least. */
export const CONDITIONS_REST_MS = 1_000;

/** That rest is also so many times as long as the round took: a twentieth of a processor at most. */
export const CONDITIONS_REST_FACTOR = 20;

/** Between two rounds that judge whether generated pools have what is wanted of them: milliseconds at least. Pods wait for the answer. */
export const SUPPLY_REST_MS = 100;

/** A condition of which only the message changes is written at most so often: milliseconds. All agents watch the pools. */
export const CONDITION_MESSAGE_MS = 60_000;

/** How long after a change of its allocations the status of an IPAMClaim is written, so that both families are one write: milliseconds. */
export const CLAIM_STATUS_REST_MS = 200;

/** Most examples that a message names: addresses, pools, pods. */
export const MAX_EXAMPLES = 3;

/** How long a generated pool must have had more addresses than are wanted before it gives them back, unless another one lacks some: milliseconds. */
export const SHRINK_AFTER_MS = 5_000;

/** Between two rounds that divide the Subnets: milliseconds at least, and as long as planning took. */
export const SUBNETS_REST_MS = 10;

/** Networks whose Subnets are divided at once. */
export const NETWORKS_AT_ONCE = 4;

/** Generated pools of a network that are written at once. */
export const POOL_WRITES_AT_ONCE = 8;

/** A workload that wants nothing while a pool of its is there is asked for again after this, if nobody could be asked, or workloads have changed: milliseconds. */
export const FATE_AGAIN_MS = 5_000;

/** After this a write to a generated pool that the API server has refused is tried again if nothing changes: milliseconds. */
export const REFUSED_WRITE_MS = 5_000;

/** Between two looks at which namespaces have as many addresses as they may have: milliseconds. So long, and the way of two watches, a namespace may go beyond. */
export const SHARES_REST_MS = 2_000;
