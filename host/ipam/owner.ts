/**
 * The pool owner of a pod: its controller, or the controller of that (docs/develop/subnets.md, "Which workload owns a
 * pool").
 *
 *   pod's controller          pool owner
 *   ReplicaSet of apps/v1     its controller, of any kind; without one the ReplicaSet
 *   Job of batch/v1           the CronJob that controls it; without one the Job
 *   any other                 that controller
 */

import type { OwnerReference } from "../resources/fields/metadata.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH } from "../resources/member.ts";

/** Returns the owner reference with `controller: true`; undefined if there is none. */
export function controllerOf({
  ownerReferences,
}: {
  readonly ownerReferences: readonly OwnerReference[];
}): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller);
}

type Kind = Pick<OwnerReference, "apiVersion" | "kind">;

/** Kinds that may have a controller of their own. */
export type MiddleKind = "ReplicaSet" | "Job";

/** Returns undefined for any other kind. */
export function middleKindOf({ apiVersion, kind }: Kind): MiddleKind | undefined {
  if (apiVersion === "apps/v1" && kind === "ReplicaSet") return kind;
  return apiVersion === "batch/v1" && kind === "Job" ? kind : undefined;
}

/** Returns the controller of an object of the kind, if it counts: for a Job only a CronJob. */
export function aboveOf(middle: MiddleKind, metadata: Parameters<typeof controllerOf>[0]): OwnerReference | undefined {
  const owner = controllerOf(metadata);
  const isCronJob = owner?.apiVersion === "batch/v1" && owner.kind === "CronJob";
  return middle === "ReplicaSet" || isCronJob ? owner : undefined;
}

/** Returns undefined for an owner reference with invalid fields, which the API server does not check. */
export function applicationOf(namespace: string, owner: OwnerReference): PoolOwner | undefined {
  const { apiVersion, kind, name, uid } = owner;
  const isShort = [apiVersion, kind, name].every((text) => text !== "" && text.length <= MAX_ALLOCATION_TEXT);
  if (!isShort || uid === "" || uid.length > MAX_UID_LENGTH) return undefined;
  return { apiVersion, kind, namespace, name, uid };
}
