/**
 * Which pods and NICs get their addresses before their ADD comes (docs/prefetch.md).
 */
import { ANNOTATION_PREFIX } from "../config/annotations.ts";
import type { IpamConf } from "../config/ipam-conf.ts";
import { CONFIG_HASH, CONFIG_MIRROR, type Pod } from "../resources/pod.ts";
import { isStaticOwner } from "./leak.ts";

/** Most NICs of one pod that are prefetched; a pod with more is left to its ADDs. @limit */
export const MAX_PREFETCHED_NICS = 32;

/** Annotations that give all NICs of a pod their addresses at once, with the first ADD. */
const ALL_NICS = ["ippools", "subnets"].map((key) => ANNOTATION_PREFIX + key);

/** One NIC of a pod as its annotations and the network definitions announce it. */
export interface AnnouncedNic {
  readonly ifName: string;
  /** Name of its network, as its ADD will give it. */
  readonly network: string;
  /** The definition's `ipam` object; undefined when that names another plugin or none. */
  readonly ipamConf: IpamConf | undefined;
  /** The pod asks for addresses of its own choice on this NIC. */
  readonly isAsking: boolean;
}

type PodDecision =
  /** No sandbox yet, and one will come. */
  | { readonly kind: "expected" }
  /** Nothing is claimed; what was claimed stays. */
  | { readonly kind: "left"; readonly reason: string }
  /** No ADD will come any more: what was claimed goes back. */
  | { readonly kind: "over"; readonly reason: string };

/** NICs whose addresses are claimed together. */
export interface PrefetchGroup {
  /** At least one. */
  readonly nics: readonly AnnouncedNic[];
}

/**
 * The key under which the pod's ADD will keep its addresses; undefined when it cannot be known. A static pod's CNI_ARGS have the kubelet's
 * hash of its file where others have a UID (static-pods).
 */
export function ownerOfPod(pod: Pick<Pod, "uid" | "annotations">): string | undefined {
  return mirroredHashOf(pod) ?? pod.uid;
}

/**
 * What the kubelet calls a pod that it made of a file, if this is the kubelet's mirror of one. The hash alone proves nothing: anybody may
 * write it on a pod that runs. A pod with both annotations never runs itself.
 */
export function mirroredHashOf({ annotations }: Pick<Pod, "annotations">): string | undefined {
  const hash = annotations[CONFIG_HASH];
  return hash !== undefined && isStaticOwner(hash) && annotations[CONFIG_MIRROR] === hash ? hash : undefined;
}

export function decidePod(pod: Pod, nodeName: string): PodDecision {
  if (ownerOfPod(pod) === undefined) return { kind: "left", reason: "it has no UID" };
  if (pod.nodeName !== nodeName) return { kind: "left", reason: "it is not bound to this node" };
  if (pod.hostNetwork) return { kind: "left", reason: "it uses the network of the node" };
  if (pod.deleting) return { kind: "over", reason: "it is being deleted" };
  if (pod.isFinished) return { kind: "over", reason: "it is finished" };
  if (pod.phase !== undefined && pod.phase !== "Pending") return { kind: "left", reason: "it runs" };
  if (pod.hasSandbox) return { kind: "left", reason: "it has a sandbox" };
  return { kind: "expected" };
}

/** Without NICs of other plugins and those that ask for addresses by name: only their ADD knows all that they want. */
export function planGroups({ annotations }: Pod, nics: readonly AnnouncedNic[]): PrefetchGroup[] {
  const ours = nics.filter(({ ipamConf, isAsking }) => ipamConf !== undefined && !isAsking);
  // Whoever may create pods may write thousands of networks into an annotation.
  if (ours.length === 0 || ours.length > MAX_PREFETCHED_NICS) return [];
  const areTogether = ALL_NICS.some((key) => Object.hasOwn(annotations, key));
  return areTogether ? [{ nics: ours }] : ours.map((nic) => ({ nics: [nic] }));
}
