/**
 * Deleted Subnets whose specification or status cannot be read. The division leaves them out, and so they would stay for ever: their finalizer goes by what
 * metadata and pools say alone (docs/subnets.md).
 * Effects: lists pools; writes finalizers of Subnets.
 */

import { z } from "zod";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, objectPath } from "../../kubernetes/paths.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import type { ControlledSubnet } from "../objects.ts";
import { patchIfSame } from "../patch.ts";

/** All that matters of a pool, which may be unreadable itself. */
const generatedPool = z.object({ spec: z.object({ generated: z.object({ subnet: z.string() }) }) });

/** Takes the finalizer from those in deletion that no pool is generated from. Asks the API server, as of a moment after the call, and only when there is one. */
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

/** Names of the Subnets that pools are generated from. */
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
