/** Limits how many calls are under way at once: calls for pods go first, and each lane in the order of arrival. */
import type { Lane } from "../kube-api.ts";

/** Most connections for calls; watches have their own. Eight bring as much as a server of two processors creates. */
export const MAX_CONNECTIONS = 8;

/** Most calls for pods under way at once. One fewer than there are connections, so that other calls always progress. */
export const MAX_POD_CALLS = 7;

/** Most other calls under way at once. Half of the connections stay free for pods. */
export const MAX_BACKGROUND_CALLS = 4;

const LIMITS: Readonly<Record<Lane, number>> = { pod: MAX_POD_CALLS, background: MAX_BACKGROUND_CALLS };
/** The order in which waiting calls are let through. */
const ORDER: readonly Lane[] = ["pod", "background"];

export class Lanes {
  readonly #underWay: Record<Lane, number> = { pod: 0, background: 0 };
  /** Sets keep the order of arrival, and removal is cheap. */
  readonly #waiting: Readonly<Record<Lane, Set<() => void>>> = { pod: new Set(), background: new Set() };

  get underWay(): number {
    return this.#underWay.pod + this.#underWay.background;
  }

  get waiting(): number {
    return this.#waiting.pod.size + this.#waiting.background.size;
  }

  /** Resolves when the caller may send; it must call {@link leave} afterwards. If it rejects, with the signal's reason, it must not. */
  enter(lane: Lane, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting[lane].size === 0 && this.#hasRoom(lane)) {
      this.#underWay[lane]++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting[lane].delete(go);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting[lane].add(go);
    });
  }

  leave(lane: Lane): void {
    this.#underWay[lane]--;
    for (const next of ORDER) {
      for (const go of this.#waiting[next]) {
        if (!this.#hasRoom(next)) break;
        this.#waiting[next].delete(go);
        this.#underWay[next]++;
        go();
      }
    }
  }

  #hasRoom(lane: Lane): boolean {
    return this.underWay < MAX_CONNECTIONS && this.#underWay[lane] < LIMITS[lane];
  }
}
