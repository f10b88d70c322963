/**
 * The Kubernetes Pod, as far as Berth reads it.
 * Called by the manifests and the watches.
 * Effects: none.
 */
import type { Labels } from "../config/label-selector.ts";

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** The one owner that manages the pod. */
  readonly controller: boolean;
}

export interface Pod {
  readonly kind: "Pod";
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  readonly nodeName?: string | undefined;
  readonly deleting: boolean;
  /** `status.phase`. */
  readonly phase?: string | undefined;
  readonly ownerReferences: readonly OwnerReference[];
  readonly hostNetwork: boolean;
}
