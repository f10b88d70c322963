/**
 * The addresses that pods are expected to take: of those that were let through and may still come, for a bounded time.
 * In memory; the pod's condition tells the next controller.
 */
import { type CachedAllocation, hashUid } from "../../host/controller/cached-allocation.ts";
import { type GatedPod, isComing } from "./gated-pod.ts";

/** Time for which a pod counts that gets no address: milliseconds. @limit */
const PROMISE_MS = 120_000;

interface Promised {
  /** Of the addresses that it still lacks. */
  readonly pools: string[];
  readonly endMs: number;
}

export class Promises {
  /** By the pod's UID. Those that have ended stay while the pod is there: it gets no other. */
  #byUid = new Map<string, Promised>();
  #nowMs = 0;

  has({ uid }: GatedPod): boolean {
    return this.#byUid.has(uid);
  }

  add({ uid }: GatedPod, pools: readonly string[]): void {
    this.#byUid.set(uid, { pools: [...pools], endMs: this.#nowMs + PROMISE_MS });
  }

  /** Takes all pods that are there, and forgets the others. Returns the pools of the addresses that are expected. */
  renew(pods: Iterable<GatedPod>, nowMs: number): string[] {
    const before = this.#byUid;
    this.#byUid = new Map();
    this.#nowMs = nowMs;
    for (const pod of pods) {
      const promised = before.get(pod.uid);
      // A gate that is still there by then could not be removed.
      const isOver = pod.hasGate && promised !== undefined && promised.endMs <= nowMs;
      if (promised !== undefined && isComing(pod) && !isOver) this.#byUid.set(pod.uid, promised);
    }
    return [...this.#byUid.values()].flatMap(({ pools, endMs }) => (endMs > nowMs ? pools : []));
  }

  /** Takes an allocation with a new holder: its pod does not wait for that address. `pods`: by `namespace/name`. */
  gave({ holders, pool }: CachedAllocation["spec"], pods: ReadonlyMap<string, GatedPod>): void {
    for (const { namespace, pod: name, uidHash } of holders) {
      const pod = pods.get(`${namespace}/${name}`);
      if (pod === undefined || hashUid(pod.uid) !== uidHash) continue;
      const { pools } = this.#byUid.get(pod.uid) ?? {};
      if (pools === undefined) this.add(pod, []);
      // It may have found room in another pool.
      else pools.splice(Math.max(0, pools.indexOf(pool)), 1);
    }
  }
}
