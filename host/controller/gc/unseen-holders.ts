/**
 * Last holders of retained addresses that never were pods: an agent's token alone has made them up. A pod may have
 * existed before this process watched pods, so a holder counts as made up only if no record named it then, and pods
 * have been watched without a gap since, up to the record's last write (docs/develop/security.md).
 */
import type { IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { hasNamedPods } from "../../resources/member.ts";
import type { WatchedPods } from "../types.ts";

/** Kinds whose pods the watch recognises. */
const isWatched = (kind: string): boolean =>
  hasNamedPods(kind) || kind === "VirtualMachine" || kind === "VirtualMachineInstance";

export class UnseenHolders {
  readonly #pods: WatchedPods;
  /** Pods that records named at the first sweep of the period: they may have existed before it. */
  #known: ReadonlySet<string> = new Set();
  #period: number | undefined;

  constructor(pods: WatchedPods) {
    this.#pods = pods;
  }

  /** Starts a sweep. Returns the function that takes its records, and the one that ends it. */
  beginSweep(): { readonly add: (object: IpAllocation) => void; readonly end: () => void } {
    const { period } = this.#pods;
    const known = new Set<string>();
    return {
      add: ({ spec }) => {
        if (this.#period === period || spec.workload === undefined) return;
        for (const { podUid } of holdersOf(spec)) known.add(podUid);
      },
      end: () => {
        if (this.#period === period) return;
        this.#period = period;
        this.#known = known;
      },
    };
  }

  /** Returns whether the address is retained for a member whose pods never had it. */
  isUnseen({ spec: { state, lastHolder, workload }, resourceVersion }: IpAllocation): boolean {
    const { period } = this.#pods;
    if (state !== "Kept" || lastHolder === undefined || !isWatched(workload?.kind ?? "")) return false;
    if (period === undefined || period !== this.#period || !this.#pods.hasReached(resourceVersion)) return false;
    return !this.#known.has(lastHolder.podUid) && !this.#pods.wasSeen(lastHolder.podUid);
  }
}

function holdersOf({ holders, lastHolder, quarantine }: IpAllocationSpec) {
  return [...holders, lastHolder, quarantine?.holder].filter((holder) => holder !== undefined);
}
