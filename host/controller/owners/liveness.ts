/** Reads whether the owner of a pool or of retained addresses exists, from the API server, never from a cache. */
import * as z from "zod";
import { ConfigError, decodeConfig } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { type ObjectName, objectPath, type Resource } from "../../kubernetes/paths.ts";
import type { Liveness } from "../types.ts";

const schema = z.object({ metadata: z.object({ uid: z.string().min(1) }) });

interface LivenessQuery {
  readonly resource: Resource;
  readonly owner: ObjectName & { readonly uid: string };
  /** The media type to ask for. Default: the whole object as JSON. */
  readonly accept?: string;
  /** Decides about an object with the owner's UID. Throws ConfigError for an undecodable one. Default: it is alive. */
  readonly isAlive?: (object: KubeObject) => boolean;
  readonly signal: AbortSignal;
}

/** Returns "unknown" without an answer, or for an undecodable object. Rejects with the signal's reason. */
export async function readLiveness(api: KubeApi, query: LivenessQuery): Promise<Liveness> {
  const { resource, owner, accept, isAlive = () => true, signal } = query;
  const path = objectPath(resource, owner);
  try {
    const object = await api.call({ method: "GET", path, accept, signal });
    return requireUid(object, path) === owner.uid && isAlive(object) ? "alive" : "gone";
  } catch (error) {
    signal.throwIfAborted();
    // A server without the kind answers 404 as well, but without a reason.
    if (error instanceof ApiError) return error.status === 404 && error.reason === "NotFound" ? "gone" : "unknown";
    if (error instanceof ApiUnavailable || error instanceof ConfigError) return "unknown";
    throw error;
  }
}

/** Returns the UID of an object of any kind. Throws ConfigError if it has none. */
export function requireUid(object: unknown, source: string): string {
  return decodeConfig(schema, object, source).metadata.uid;
}
