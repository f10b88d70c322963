/**
 * What became of the addresses that were claimed ahead, counted in NICs.
 * Kept by ../prefetch.ts; shown by the inspector.
 */

export interface PrefetchStats {
  /** A claim ahead was planned. */
  readonly wanted: number;
  /** Claimed ahead. */
  readonly claimed: number;
  /** Claimed ahead by an agent that ran before this one. */
  readonly found: number;
  /** ADDs that came for the first time to a NIC of a pod that had no sandbox. */
  readonly adds: number;
  /** Of these: the address was there, and the ADD took it. */
  readonly used: number;
  /** Of these: came while the claim was under way, and waited for it. */
  readonly waited: number;
  /** Of these: came before the watch had shown the pod, or the agent knew enough. The ADD claims. */
  readonly unseen: number;
  /** Nothing was claimed: an ADD of the pod came before the claim had begun. The ADD claims. */
  readonly late: number;
  /** Given back: it did not fit what the ADD asked for. */
  readonly discarded: number;
  /** Given back: the pod went without an ADD. */
  readonly returned: number;
  /** Given back: the ADD did not come within UNATTACHED_MS. */
  readonly timedOut: number;
  /** Nothing was claimed: the pod went first, or its NIC was attached before this agent started. */
  readonly withdrawn: number;
  /** Nothing was claimed: no pool fits, none has an address, no answer of the API server. The ADD tells the pod. */
  readonly failed: number;
}

export type StatsCounters = { -readonly [K in keyof PrefetchStats]: number };

export function createCounters(): StatsCounters {
  return {
    ...{ wanted: 0, claimed: 0, found: 0, adds: 0, used: 0, waited: 0, unseen: 0, late: 0 },
    ...{ discarded: 0, returned: 0, timedOut: 0, withdrawn: 0, failed: 0 },
  };
}

/** Of the first ADDs, how many found their address: 0 to 1. Undefined before the first. */
export function hitRate({ used, adds }: PrefetchStats): number | undefined {
  return adds === 0 ? undefined : used / adds;
}
