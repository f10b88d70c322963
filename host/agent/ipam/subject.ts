/** The input of selection, taken from one snapshot of the resources. */
import { decodeNamespaceAnnotations } from "../../config/annotations.ts";
import type { Subject } from "../../ipam/model.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { PodIdentity } from "./pod-identity.ts";

/** Name of a pod's first NIC when no Coordinator says otherwise (podDefaultCniNic). */
const FIRST_NIC = "eth0";

interface SubjectOptions extends Pick<Subject, "ifName" | "network" | "networkNames" | "ipamConf" | "node"> {
  readonly identity: PodIdentity;
}

/** Throws ConfigError when an annotation of the namespace is invalid. */
export function describeSubject(snapshot: Snapshot, { identity, ...request }: SubjectOptions): Subject {
  const namespace = snapshot.namespaces.get(identity.namespace) ?? identity.home;
  return {
    ...request,
    pod: identity.subject,
    namespace: namespace && {
      labels: namespace.labels,
      annotations: decodeNamespaceAnnotations(namespace.annotations, snapshot.vendorConf),
    },
    firstNic: firstNicOf(snapshot),
    vendorConf: snapshot.vendorConf,
  };
}

/** Returns the name of a pod's first NIC. */
export function firstNicOf({ coordinator }: Pick<Snapshot, "coordinator">): string {
  return coordinator?.spec.podDefaultCniNic ?? FIRST_NIC;
}
