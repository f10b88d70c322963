/** Deleted Subnets that cannot be decoded. */
import * as z from "zod";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, objectPath } from "../../kubernetes/paths.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import type { ControlledSubnet } from "../objects.ts";
import { patchIfSame } from "../patch.ts";

/** The only field needed of a pool, which may be invalid itself. */
const generatedPool = z.object({ spec: z.object({ generated: z.object({ subnet: z.string() }) }) });

/** Removes the finalizer from deleted Subnets without generated pools, after reading the API server. */
export async function releaseUnreadable(
  { api, leading: signal }: { readonly api: KubeApi; readonly leading: AbortSignal },
  unreadable: readonly ControlledSubnet[],
): Promise<void> {
  const leaving = unreadable.filter(({ deleting, finalizers }) => deleting && finalizers.includes(IN_USE_FINALIZER));
  if (leaving.length === 0) return;
  const used = await usedSubnets(api, signal);
  for (const { name, uid, resourceVersion, finalizers } of leaving.filter((subnet) => !used.has(subnet.name))) {
    const body = { metadata: { finalizers: finalizers.filter((each) => each !== IN_USE_FINALIZER) } };
    await patchIfSame(api, { path: objectPath(SUBNETS, { name }), uid, resourceVersion, body, signal });
  }
}

async function usedSubnets(api: KubeApi, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  for await (const { items } of listPages(api, { path: collectionPath(IP_POOLS), signal })) {
    for (const item of items) {
      const { data } = generatedPool.safeParse(item);
      if (data !== undefined) used.add(data.spec.generated.subnet);
    }
  }
  return used;
}
