/**
 * The agent's limits, each explained in docs/limits.md.
 * Effects: none.
 */

/** Largest request body, as the shim's: bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Largest request head; the shim forwards eight variables of up to 64 KiB: bytes. */
export const MAX_HEAD_BYTES = 768 * 1024;

/** Largest manifest file, some 6,000 pools: bytes. Reading YAML takes a hundred times its size in memory; more goes into more files. */
export const MAX_MANIFEST_BYTES = 1024 * 1024;

/** Largest file of a network definition, as the shim's stdin: bytes. */
export const MAX_DEFINITION_BYTES = 1024 * 1024;

/** Most files of the CNI configuration directory, and of a network's folder in it, that are read. Each costs an ADD microseconds. */
export const MAX_DEFINITION_FILES = 256;

/** A definition changed less than this before it was read is read again for the next question: milliseconds. Time stamps of files are coarser than changes. */
export const STAMP_GRAIN_MS = 100;

/** Changes of the directory within this time are read together: milliseconds. */
export const RELOAD_DELAY_MS = 20;

/** How long a manifest file that has become empty keeps its resources: milliseconds. Editors that rewrite a file in place empty it first. */
export const EMPTY_FILE_MS = 1_000;

/** How often the agent looks whether the watched directory was replaced, and into the spool: milliseconds. */
export const RECHECK_MS = 2_000;

/** How often the agent looks whether its registry can record what it could not: milliseconds. */
export const REGISTRY_LOOK_MS = 1_000;

/** How often what has cooled is freed: milliseconds. */
export const EXPIRE_INTERVAL_MS = 1_000;

/** How long a second agent waits for the first one's state directory unless told otherwise: milliseconds. */
export const LOCK_WAIT_MS = 30_000;

/** How long a stopping agent lets requests finish: milliseconds. */
export const STOP_GRACE_MS = 5_000;

/** How often a starting agent looks whether another one still serves its socket: milliseconds. */
export const SOCKET_RETRY_MS = 100;

/** How long connecting to a socket may take before its process counts as one that serves: milliseconds. */
export const SOCKET_ANSWER_MS = 1_000;

/** How often the agent looks whether its socket and its lock are still under their names: milliseconds. */
export const SOCKET_RECHECK_MS = 1_000;

/** How often the agent looks whether it is ready, to say so in its log when that has changed: milliseconds. */
export const READINESS_LOOK_MS = 1_000;

/** Most allocations on one page of GET /v1/allocations. */
export const MAX_PAGE = 1_000;

/** Largest log file that a network definition names: bytes. A full one becomes `.1`, which replaces the one before. Definitions are written by tenants, the disk is the node's. */
export const LOG_FILE_BYTES = 8 * 1024 * 1024;

/** Most log files that network definitions name while an agent runs, beside the one that holds without a name. */
export const MAX_LOG_FILES = 16;

/** Most that waits to be written into one log file: UTF-16 units. What comes while so much waits is lost, and counted. */
export const MAX_LOG_BACKLOG = 1024 * 1024;

/** Longest line of such a log: UTF-16 units. In a longer one the texts are cut. */
export const MAX_LOG_LINE = 16 * 1024;

/** Longest text in a line that is too long: UTF-16 units. */
export const MAX_LOG_TEXT = 1024;

/** How often a log file that is written is looked for under its name, where logrotate may have put another: milliseconds. */
export const LOG_RECHECK_MS = 1_000;

/** How long silence must last before an address leaves quarantine: milliseconds. Nobody waits for it. */
export const QUARANTINE_WINDOW_MS = 1_000;

/** Most quarantined addresses that are asked for at once; each has sockets of its own. */
export const PROBES_AT_ONCE = 32;

/** Most pods whose addresses are claimed ahead of their ADD at once. What waits for its turn costs nothing; an ADD that comes first claims by itself. */
export const PREFETCHES_AT_ONCE = 16;

/** How long a claim ahead of its ADD may last, and so how long an ADD waits for it: milliseconds. */
export const PREFETCH_PATIENCE_MS = 10_000;

/** Most pods that are remembered because their ADD came before the watch showed them. */
export const MAX_UNSEEN_PODS = 1_024;

/** How often the collector looks whether a sweep is due: milliseconds. Settings of `garbageCollection` hold from the next look on. */
export const COLLECTOR_TICK_MS = 1_000;

/** After a sweep that could not ask the API server the next one comes no sooner than this: milliseconds. */
export const SWEEP_RETRY_MS = 10_000;

/** How long one question of a sweep is tried: milliseconds. Nobody waits for it, and the next sweep asks again. */
export const SWEEP_PATIENCE_MS = 3_000;

/** Rows of the journal that a sweep reads at once. */
export const SWEEP_PAGE = 500;

/** A sweep that misses more pods than this reads all of the node in one LIST instead of one by one. */
export const MAX_SINGLE_POD_READS = 16;

/** Pods on one page of such a LIST: some 10 KB each. */
export const POD_PAGE = 100;

/** How long an ADD waits for the first lists of the API server, before it is refused with code 50: milliseconds. */
export const SYNC_WAIT_MS = 20_000;

/** How long an ADD that no pool may serve waits for one that was made just before it: milliseconds. */
export const POOL_GRACE_MS = 300;

/** How long an ADD waits for addresses of a generated pool, from when it found none: milliseconds. Then its pod is refused with the reason, and comes again. */
export const GENERATED_WAIT_MS = 5_000;

/** How long such an ADD tries to read the Subnet, to tell what is in the way: milliseconds. */
export const SUBNET_LOOK_MS = 1_000;

/** Most ReplicaSets and Jobs of which an agent remembers what they belong to. */
export const MAX_KNOWN_OWNERS = 1_024;

/** How long an ADD tries to read its pod from the API server, when the watch does not know it: milliseconds. */
export const POD_READ_PATIENCE_MS = 10_000;

/** How often an agent compares the objects that name it with its journal: milliseconds, a quarter more or less. The watch tells of changes meanwhile. */
export const RECONCILE_INTERVAL_MS = 180_000;

/** How often it looks whether that is due: milliseconds. */
export const RECONCILE_TICK_MS = 1_000;

/** Objects that the journal lacks and that are asked for at once. */
export const ADOPTIONS_AT_ONCE = 8;

/** How long `berthctl explain pool` tries to read each of the objects behind its answer: milliseconds. */
export const EXPLAIN_PATIENCE_MS = 2_000;

/** Most ranges, and most other pools, that one line of `berthctl explain pool` shows. */
export const MAX_EXPLAINED_NAMES = 5;

/** Most networks that one line of `berthctl explain` shows. */
export const MAX_SHOWN_NETWORKS = 8;
