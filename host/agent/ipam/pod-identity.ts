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

/** What is known without a manifest of the pod. */
export interface PodHints {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly containerId: string;
  /** From the runtime; a manifest's win. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Throws ConfigError when an annotation of the pod is wrong. */
export function identifyRequest(request: AttachRequest, snapshot: Snapshot): PodIdentity {
  const { namespace = "", name = "", uid } = decodePodArgs(request.args);
  const annotations = request.netConf.runtimeConfig.podAnnotations;
  return identifyPod({ namespace, name, uid, annotations, containerId: request.containerId }, snapshot);
}

/** Throws ConfigError when an annotation of the pod is wrong. */
export function identifyPod(hints: PodHints, snapshot: Snapshot): PodIdentity {
  const { namespace, name } = hints;
  const known = namespace === "" || name === "" ? undefined : snapshot.pods.get(`${namespace}/${name}`);
  const annotations = known?.annotations ?? hints.annotations;
  const isUnknown = name === "" && annotations === undefined;
  return {
    owner: hints.uid ?? known?.uid ?? hints.containerId,
    namespace,
    name,
    subject: isUnknown
      ? undefined
      : { namespace, name, labels: known?.labels ?? {}, annotations: decodePodAnnotations(annotations ?? {}) },
  };
}
