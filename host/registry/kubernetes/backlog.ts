/**
 * Addresses whose objects are not yet what their rows say: when each is tried again.
 */
import type { Ip } from "../../net/ip.ts";

/** The first pause before what failed for an address is tried again: milliseconds. Each pause is twice the one before, less a random part. @limit */
export const RETRY_FIRST_MS = 1_000;

/** Where that pause stops growing: milliseconds. After an outage a full pool has its released addresses back within this time. @limit */
export const RETRY_MAX_MS = 5_000;

export interface Place {
  readonly space: string;
  readonly ip: Ip;
}

interface Entry {
  readonly place: Place;
  readonly failures: number;
  readonly dueMs: number;
}

export class Backlog {
  readonly #entries = new Map<string, Entry>();
  /** In [0, 1): spreads the pauses. */
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** To be looked at now, unless it waits after a failure. */
  add(name: string, place: Place): void {
    if (!this.#entries.has(name)) this.#entries.set(name, { place, failures: 0, dueMs: 0 });
  }

  /** To be looked at again then, without having failed. */
  postpone(name: string, place: Place, dueMs: number): void {
    this.#entries.set(name, { place, failures: 0, dueMs });
  }

  fail(name: string, place: Place, nowMs: number): void {
    const failures = (this.#entries.get(name)?.failures ?? 0) + 1;
    const limitMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (failures - 1));
    this.#entries.set(name, { place, failures, dueMs: nowMs + limitMs * (0.5 + this.#random() / 2) });
  }

  done(name: string): void {
    this.#entries.delete(name);
  }

  /** Whether it failed, and its time to be tried again has not come. */
  isWaiting(name: string, nowMs: number): boolean {
    return (this.#entries.get(name)?.dueMs ?? 0) > nowMs;
  }

  due(nowMs: number): readonly Place[] {
    return [...this.#entries.values()].filter(({ dueMs }) => dueMs <= nowMs).map(({ place }) => place);
  }
}
