/**
 * Whether a workload is still there, asked of the API server.
 * Effects: a call of the API server.
 */

import { z } from "zod";
import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, type KubeApi, METADATA } from "../../kubernetes/kube-api.ts";
import { objectPath } from "../../kubernetes/paths.ts";
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import type { Liveness } from "../types.ts";
import type { PoolOwnerKind } from "./pool-owner-kinds.ts";

const schema = z.object({ metadata: z.object({ uid: z.string().min(1) }) });

/** Rejects with the signal's reason only. */
export async function lookAt(
  api: KubeApi,
  { apiVersion, plural, isOver }: PoolOwnerKind,
  { namespace, name, uid }: PoolOwner,
  signal: AbortSignal,
): Promise<Liveness> {
  const path = objectPath({ apiVersion, plural }, { namespace, name });
  try {
    const accept = isOver === undefined ? METADATA : "application/json";
    const object = await api.call({ method: "GET", path, accept, signal });
    const found = schema.safeParse(object);
    if (!found.success) return "unknown";
    return found.data.metadata.uid !== uid || isOver?.(object, path) === true ? "gone" : "alive";
  } catch (error) {
    signal.throwIfAborted();
    // A server that does not know the kind answers 404, too, but without a reason.
    if (error instanceof ApiError) return error.status === 404 && error.reason === "NotFound" ? "gone" : "unknown";
    if (error instanceof ApiUnavailable || error instanceof ConfigError) return "unknown";
    throw error;
  }
}
