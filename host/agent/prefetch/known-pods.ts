/**
 * What the prefetch knows of each pod: what was claimed for it, and which of its ADDs have come.
 * Owned by ../prefetch.ts.
 */
import type { Allocation } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import type { PrefetchJob } from "./job.ts";

/** Most pods that are remembered because their ADD came before the watch showed them. @limit */
export const MAX_UNSEEN_PODS = 1_024;

export interface KnownPod {
  /** `namespace/name`; undefined: an ADD came, and the watch has not shown the pod. */
  place?: string;
  /** It is expected; what to claim will be decided when all that is needed is known. */
  pending?: Pod | undefined;
  /** What to claim ahead was decided: a pod has one try. */
  isPlanned: boolean;
  /** Its ADDs are none that a claim ahead could have served. */
  isLeft: boolean;
  /** Those that are not over. */
  readonly jobs: Set<PrefetchJob>;
  /** Claimed ahead and neither used nor given back, by interface. */
  readonly held: Map<string, readonly Allocation[]>;
  /** NICs whose ADD has come. */
  readonly attended: Set<string>;
}

export class KnownPods {
  readonly #byOwner = new Map<string, KnownPod>();
  /** `namespace/name` → owner. */
  readonly #owners = new Map<string, string>();
  /** Owners for whom an ADD came and no pod was seen, the oldest first. */
  readonly #unseen = new Set<string>();

  find(owner: string): KnownPod | undefined {
    return this.#byOwner.get(owner);
  }

  /** With their owners. */
  all(): IterableIterator<[string, KnownPod]> {
    return this.#byOwner.entries();
  }

  /** Who else was last seen under the name: that pod is gone. */
  findDisplaced(owner: string, place: string): string | undefined {
    const before = this.#owners.get(place);
    return before === owner ? undefined : before;
  }

  /** The watch shows the pod. */
  see(owner: string, place: string): KnownPod {
    this.#owners.set(place, owner);
    this.#unseen.delete(owner);
    const known = this.#byOwner.get(owner) ?? this.#create(owner);
    known.place = place;
    return known;
  }

  /** An ADD of the pod came. It may never be seen, so only MAX_UNSEEN_PODS are remembered. */
  meet(owner: string): KnownPod {
    const known = this.#byOwner.get(owner);
    if (known !== undefined) return known;
    this.#unseen.add(owner);
    const [oldest] = this.#unseen;
    if (this.#unseen.size > MAX_UNSEEN_PODS && oldest !== undefined) this.remove(oldest);
    return this.#create(owner);
  }

  remove(owner: string): KnownPod | undefined {
    const known = this.#byOwner.get(owner);
    this.#byOwner.delete(owner);
    this.#unseen.delete(owner);
    if (known?.place !== undefined && this.#owners.get(known.place) === owner) this.#owners.delete(known.place);
    return known;
  }

  #create(owner: string): KnownPod {
    const created = { isPlanned: false, isLeft: false, jobs: new Set<PrefetchJob>(), held: new Map(), attended: new Set<string>() }; // biome-ignore format: one thought
    this.#byOwner.set(owner, created);
    return created;
  }
}
