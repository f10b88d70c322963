/** Reads objects of the API server, within the rights of the kubeconfig's user. Writes nothing. */
import type { KubeApi, KubeCall, KubeObject } from "../kubernetes/kube-api.ts";
import { listPages } from "../kubernetes/list.ts";
import { collectionPath, type Resource } from "../kubernetes/paths.ts";
import { tryOr } from "../lib/try-or.ts";
import { decodeIpPool, type IpPool } from "../resources/ip-pool.ts";

/** Time for which `berthctl` tries to reach the API server: milliseconds. */
export const CLUSTER_PATIENCE_MS = 10_000;

interface Collection {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly query?: KubeCall["query"];
}

/** Returns the decoded objects; those for which `decode` returns undefined are left out. */
export async function readObjects<T>(
  api: KubeApi,
  { resource, namespace, query = {} }: Collection,
  decode: (object: KubeObject) => T | undefined,
): Promise<T[]> {
  const found: T[] = [];
  const list = { path: collectionPath(resource, namespace), query, patienceMs: CLUSTER_PATIENCE_MS };
  for await (const { items } of listPages(api, list)) found.push(...items.flatMap((item) => decode(item) ?? []));
  return found;
}

export function listObjects(api: KubeApi, collection: Collection): Promise<KubeObject[]> {
  return readObjects(api, collection, (object) => object);
}

/** Those that cannot be decoded are left out, as agents do. */
export function decodedPools(objects: readonly KubeObject[]): readonly IpPool[] {
  return objects.flatMap((object) => tryTo(() => decodeIpPool(object, "IPPool")) ?? []);
}

/** Returns undefined for an object that cannot be decoded. */
export function tryTo<T>(decode: () => T): T | undefined {
  return tryOr(decode, undefined);
}

export function nameOf({ metadata }: KubeObject): string {
  const name = typeof metadata === "object" && metadata !== null && "name" in metadata ? metadata.name : undefined;
  return typeof name === "string" ? name : "";
}
