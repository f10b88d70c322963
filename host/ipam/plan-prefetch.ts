/** Decides for which pods and NICs addresses are claimed before their ADD (docs/develop/prefetch.md). */
import { ANNOTATION_PREFIX } from "../config/annotations.ts";
import type { IpamConf } from "../config/ipam-conf.ts";
import { CONFIG_HASH, CONFIG_MIRROR, type Pod } from "../resources/pod.ts";
import { isStaticOwner } from "./leak.ts";

/** Most NICs of one pod that are prefetched; a pod with more is left to its ADDs. */
export const MAX_PREFETCHED_NICS = 32;

/** Annotations with which the first ADD claims the addresses of all NICs. */
const ALL_NICS = ["ippools", "subnets"].map((key) => ANNOTATION_PREFIX + key);

/** A NIC as announced by the pod's annotations and the network definitions. */
export interface AnnouncedNic {
  readonly ifName: string;
  /** Name of its network, as in its ADD. */
  readonly network: string;
  /** The definition's `ipam` object; undefined if it names another plugin or none. */
  readonly ipamConf: IpamConf | undefined;
  /** The pod requests addresses by name on this NIC. */
  readonly isAsking: boolean;
}

type PodDecision =
  /** The pod has no sandbox yet. */
  | { readonly kind: "expected" }
  /** No new claim is made; earlier claims are kept. */
  | { readonly kind: "left"; readonly reason: string }
  /** No ADD will come: claimed addresses are returned. */
  | { readonly kind: "over"; readonly reason: string };

/**
 * Returns the owner that the pod's ADD will use; undefined if it cannot be known. A static pod's CNI_ARGS contain the
 * kubelet's hash of its file instead of a UID (static-pods).
 */
export function ownerOfPod(pod: Pick<Pod, "uid" | "annotations">): string | undefined {
  return mirroredHashOf(pod) ?? pod.uid;
}

/**
 * Returns the static pod's configuration hash if this is its mirror pod. The annotation `config.hash` alone proves
 * nothing, because any pod may have it; a pod with both annotations never runs itself.
 */
export function mirroredHashOf({ annotations }: Pick<Pod, "annotations">): string | undefined {
  const hash = annotations[CONFIG_HASH];
  return hash !== undefined && isStaticOwner(hash) && annotations[CONFIG_MIRROR] === hash ? hash : undefined;
}

export function decidePod(pod: Pod, nodeName: string): PodDecision {
  if (ownerOfPod(pod) === undefined) return { kind: "left", reason: "it has no UID" };
  if (pod.nodeName !== nodeName) return { kind: "left", reason: "it is not bound to this node" };
  if (pod.hostNetwork) return { kind: "left", reason: "it uses the network of the node" };
  // A user with the right to create pods can forge one, even with the hash of another static pod; only the runtime's
  // ADD proves that it runs here.
  if (pod.annotations[CONFIG_MIRROR] !== undefined) return { kind: "left", reason: "it is a mirror pod" };
  if (pod.deleting) return { kind: "over", reason: "it is being deleted" };
  if (pod.isFinished) return { kind: "over", reason: "it is finished" };
  if (pod.isReduced) return { kind: "left", reason: "it is not kept as a whole" };
  if (pod.phase !== undefined && pod.phase !== "Pending") return { kind: "left", reason: "it runs" };
  if (pod.hasSandbox) return { kind: "left", reason: "it has a sandbox" };
  return { kind: "expected" };
}

/**
 * Returns which NICs are claimed for together. NICs of other plugins are left out, and those with requested addresses:
 * only their ADD has the complete request.
 */
export function planGroups({ annotations }: Pod, nics: readonly AnnouncedNic[]): (readonly AnnouncedNic[])[] {
  const ours = nics.filter(({ ipamConf, isAsking }) => ipamConf !== undefined && !isAsking);
  // A tenant may write thousands of networks into an annotation.
  if (ours.length === 0 || ours.length > MAX_PREFETCHED_NICS) return [];
  const areTogether = ALL_NICS.some((key) => Object.hasOwn(annotations, key));
  return areTogether ? [ours] : ours.map((nic) => [nic]);
}
