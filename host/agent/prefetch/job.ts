/**
 * One claim ahead, from its turn in the queue to its end.
 * Owned by ../prefetch.ts.
 */
import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import type { Pod } from "../../resources/pod.ts";

export class PrefetchJob {
  readonly owner: string;
  readonly pod: Pod;
  /** Claimed together; at least one. */
  readonly nics: readonly AnnouncedNic[];
  readonly #unwanted = new AbortController();
  readonly #over = Promise.withResolvers<void>();

  constructor(owner: string, pod: Pod, nics: readonly AnnouncedNic[]) {
    this.owner = owner;
    this.pod = pod;
    this.nics = nics;
  }

  /** Aborts when nobody wants the addresses any more. */
  get unwanted(): AbortSignal {
    return this.#unwanted.signal;
  }

  includes(ifName: string): boolean {
    return this.nics.some((nic) => nic.ifName === ifName);
  }

  end(): void {
    this.#over.resolve();
  }

  abort(reason: string): void {
    this.#unwanted.abort(new Error(`The addresses are not wanted any more: ${reason}`));
  }

  /** Rejects with the signal's reason when that comes first. */
  async ended(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const given = Promise.withResolvers<never>();
    const giveUp = (): void => given.reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      await Promise.race([this.#over.promise, given.promise]);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }
}
