/**
 * What a pod belongs to: its controller, and for some kinds what stands above that (docs/subnets.md, "Whose pool it is").
 *
 *   pod's controller          it belongs to
 *   ReplicaSet of apps/v1     what controls that, of any kind; without one the ReplicaSet
 *   Job of batch/v1           the CronJob that controls it; without one the Job
 *   any other                 that one
 */

import type { OwnerReference } from "../resources/fields/metadata.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH } from "../resources/ip-allocation.ts";

/** Not simply the first of its owners: any object may be among them, only one controls it. */
export function controllerOf({
  ownerReferences,
}: {
  readonly ownerReferences: readonly OwnerReference[];
}): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller);
}

type Kind = Pick<OwnerReference, "apiVersion" | "kind">;

/** The kinds behind which another one may stand. */
export type MiddleKind = "ReplicaSet" | "Job";

/** Undefined for a kind that stands at the top. */
export function middleKindOf({ apiVersion, kind }: Kind): MiddleKind | undefined {
  if (apiVersion === "apps/v1" && kind === "ReplicaSet") return kind;
  return apiVersion === "batch/v1" && kind === "Job" ? kind : undefined;
}

/** What stands above an object of the kind, if that counts: of a Job only a CronJob. */
export function aboveOf(middle: MiddleKind, metadata: Parameters<typeof controllerOf>[0]): OwnerReference | undefined {
  const owner = controllerOf(metadata);
  const isCronJob = owner?.apiVersion === "batch/v1" && owner.kind === "CronJob";
  return middle === "ReplicaSet" || isCronJob ? owner : undefined;
}

/** Undefined for an owner that no pool could name: the API server takes any text for it. */
export function applicationOf(namespace: string, owner: OwnerReference): PoolOwner | undefined {
  const { apiVersion, kind, name, uid } = owner;
  const isShort = [apiVersion, kind, name].every((text) => text !== "" && text.length <= MAX_ALLOCATION_TEXT);
  if (!isShort || uid === "" || uid.length > MAX_UID_LENGTH) return undefined;
  return { apiVersion, kind, namespace, name, uid };
}
