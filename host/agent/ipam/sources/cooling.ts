/**
 * What one search may take from others when nothing is free: an address that cools, and at the very end one in quarantine.
 * Effects: reads the registry; waits up to MIN_COOLING_MS, in a cluster up to WANTED_WAIT_MS more; what it chose is marked in the pool cache until {@link TakeOvers.end}.
 */
import { hashText } from "../../../ipam/pick.ts";
import type { AddressSpan, Allocation } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import type { AllocateDeps } from "../allocate.ts";

/** A released address is never handed to another pod sooner than this: milliseconds (allocation rules, "Cooling"). @limit */
export const MIN_COOLING_MS = 2_000;

/** Among how many of the longest released addresses a take-over chooses. @limit */
export const TAKE_OVER_CHOICES = 8;

/** After so long in quarantine an address may be handed out when nothing else is free, and is asked before it is used: milliseconds. @limit */
export const QUARANTINE_MAX_MS = 3_600_000;

/** How long an ADD that found nothing waits for other nodes to show addresses that cool there: milliseconds (allocation rule 10). @limit */
export const WANTED_WAIT_MS = 2_000;

/** How often it looks for them meanwhile: milliseconds. @limit */
export const WANTED_LOOK_MS = 400;

/** Whether an address is spoken for within the search itself. */
export type IsSpoken = (allocation: Allocation) => boolean;

export class TakeOvers {
  readonly #tools: AllocateDeps;
  readonly #owner: string;
  readonly #signal: AbortSignal;
  /** Until when other nodes may still come forward with something. */
  readonly #showUntilMs: number;
  readonly #waitUntilMs: number;
  readonly #chosen: number[] = [];

  constructor(tools: AllocateDeps, { owner, signal }: { owner: string; signal: AbortSignal }) {
    this.#tools = tools;
    this.#owner = owner;
    this.#signal = signal;
    const showingMs = tools.hasNeighbours === true ? WANTED_WAIT_MS : 0;
    this.#showUntilMs = tools.nowMs() + showingMs;
    this.#waitUntilMs = this.#showUntilMs + MIN_COOLING_MS;
  }

  end(): void {
    for (const version of this.#chosen) this.#tools.poolCache.takeOvers.delete(version);
  }

  /** One of those that have cooled longest; "again" when it has waited for one, as others may have done; undefined when none cools. */
  async chooseCooling(pool: IpPool, isSpoken: IsSpoken): Promise<Allocation | "again" | undefined> {
    const { poolCache, registry } = this.#tools;
    const most = poolCache.takeOvers.size + TAKE_OVER_CHOICES * 8;
    const cooling = await registry.findCooling(spansOf(pool), most, pool.name);
    const released = this.#usable(cooling, pool, isSpoken);
    const chosen = this.#choose(released.filter((each) => this.ageOf(each) >= MIN_COOLING_MS));
    if (chosen !== undefined) return chosen;
    const [oldest] = released;
    const nowMs = this.#tools.nowMs();
    // For a generated pool the ADD waits by events.
    if (oldest === undefined && nowMs < this.#showUntilMs && pool.spec.generated === undefined) {
      await this.#tools.sleep(Math.min(WANTED_LOOK_MS, this.#showUntilMs - nowMs), this.#signal);
      return "again";
    }
    if (oldest === undefined || nowMs >= this.#waitUntilMs) return undefined;
    await this.waitFor(oldest);
    return "again";
  }

  /** Allocation rule 12: what has been in quarantine for QUARANTINE_MAX_MS. It must be asked before it is used, so only if that `canProbe`. */
  async chooseQuarantined(pool: IpPool, isSpoken: IsSpoken, canProbe: () => boolean): Promise<Allocation | undefined> {
    const { poolCache, registry, nowMs } = this.#tools;
    const found = await registry.findQuarantined({
      spans: spansOf(pool),
      untilMs: nowMs() - QUARANTINE_MAX_MS,
      limit: poolCache.takeOvers.size + TAKE_OVER_CHOICES * 8,
    });
    const usable = this.#usable(found, pool, isSpoken);
    return usable.length > 0 && canProbe() ? this.#choose(usable) : undefined;
  }

  ageOf({ sinceMs }: Allocation): number {
    return this.#tools.nowMs() - sinceMs;
  }

  /** Waits until the released address is old enough; not past the search's own patience. */
  async waitFor(released: Allocation): Promise<void> {
    const ripeAtMs = released.sinceMs + MIN_COOLING_MS;
    const untilMs = Math.min(ripeAtMs, this.#waitUntilMs);
    const waitMs = untilMs - this.#tools.nowMs();
    if (waitMs > 0) await this.#tools.sleep(waitMs, this.#signal);
  }

  #usable(found: readonly Allocation[], pool: IpPool, isSpoken: IsSpoken): Allocation[] {
    const { poolCache } = this.#tools;
    // What a workload's pod of this node has just released is about to be kept for the next one.
    const isRetained = ({ version, workload }: Allocation): boolean => version >= 0 && workload !== undefined;
    const isFree = (each: Allocation): boolean =>
      !poolCache.takeOvers.has(each.version) && !isSpoken(each) && !isRetained(each);
    return found.filter((each) => poolCache.contains(pool.name, each.ip) && isFree(each));
  }

  /** Among the first few, so that searches that run at once do not all want one. */
  #choose(ripe: readonly Allocation[]): Allocation | undefined {
    const choices = ripe.slice(0, TAKE_OVER_CHOICES);
    const chosen = choices[hashText(this.#owner) % Math.max(1, choices.length)];
    if (chosen === undefined) return undefined;
    this.#chosen.push(chosen.version);
    this.#tools.poolCache.takeOvers.add(chosen.version);
    return chosen;
  }
}

function spansOf({ spec: { addressSpace: space, family, ranges } }: IpPool): AddressSpan[] {
  return ranges.map(({ first, last }) => ({ space, family, first: first.value, last: last.value }));
}
