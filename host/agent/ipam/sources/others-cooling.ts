/**
 * Addresses that cool on other nodes and are not published yet: their nodes are asked to publish them
 * (cooling-visibility), and the search waits for that a moment.
 */
import type { IpPool } from "../../../resources/ip-pool.ts";
import { OTHERS_COOLING_WAIT_MS, type Timeout } from "../../request/add-deadline.ts";
import type { AddressSource, Search, Setback } from "./source.ts";

/** Interval at which an ADD looks for addresses that other nodes publish: milliseconds. */
export const OTHERS_COOLING_POLL_MS = 400;

export class OthersCooling implements AddressSource {
  readonly #search: Search;
  readonly #patience: Timeout;
  /** The pool of which the search has found no cooling address. */
  #expected: IpPool | undefined;

  constructor(search: Search) {
    this.#search = search;
    this.#patience = search.demand.deadline.begin(search.cluster === undefined ? 0 : OTHERS_COOLING_WAIT_MS);
  }

  /**
   * Returns whether {@link next} is to wait for addresses of the pool that other nodes publish. For a generated pool
   * the ADD waits by pool changes instead.
   */
  expect(pool: IpPool): boolean {
    this.#expected = !this.#patience.isOver && pool.spec.generated === undefined ? pool : undefined;
    return this.#expected !== undefined;
  }

  async next(setback: Setback): Promise<boolean> {
    if (setback.kind !== "short" || this.#expected === undefined) return false;
    this.#expected = undefined;
    await this.#search.demand.deadline.sleep(Math.max(0, Math.min(OTHERS_COOLING_POLL_MS, this.#patience.leftMs)));
    return true;
  }
}
