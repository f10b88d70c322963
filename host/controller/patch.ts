/** A write to a cached object, which the API server refuses if the object has changed since. */
import { isOutdated, type KubeApi, type KubeCall, type KubeObject } from "../kubernetes/kube-api.ts";
import { orElse } from "../lib/try-or.ts";

export interface Patch {
  /** Path of the object, or of its status. */
  readonly path: string;
  /** UID of the object as it was read. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** A JSON merge patch (RFC 7386): absent keys keep their values. */
  readonly body: {
    readonly metadata?: object;
    readonly status?: object;
    readonly spec?: object;
    readonly data?: object;
    readonly endpoints?: readonly object[];
    readonly ports?: readonly object[];
  };
  /** Default: the API server's, the name in the user agent. */
  readonly fieldManager?: string;
  readonly signal: AbortSignal;
}

/** Returns the patched object; undefined if it is gone, was recreated, or has another version, as the watch reports. */
export async function patchIfSame(api: Pick<KubeApi, "call">, patch: Patch): Promise<KubeObject | undefined> {
  const { path, uid, resourceVersion, body, fieldManager, signal } = patch;
  const metadata = { ...body.metadata, uid, resourceVersion };
  const query = fieldManager === undefined ? {} : { query: { fieldManager } };
  const call: KubeCall = { method: "PATCH", path, ...query, body: { ...body, metadata }, signal };
  return await api.call(call).catch(orElse(isOutdated, undefined));
}
