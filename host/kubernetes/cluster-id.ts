import * as z from "zod";
import type { KubeApi } from "./kube-api.ts";
import { NAMESPACES, objectPath } from "./paths.ts";

const namespace = z.object({ metadata: z.object({ uid: z.string() }) });

/** Returns the UID of the namespace kube-system, which identifies a cluster. Rejects as {@link KubeApi.call}. */
export async function readClusterId(api: Pick<KubeApi, "call">, patienceMs: number): Promise<string> {
  const path = objectPath(NAMESPACES, { name: "kube-system" });
  return namespace.parse(await api.call({ method: "GET", path, patienceMs })).metadata.uid;
}
