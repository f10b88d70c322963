/**
 * Who a request is for: the key under which its addresses are kept, and what is known of the pod.
 * Called by add.ts and explain.ts.
 * Effects: none.
 */
import { type AttachRequest, decodePodArgs } from "../../cni/request.ts";
import { decodePodAnnotations } from "../../config/annotations.ts";
import type { PodSubject } from "../../ipam/model.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

export interface PodIdentity {
  /** Pod UID, else the container ID (allocation rule 18). */
  readonly owner: string;
  /** Empty when nothing is known. */
  readonly namespace: string;
  readonly name: string;
  readonly subject: PodSubject | undefined;
}

/** Throws ConfigError when an annotation of the pod is wrong. */
export function identifyPod(request: AttachRequest, snapshot: Snapshot): PodIdentity {
  const { namespace = "", name = "", uid } = decodePodArgs(request.args);
  const known = namespace === "" || name === "" ? undefined : snapshot.pods.get(`${namespace}/${name}`);
  const annotations = known?.annotations ?? request.netConf.runtimeConfig.podAnnotations;
  const isUnknown = name === "" && annotations === undefined;
  return {
    owner: uid ?? known?.uid ?? request.containerId,
    namespace,
    name,
    subject: isUnknown
      ? undefined
      : { namespace, name, labels: known?.labels ?? {}, annotations: decodePodAnnotations(annotations ?? {}) },
  };
}
