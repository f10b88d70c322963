/** The state that the prefetcher holds of each pod: the claims for it, and its ADDs so far. */
import type { AnnouncedNic } from "../../../ipam/plan-prefetch.ts";
import { untilAborted } from "../../../lib/abort.ts";
import { BoundedMap } from "../../../lib/bounded-map.ts";
import type { Allocation } from "../../../registry/registry.ts";
import type { Pod } from "../../../resources/pod.ts";

/** Most remembered pods whose ADD came before the watch showed them. */
export const MAX_UNSEEN_PODS = 1_024;

/** One claim ahead, queued or running. */
export class PrefetchJob {
  readonly owner: string;
  readonly pod: Pod;
  /** Claimed together; at least one. */
  readonly nics: readonly AnnouncedNic[];
  readonly #unwanted = new AbortController();
  /** Aborts when the addresses are not needed any more. */
  readonly unwanted = this.#unwanted.signal;
  readonly #ended = Promise.withResolvers<void>();

  constructor(owner: string, pod: Pod, nics: readonly AnnouncedNic[]) {
    this.owner = owner;
    this.pod = pod;
    this.nics = nics;
  }

  includes(ifName: string): boolean {
    return this.nics.some((nic) => nic.ifName === ifName);
  }

  end(): void {
    this.#ended.resolve();
  }

  abort(reason: string): void {
    this.#unwanted.abort(new Error(`The addresses are not needed any more: ${reason}`));
  }

  /** Rejects with the signal's reason if that aborts first. */
  ended(signal: AbortSignal): Promise<void> {
    return untilAborted(this.#ended.promise, signal);
  }
}

export interface KnownPod {
  /** `namespace/name`; undefined while an ADD has come and the watch has not shown the pod. */
  key?: string;
  /** An ADD is expected; its claims are decided when the prefetcher is ready. */
  pending?: Pod | undefined;
  /** Whether claims ahead were decided: a pod has one try. */
  isPlanned: boolean;
  /** Whether its ADDs are none that a claim ahead could have served. */
  isSkipped: boolean;
  /** Jobs that have not ended. */
  readonly jobs: Set<PrefetchJob>;
  /** Claimed ahead and neither used nor released, by interface. */
  readonly held: Map<string, readonly Allocation[]>;
  /** Interfaces whose ADD has come. */
  readonly attended: Set<string>;
}

export class KnownPods {
  readonly #byOwner = new Map<string, KnownPod>();
  /** `namespace/name` → owner. */
  readonly #owners = new Map<string, string>();
  /** Pods whose ADD came and that the watch has not shown. */
  readonly #unseen = new BoundedMap<string, KnownPod>(MAX_UNSEEN_PODS);

  find(owner: string): KnownPod | undefined {
    return this.#byOwner.get(owner) ?? this.#unseen.get(owner);
  }

  all(): KnownPod[] {
    return [...this.#byOwner.values(), ...this.#unseen.values()];
  }

  /** Returns the owner that the watch showed last under the name, if that is another one: its pod is gone. */
  findPredecessor(owner: string, key: string): string | undefined {
    const before = this.#owners.get(key);
    return before === owner ? undefined : before;
  }

  /** The watch shows the pod. */
  addWatched(owner: string, key: string): KnownPod {
    const known = this.find(owner) ?? createKnownPod();
    this.#unseen.delete(owner);
    this.#byOwner.set(owner, known);
    this.#owners.set(key, owner);
    known.key = key;
    return known;
  }

  /** An ADD of the pod came. The watch may never show it, so only MAX_UNSEEN_PODS such pods are remembered. */
  addUnseen(owner: string): KnownPod {
    const known = createKnownPod();
    this.#unseen.set(owner, known);
    return known;
  }

  remove(owner: string): KnownPod | undefined {
    const known = this.find(owner);
    this.#byOwner.delete(owner);
    this.#unseen.delete(owner);
    if (known?.key !== undefined && this.#owners.get(known.key) === owner) this.#owners.delete(known.key);
    return known;
  }
}

function createKnownPod(): KnownPod {
  return { isPlanned: false, isSkipped: false, jobs: new Set(), held: new Map(), attended: new Set() };
}
