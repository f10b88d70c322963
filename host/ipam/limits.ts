/**
 * The limits of choosing an address, each explained in docs/limits.md.
 * Effects: none.
 */

/** How often one ADD goes on to another address because somebody had the one before. */
export const MAX_CLAIM_ATTEMPTS = 64;

/** A released address is never handed to another pod sooner than this: milliseconds (allocation rules, "Cooling"). */
export const MIN_COOLING_MS = 2_000;

/** Among how many of the longest released addresses a take-over chooses. */
export const TAKE_OVER_CHOICES = 8;

/** Addresses claimed for a NIC that was never attached are freed after this: milliseconds (allocation rule 17). */
export const UNATTACHED_MS = 120_000;

/** A quarantined address is asked again after this, and then each time after as long as it has been in quarantine: milliseconds. */
export const QUARANTINE_FIRST_PROBE_MS = 5_000;

/** A quarantined address is asked at least this often: milliseconds. */
export const QUARANTINE_PROBE_MAX_MS = 300_000;

/** After so long in quarantine an address may be handed out when nothing else is free, and is asked before it is used: milliseconds. */
export const QUARANTINE_MAX_MS = 3_600_000;

/** A machine that answers for so many addresses of one pool is taken for proxy ARP, and nothing is quarantined for it. */
export const PROXY_ARP_ADDRESSES = 3;

/** Most machines that are taken for proxy ARP at one time; the one that answered longest ago is forgotten first. Anybody on the segment can make up MACs. */
export const MAX_PROXY_ARP_SUSPECTS = 32;

/** How long a machine is taken for proxy ARP after it answered last: milliseconds. */
export const PROXY_ARP_MEMORY_MS = 3_600_000;

/** Most addresses that one ADD with `onConflict: next` asks for, before it ends like one with `fail`. */
export const MAX_CONFLICT_CANDIDATES = 8;

/** After so many addresses in a row that others had, one asks what is in use in a small pool (allocation rule 11). */
export const SURVEY_MISSES = 2;

/** Pools of up to so many addresses are small in that sense; for larger ones the answer is long, and a miss says little. */
export const SURVEY_POOL_ADDRESSES = 4_096;

/**
 * After so many the same is asked for a larger pool, counted from what its usage object told, which is asked for after SURVEY_MISSES: one that is
 * half full is hardly ever asked for, one that is nearly full is when nobody counts along.
 */
export const SURVEY_MISSES_LARGE = 8;

/** How long an ADD that found nothing waits for other nodes to show addresses that cool there: milliseconds (allocation rule 10). */
export const WANTED_WAIT_MS = 2_000;

/** How often it looks for them meanwhile: milliseconds. */
export const WANTED_LOOK_MS = 400;

/** How long an ADD waits for the agent of another node to take the address off the NIC of an earlier pod of the same member: milliseconds (allocation rule 8). */
export const HAND_OVER_WAIT_MS = 5_000;

/** Most NICs of one pod for which addresses are claimed ahead; a pod that announces more is left to its ADDs. */
export const MAX_PREFETCHED_NICS = 32;

/** Most candidate pools that a refusal names one by one to the pod; of the others it counts the reasons. */
export const MAX_NAMED_POOLS = 8;

/** Most candidate pools that the node's log names one by one for a refusal. `berthctl explain` names all. */
export const MAX_LOGGED_POOLS = 32;

/** Most different reasons that a refusal counts; pools with others are counted together. */
export const MAX_COUNTED_REASONS = 8;

/** Most lines of a refusal's `details`; with the number of those left out. */
export const MAX_DETAIL_LINES = 40;

/** Most nodes, namespaces or networks of a pool that the reason of a refusal lists. */
export const MAX_SHOWN_NAMES = 8;
