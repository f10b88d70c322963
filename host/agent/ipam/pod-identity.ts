/**
 * The pod of a request: the owner of its addresses, and its known facts. The port of both modes, and the embedded
 * mode's implementation, which trusts the runtime and the manifests; the cluster's is ../cluster/identity.ts.
 */

import { type AttachRequest, decodePodArgs } from "../../cni/request.ts";
import { decodePodAnnotations, RETAIN_ANNOTATION } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import type { PodSubject } from "../../ipam/model.ts";
import type { Workload } from "../../resources/member.ts";
import type { Namespace } from "../../resources/namespace.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { IpamClaim } from "../../resources/workloads/ipam-claim.ts";

export interface PodIdentity {
  /** Pod UID, else the container ID (unknown-container). */
  readonly owner: string;
  /** Empty if unknown. */
  readonly namespace: string;
  readonly name: string;
  readonly subject: PodSubject | undefined;
  /** The node that the pod is bound to; undefined if unknown. */
  readonly node?: string | undefined;
  /** The owner of the pod's addresses after it is deleted; undefined: they are not retained. */
  readonly workload?: Workload | undefined;
  /** A virtual machine migrates to the pod. Default: none does. */
  readonly isMigrationTarget?: boolean | undefined;
  /** The IPAMClaims that its NICs refer to, by interface: they retain the addresses of these NICs. */
  readonly claims?: ReadonlyMap<string, NicClaim> | undefined;
  /** Names of its annotations of other IPAMs. */
  readonly foreignAnnotations?: readonly string[] | undefined;
  /** The pod's namespace, where the snapshot may lack it. */
  readonly home?: Namespace | undefined;
}

/** Undefined `claim`: no IPAMClaim has this name. */
export interface NicClaim {
  readonly namespace: string;
  readonly name: string;
  readonly claim: IpamClaim | undefined;
}

/** Its methods reject with CniError 103 without such a pod, and with ConfigError for an invalid annotation. */
export interface Identifier {
  /** Returns the pod of an ADD. `signal` ends the wait for an API server. */
  identify(request: AttachRequest, signal: AbortSignal): Promise<PodIdentity>;
  /** The same without the owners of its addresses and pools, which may have to be read from the API server. */
  recognize(request: AttachRequest, signal: AbortSignal): Promise<PodIdentity>;
  /** Returns a pod by name; its owner is "" if it is unknown. */
  find(namespace: string, name: string): Promise<PodIdentity>;
}

/** For the embedded mode. */
export function openManifestIdentifier(snapshot: () => Snapshot): Identifier {
  const identify = async (request: AttachRequest) => identifyRequest(request, snapshot());
  return {
    identify,
    recognize: identify,
    find: async (namespace, name) => identifyPod({ namespace, name, containerId: "" }, snapshot()),
  };
}

type Known = Pick<Snapshot, "pods" | "vendorConf">;

/** The hints that a request gives about the pod. */
interface PodHints {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly containerId: string;
  /** From the runtime; those of a manifest take precedence. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Throws ConfigError when an annotation of the pod is invalid. */
export function identifyRequest(request: AttachRequest, snapshot: Known): PodIdentity {
  const { namespace = "", name = "", uid } = decodePodArgs(request.args);
  const annotations = request.netConf.runtimeConfig.podAnnotations;
  return identifyPod({ namespace, name, uid, annotations, containerId: request.containerId }, snapshot);
}

/** Throws ConfigError when an annotation of the pod is invalid. */
function identifyPod({ namespace, name, uid, containerId, ...hints }: PodHints, snapshot: Known): PodIdentity {
  const known = namespace === "" || name === "" ? undefined : snapshot.pods.get(`${namespace}/${name}`);
  const given = known?.annotations ?? hints.annotations;
  const identity = { owner: uid ?? known?.uid ?? containerId, namespace, name };
  if (name === "" && given === undefined) return { ...identity, subject: undefined };
  const annotations = decodePodAnnotations(given ?? {}, snapshot.vendorConf);
  if (annotations.retain !== undefined) {
    // Without a cluster nothing says when a workload is gone.
    const mismatch = { path: "", got: annotations.retain, wanted: "no such annotation in embedded mode" };
    throw new ConfigError(`annotation "${RETAIN_ANNOTATION}"`, [mismatch]);
  }
  return { ...identity, subject: { namespace, name, labels: known?.labels ?? {}, annotations } };
}
