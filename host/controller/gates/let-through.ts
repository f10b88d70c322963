/**
 * The pods that were let through and have no address yet: they count in the pools that they were let through for. In
 * memory; the condition of a pod without a node tells the next controller.
 */
import type { CachedAllocation } from "../cached-allocation.ts";
import { hashUid } from "../cached-allocation.ts";

/** Time after which a pod is asked for that has no address yet, and between two questions: milliseconds. */
const ASK_MS = 10_000;

export interface LetThrough {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

interface Entry extends LetThrough {
  /** Of the addresses that it still has to get. */
  readonly pools: string[];
  askMs: number;
}

export class LetThroughPods {
  /** By the pod's UID. */
  readonly #entries = new Map<string, Entry>();
  /** UIDs by `namespace/name`. */
  readonly #uids = new Map<string, string>();

  has(uid: string): boolean {
    return this.#entries.has(uid);
  }

  /** Number of addresses of the pool that such pods wait for. */
  waitingFor(pool: string): number {
    let count = 0;
    for (const { pools } of this.#entries.values()) for (const each of pools) if (each === pool) count++;
    return count;
  }

  add(pod: LetThrough, pools: readonly string[], nowMs: number): void {
    if (pools.length === 0) return;
    this.#entries.set(pod.uid, { ...pod, pools: [...pools], askMs: nowMs + ASK_MS });
    this.#uids.set(keyOf(pod), pod.uid);
  }

  remove({ uid, ...pod }: LetThrough): void {
    this.#entries.delete(uid);
    if (this.#uids.get(keyOf(pod)) === uid) this.#uids.delete(keyOf(pod));
  }

  /** Takes a new or changed allocation: what its pod has it does not wait for. */
  gave({ spec }: CachedAllocation): void {
    for (const { namespace, pod: name, uidHash } of spec.holders) {
      const entry = this.#entries.get(this.#uids.get(keyOf({ namespace, name })) ?? "");
      if (entry === undefined || hashUid(entry.uid) !== uidHash) continue;
      // It may have found room in another pool.
      const at = Math.max(0, entry.pools.indexOf(spec.pool));
      entry.pools.splice(at, 1);
      if (entry.pools.length === 0) this.remove(entry);
    }
  }

  /** Returns those that may be gone. They are returned again after a while. */
  takeDue(nowMs: number): LetThrough[] {
    const due = [...this.#entries.values()].filter(({ askMs }) => askMs <= nowMs);
    for (const entry of due) entry.askMs = nowMs + ASK_MS;
    return due;
  }

  /** When the next is due: milliseconds from now; undefined if there is none. */
  dueIn(nowMs: number): number | undefined {
    const first = Math.min(...[...this.#entries.values()].map(({ askMs }) => askMs));
    return Number.isFinite(first) ? Math.max(0, first - nowMs) : undefined;
  }
}

function keyOf({ namespace, name }: Pick<LetThrough, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}
