/**
 * What a part derives from all allocations: first from those that are cached when it starts, in turns, then from each change. Changes that come meanwhile
 * wait until the others are taken, so that each part sees one order.
 */
import type { Change } from "../kubernetes/mirror.ts";
import { type Steps, Turns } from "../lib/turns.ts";
import type { CachedAllocation } from "./cached-allocation.ts";
import type { Cache, ControllerDeps } from "./types.ts";

type AllocationChange = Change<CachedAllocation>;

export interface FollowedAllocations {
  /**
   * Resolves when all are taken: what follows from them is incomplete before, and must not be acted on. Rejects with what `take` threw, or when leading
   * or following ends first.
   */
  readonly complete: Promise<void>;
  end(): void;
}

interface FollowDeps extends Pick<ControllerDeps, "clock" | "leading"> {
  readonly caches: { readonly allocations: Cache<CachedAllocation> };
}

/** Subscribes at once. `take` gets each cached allocation as a new one, then each change. */
export function followAllocations(
  { caches: { allocations }, clock, leading }: FollowDeps,
  take: (change: AllocationChange) => void,
): FollowedAllocations {
  const ending = new AbortController();
  const known = [...allocations.items.values()];
  const waiting: AllocationChange[] = [];
  let isComplete = false;
  function* takeAll(): Steps<void> {
    for (const value of known.splice(0)) {
      take({ kind: "set", key: value.name, value, before: undefined });
      yield;
    }
    // The list may grow at each pause.
    for (const change of waiting) {
      take(change);
      yield;
    }
    isComplete = true;
    waiting.length = 0;
  }
  const unsubscribe = allocations.subscribe((change) => {
    if (isComplete) take(change);
    else waiting.push(change);
  });
  const signal = AbortSignal.any([leading, ending.signal]);
  const complete = new Turns({ nowMs: clock.nowMs, signal }).run(takeAll());
  complete.catch(() => {});
  return {
    complete,
    end: () => {
      unsubscribe();
      ending.abort(new Error("The allocations are not followed any more"));
    },
  };
}
