/**
 * The write of a part to an object that it knows: refused by the API server when somebody else has written to the object since.
 * Effects: one PATCH.
 */
import { isConflict, isNotFound, type KubeApi, type KubeObject } from "../kubernetes/kube-api.ts";

export interface Patch {
  /** Of the object, or of its status: `/apis/ipam.vendor.io/v1/ippools/blue/status`. */
  readonly path: string;
  /** Of the object as it was read. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** What becomes another: a JSON merge patch (RFC 7386). Keys that it does not name stay. */
  readonly body: { readonly metadata?: object; readonly status?: object; readonly spec?: object };
  readonly signal: AbortSignal;
}

/** The object as it is then. Undefined: it is gone, another one of its name, or has another version; the watch tells what it is. */
export async function patchIfSame(api: Pick<KubeApi, "call">, patch: Patch): Promise<KubeObject | undefined> {
  const { path, uid, resourceVersion, body, signal } = patch;
  const metadata = { ...body.metadata, uid, resourceVersion };
  try {
    return await api.call({ method: "PATCH", path, body: { ...body, metadata }, signal });
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined;
    throw error;
  }
}
