/**
 * The UIDs of all pods of StatefulSets and virtual machines that this process has watched, deleted ones too: they tell
 * whether the holder of an address can have been a pod.
 */
import { RETAIN_ANNOTATION } from "../../config/annotations.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { isVersion } from "../../kubernetes/mirror.ts";
import type { Reflector } from "../../kubernetes/reflector.ts";
import { isKubevirt } from "../../resources/workloads/virtual-machine.ts";
import type { WatchedPods } from "../types.ts";

/** Most remembered UIDs. With more, no pod counts as unseen until all pods are listed again. */
const MAX_SEEN_PODS = 100_000;

interface PodWatch extends Pick<Reflector<unknown>, "isSynced" | "problems" | "version"> {
  readonly stats: { readonly lists: number };
}

export class SeenPods implements WatchedPods {
  readonly #uids = new Set<string>();
  /** Number of the watch's lists when the set was given up. */
  #lists = 0;
  readonly #watch: () => PodWatch;

  constructor(watch: () => PodWatch) {
    this.#watch = watch;
  }

  get period(): number | undefined {
    const { isSynced, problems, stats } = this.#watch();
    return isSynced && problems.length === 0 && stats.lists > this.#lists ? stats.lists : undefined;
  }

  wasSeen(uid: string): boolean {
    return this.#uids.has(uid);
  }

  /** A watch may be late even if it is sound. All versions are of one etcd. */
  hasReached(version: string): boolean {
    const reached = this.#watch().version;
    return isVersion(version) && isVersion(reached) && BigInt(reached) >= BigInt(version);
  }

  /** Metadata of any pod. */
  note({ metadata }: KubeObject): void {
    const { uid, ownerReferences, annotations } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
    const retains = Object(annotations)[RETAIN_ANNOTATION] !== undefined;
    const isMember = Array.isArray(ownerReferences) && (retains || ownerReferences.some(isMembers));
    if (typeof uid !== "string" || !isMember) return;
    if (this.#uids.size >= MAX_SEEN_PODS) {
      this.#uids.clear();
      this.#lists = this.#watch().stats.lists;
    }
    this.#uids.add(uid);
  }
}

function isMembers(owner: { kind?: unknown; apiVersion?: unknown; controller?: unknown } | null): boolean {
  const { kind, apiVersion, controller } = owner ?? {};
  const isSet = kind === "StatefulSet" && apiVersion === "apps/v1";
  return controller === true && (isSet || (kind === "VirtualMachineInstance" && isKubevirt(String(apiVersion))));
}
