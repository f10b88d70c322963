/** The addresses whose objects do not match their rows yet, and the time of each next attempt. */
import type { AddressKey } from "./known-object.ts";

/** First pause before a failed sync is repeated; each next one is twice as long, less a random part: milliseconds. */
export const RETRY_FIRST_MS = 1_000;

/** Longest such pause: milliseconds. After an outage a full pool has released addresses back within it. */
export const RETRY_MAX_MS = 5_000;

interface BacklogEntry {
  readonly address: AddressKey;
  readonly failures: number;
  readonly dueMs: number;
}

export class Backlog {
  readonly #entries = new Map<string, BacklogEntry>();
  /** In [0, 1): spreads the pauses. */
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The address is due now, unless it waits after a failure. */
  add(name: string, address: AddressKey): void {
    if (!this.#entries.has(name)) this.#entries.set(name, { address, failures: 0, dueMs: 0 });
  }

  /** The address is due later, although it has not failed. */
  postpone(name: string, address: AddressKey, dueMs: number): void {
    this.#entries.set(name, { address, failures: 0, dueMs });
  }

  /** `restMs`: the API server has refused it, and it is sent no earlier. */
  fail(name: string, address: AddressKey, nowMs: number, restMs = 0): void {
    const failures = (this.#entries.get(name)?.failures ?? 0) + 1;
    const limitMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (failures - 1));
    this.#entries.set(name, {
      address,
      failures,
      dueMs: nowMs + Math.max(restMs, limitMs * (0.5 + this.#random() / 2)),
    });
  }

  /** Returns how often the sync of the address has failed in succession. */
  failures(name: string): number {
    return this.#entries.get(name)?.failures ?? 0;
  }

  done(name: string): void {
    this.#entries.delete(name);
  }

  /** Returns whether the address is in the backlog and not yet due. */
  isWaiting(name: string, nowMs: number): boolean {
    return (this.#entries.get(name)?.dueMs ?? 0) > nowMs;
  }

  due(nowMs: number): readonly AddressKey[] {
    return [...this.#entries.values()].filter(({ dueMs }) => dueMs <= nowMs).map(({ address }) => address);
  }
}
