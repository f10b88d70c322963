/**
 * Addresses that their owners have given up, taken over when nothing is free: those that cool, the longest released
 * first, of this node and as far as they are published of other nodes (cooling-visibility); and as the last resort,
 * for a NIC on which they can be probed, those that have been in quarantine for long (conflict).
 */
import type { NicDemand } from "../../../ipam/model.ts";
import { findWithholding, hashText, type Proposal, proposalOf } from "../../../ipam/pick.ts";
import type { Allocation } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import { MIN_COOLING_MS, OTHERS_COOLING_WAIT_MS, Timeout } from "../../request/add-deadline.ts";
import { type AddressSource, type Search, type Setback, spansOf } from "./source.ts";

/** Among how many of the longest released addresses a take-over chooses. */
export const TAKE_OVER_CHOICES = 8;

/** Interval at which an ADD looks for addresses that other nodes publish: milliseconds. */
export const OTHERS_COOLING_POLL_MS = 400;

/** Time in quarantine after which an address may be probed and handed out when nothing else is free: milliseconds. */
export const QUARANTINE_MAX_MS = 3_600_000;

type Short = Extract<Setback, { kind: "short" }>;

/** Whether it is about to be retained: a workload's pod of this node has just released it, for the next one. */
export const isRetained = ({ version, workload }: Allocation): boolean => version >= 0 && workload !== undefined;

export class ReleasedAddresses implements AddressSource {
  readonly #search: Search;
  readonly #patience: Timeout;
  /** For addresses that cool on other nodes and are not published yet. */
  readonly #othersPatience: Timeout;
  /** Versions of the addresses that this search has chosen: other ADDs of this node skip them until {@link end}. */
  readonly #chosen: number[] = [];

  constructor(search: Search) {
    const { cluster, demand } = search;
    const othersMs = cluster === undefined ? 0 : OTHERS_COOLING_WAIT_MS;
    this.#search = search;
    this.#othersPatience = new Timeout(demand.deadline.clock, othersMs);
    this.#patience = new Timeout(demand.deadline.clock, othersMs + MIN_COOLING_MS);
  }

  async next(setback: Setback): Promise<boolean> {
    return setback.kind === "short" && ((await this.#takeCooling(setback)) || this.#takeQuarantined(setback));
  }

  /** Pool by pool. One for which other nodes may still publish addresses is not passed over for the next. */
  async #takeCooling({ pools, shortage: { nic } }: Short): Promise<boolean> {
    const { registry, cluster } = this.#search;
    for (const pool of pools) {
      const cooling = await registry.findCooling(spansOf(pool), this.#limit, pool.name);
      if (cooling.length === 0) await cluster?.records.markWanted(pool.name);
      const released = this.usable(cooling, pool, nic);
      const chosen = this.choose(released.filter((each) => this.ageOf(each) >= MIN_COOLING_MS));
      if (chosen !== undefined)
        return this.#assign(pool, nic, chosen, chosen.version < 0 ? "others-cooling" : "cooling");
      const [oldest] = released;
      // For a generated pool the ADD waits by pool changes instead.
      const mayCome = oldest === undefined && !this.#othersPatience.isOver && pool.spec.generated === undefined;
      if (mayCome) await this.#sleep(Math.min(OTHERS_COOLING_POLL_MS, this.#othersPatience.leftMs));
      else if (oldest === undefined || this.#patience.isOver) continue;
      else await this.waitFor(oldest);
      return true;
    }
    return false;
  }

  async #takeQuarantined({ pools, shortage: { nic } }: Short): Promise<boolean> {
    const { registry, demand } = this.#search;
    if (nic.ifName !== demand.claimant.ifName || demand.canProbe === undefined) return false;
    const untilMs = demand.deadline.clock.nowMs() - QUARANTINE_MAX_MS;
    for (const pool of pools) {
      const found = await registry.findQuarantined({ spans: spansOf(pool), untilMs, limit: this.#limit });
      const usable = this.usable(found, pool, nic);
      const chosen = usable.length > 0 && demand.canProbe() ? this.choose(usable) : undefined;
      if (chosen !== undefined) return this.#assign(pool, nic, chosen, "quarantined");
    }
    return false;
  }

  #assign(pool: IpPool, { ifName }: NicDemand, chosen: Allocation, source: Proposal["source"] & string): true {
    const { ip, version: replaces } = chosen;
    this.#search.assignments.assign([proposalOf(pool, { ifName, ip, replaces, source })]);
    return true;
  }

  ageOf({ sinceMs }: Allocation): number {
    return this.#search.demand.deadline.clock.nowMs() - sinceMs;
  }

  /** Waits until the released address has cooled for MIN_COOLING_MS; not past the search's patience. */
  async waitFor(released: Allocation): Promise<void> {
    const waitMs = Math.min(MIN_COOLING_MS - this.ageOf(released), this.#patience.leftMs);
    if (waitMs > 0) await this.#sleep(waitMs);
  }

  #sleep(milliseconds: number): Promise<void> {
    const { clock, signal } = this.#search.demand.deadline;
    return clock.sleep(milliseconds, signal);
  }

  get #limit(): number {
    return this.#search.poolCache.takeOvers.size + TAKE_OVER_CHOICES * 8;
  }

  /** Returns the addresses that the pool can give the NIC and that neither this search nor another ADD has chosen. */
  usable(found: readonly Allocation[], pool: IpPool, nic: NicDemand): Allocation[] {
    const { poolCache, assignments } = this.#search;
    const isChosen = (each: Allocation): boolean =>
      poolCache.takeOvers.has(each.version) ||
      this.#chosen.includes(each.version) ||
      assignments.at(each) !== undefined;
    const mayHave = ({ ip }: Allocation): boolean =>
      poolCache.contains(pool.name, ip) && findWithholding(nic, pool, ip) === undefined;
    return found.filter((each) => mayHave(each) && !isChosen(each) && !isRetained(each));
  }

  /** Among the first few, so that concurrent searches do not all choose the same. */
  choose(ripe: readonly Allocation[]): Allocation | undefined {
    const { poolCache, demand, view } = this.#search;
    const choices = ripe.slice(0, TAKE_OVER_CHOICES);
    const chosen = choices[hashText(demand.claimant.owner) % Math.max(1, choices.length)];
    if (chosen === undefined) return undefined;
    this.#chosen.push(chosen.version);
    if (view === undefined) poolCache.takeOvers.add(chosen.version);
    return chosen;
  }

  end(): void {
    for (const version of this.#chosen) this.#search.poolCache.takeOvers.delete(version);
  }
}
