/** Creates that land so late that their agent does not look for them any more. */
import { ALLOCATIONS, type MemoryApiServer, type StoredObject } from "../fakes/memory-api-server.ts";

/** The known fault of those that nothing finds. */
export const LATE_CREATE = "a create that lands late";

interface Create {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/**
 * Returns whether the write, if it is carried out now, does no harm for long: the API server refuses it, or the
 * controller finds the allocation, because none of its pods is there.
 */
export function isFoundInTime(
  { method, path, body }: Create,
  server: Pick<MemoryApiServer, "objects">,
  isRunning: (podUID: string) => boolean,
): boolean {
  if (method !== "POST" || path !== ALLOCATIONS) return true;
  const { metadata, spec } = body as StoredObject;
  const { holders = [] } = spec as { holders?: readonly { readonly podUID: string }[] };
  return server.objects.has(metadata.name) || !holders.some(({ podUID }) => isRunning(podUID));
}
