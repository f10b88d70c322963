/**
 * Finds whether the pods of a deleted workload run on, and for which owner (`kubectl delete --cascade=orphan`): the
 * garbage collector removes the owner reference from spared pods before the owner. Reads the API server, never a cache.
 */
import * as z from "zod";
import { ConfigError, decodeConfig } from "../../config/config-error.ts";
import { aboveOf, applicationOf, middleKindOf } from "../../ipam/owner.ts";
import { ApiError, ApiUnavailable, callIfThere, type KubeApi, METADATA } from "../../kubernetes/kube-api.ts";
import { objectPath, PODS } from "../../kubernetes/paths.ts";
import { readAllocation } from "../../registry/kubernetes/allocation-objects.ts";
import { metadata, type OwnerReference } from "../../resources/fields/metadata.ts";
import { isSameWorkload, type PoolOwner } from "../../resources/fields/subnet-pool.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { decodePod } from "../../resources/pod.ts";
import type { PoolOwners, Succession } from "../types.ts";

/** Most pods that are read in search of one with a new owner: a pod without its labels never gets one. */
const MAX_ORPHANS_READ = 4;

interface SuccessionQuery extends Pick<PoolOwners, "readLiveness"> {
  readonly api: KubeApi;
  readonly application: PoolOwner;
  /** Names of allocations. */
  readonly allocations: readonly string[];
  readonly signal: AbortSignal;
}

/** Rejects with the signal's reason. */
export async function readSuccession(query: SuccessionQuery): Promise<Succession> {
  try {
    return await readAll(query);
  } catch (error) {
    query.signal.throwIfAborted();
    if (error instanceof ApiError || error instanceof ApiUnavailable || error instanceof ConfigError) return "unknown";
    throw error;
  }
}

/** Ends at the first pod with a result. */
async function readAll({ api, application, allocations, readLiveness, signal }: SuccessionQuery): Promise<Succession> {
  let orphans = 0;
  for (const name of allocations) {
    const { spec } = (await readAllocation(api, name, { lane: "background", signal })) ?? {};
    for (const holder of spec?.state === "Bound" ? spec.holders : []) {
      const owner = await readOwner({ api, signal }, application, holder);
      if (owner === "absent") continue;
      if (owner === "ended") return owner;
      if (owner !== "none" && isSameWorkload(owner, application) && (await readLiveness(owner, signal)) === "alive")
        return owner;
      orphans++;
    }
    if (orphans >= MAX_ORPHANS_READ) break;
  }
  return orphans === 0 ? "ended" : "orphaned";
}

type Reading = Pick<SuccessionQuery, "api" | "signal">;

/**
 * Returns the workload of the pod that has an address of `former`: "none" for a live pod without one, "absent" if it
 * does not live, "ended" if the garbage collector takes it, because its controller is gone or it is former's.
 */
async function readOwner(
  reading: Reading,
  { namespace, uid }: PoolOwner,
  holder: Holder,
): Promise<PoolOwner | "none" | "absent" | "ended"> {
  if (holder.namespace !== namespace) return "absent";
  const path = objectPath(PODS, { namespace, name: holder.pod });
  const object = await callIfThere(reading.api, { method: "GET", path, signal: reading.signal });
  const pod = object && decodePod(object, `Pod "${namespace}/${holder.pod}"`);
  if (pod?.uid !== holder.podUid || pod.isFinished) return "absent";
  const { controller } = pod;
  if (controller === undefined) return pod.deleting ? "absent" : "none";
  const top = await readTop(reading, namespace, controller);
  if (top === undefined || top.uid === uid) return "ended";
  return applicationOf(namespace, top) ?? "none";
}

const schema = z.object({ metadata });

async function readTop(
  { api, signal }: Reading,
  namespace: string,
  controller: OwnerReference,
): Promise<OwnerReference | undefined> {
  const middle = middleKindOf(controller);
  if (middle === undefined) return controller;
  const { apiVersion, name, uid } = controller;
  const path = objectPath({ apiVersion, plural: `${middle.toLowerCase()}s` }, { namespace, name });
  const object = await callIfThere(api, { method: "GET", path, accept: METADATA, signal });
  const found = object && decodeConfig(schema, object, `${middle} "${namespace}/${name}"`).metadata;
  return found?.uid === uid ? (aboveOf(middle, found) ?? controller) : undefined;
}
