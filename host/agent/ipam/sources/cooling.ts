/**
 * Released addresses that still cool, of this node and as far as they are published of other nodes: taken over when
 * nothing is free, the longest released first.
 */
import { proposalOf } from "../../../ipam/pick.ts";
import type { Allocation } from "../../../registry/registry.ts";
import { MIN_COOLING_MS, OTHERS_COOLING_WAIT_MS, type Timeout } from "../../request/add-deadline.ts";
import type { OthersCooling } from "./others-cooling.ts";
import { type AddressSource, type Search, type Setback, spansOf } from "./source.ts";
import { TAKE_OVER_CHOICES, type TakeOvers } from "./take-overs.ts";

export class CoolingAddresses implements AddressSource {
  readonly #search: Search;
  readonly #takeOvers: TakeOvers;
  readonly #others: OthersCooling;
  readonly #patience: Timeout;

  constructor(search: Search, takeOvers: TakeOvers, others: OthersCooling) {
    this.#search = search;
    this.#takeOvers = takeOvers;
    this.#others = others;
    const othersMs = search.cluster === undefined ? 0 : OTHERS_COOLING_WAIT_MS;
    this.#patience = search.demand.deadline.begin(othersMs + MIN_COOLING_MS);
  }

  /** Pool by pool. One for which other nodes may still publish addresses is not passed over for the next. */
  async next(setback: Setback): Promise<boolean> {
    if (setback.kind !== "short") return false;
    const { registry, poolCache, assignments, cluster } = this.#search;
    for (const pool of setback.pools) {
      const limit = poolCache.takeOvers.size + TAKE_OVER_CHOICES * 8;
      const cooling = await registry.findCooling(spansOf(pool), limit, pool.name);
      if (cooling.length === 0) await cluster?.askForCooling(pool.name);
      const released = this.#takeOvers.usable(cooling, pool, setback.shortage.nic);
      const chosen = this.#takeOvers.choose(released.filter((each) => this.ageOf(each) >= MIN_COOLING_MS));
      if (chosen !== undefined) {
        const { ip, version: replaces } = chosen;
        const source = replaces < 0 ? "others-cooling" : "cooling";
        assignments.assign([proposalOf(pool, { ifName: setback.shortage.nic.ifName, ip, replaces, source })]);
        return true;
      }
      const [oldest] = released;
      if (oldest === undefined) {
        if (this.#others.expect(pool)) return false;
        continue;
      }
      if (this.#patience.isOver) continue;
      await this.waitFor(oldest);
      return true;
    }
    return false;
  }

  ageOf({ sinceMs }: Allocation): number {
    return this.#search.demand.deadline.nowMs() - sinceMs;
  }

  /** Waits until the released address has cooled for MIN_COOLING_MS; not past the search's patience. */
  async waitFor(released: Allocation): Promise<void> {
    const waitMs = Math.min(MIN_COOLING_MS - this.ageOf(released), this.#patience.leftMs);
    if (waitMs > 0) await this.#search.demand.deadline.sleep(waitMs);
  }
}
