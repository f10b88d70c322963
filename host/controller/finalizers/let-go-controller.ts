/**
 * Takes the finalizers from all pools and Subnets, so that tools that do not call Helm's hooks can delete everything in
 * any order (`--no-finalizers`). Generated pools do not change meanwhile.
 */
import { objectPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { StartController } from "../types.ts";
import { IN_USE_FINALIZER } from "./plan-finalizers.ts";

/** Shortest time between two passes: milliseconds. */
const REST_MS = 200;

const KINDS = [
  { resource: IP_POOLS, cache: "pools" },
  { resource: SUBNETS, cache: "subnets" },
] as const;

export const startLettingGo: StartController = (deps) => {
  const { api, caches, leading: signal, poolWrites } = deps;
  const work = async (): Promise<number | undefined> => {
    const refusals = new RefusalsOf();
    for (const { resource, cache } of KINDS)
      for (const { name, uid, resourceVersion, finalizers } of caches[cache].items.values()) {
        if (!finalizers.includes(IN_USE_FINALIZER)) continue;
        await poolWrites.awaitForStatus(signal);
        const body = { metadata: { finalizers: finalizers.filter((each) => each !== IN_USE_FINALIZER) } };
        const path = objectPath(resource, { name });
        await refusals.attempt(() => patchIfSame(api, { path, uid, resourceVersion, body, signal }));
      }
    return refusals.require();
  };
  const loop = startReconciling(deps, {
    failure: "Removing the finalizers of pools and Subnets failed",
    work,
    restMs: () => REST_MS,
    follow: (wake) => [caches.pools.subscribe(wake), caches.subnets.subscribe(wake)],
  });
  return {
    get problems() {
      return [
        ...loop.problems,
        "Pools and Subnets have no finalizers and generated pools do not change, because everything may be deleted (--no-finalizers, the chart's crds.allowDeletion)",
      ];
    },
    close: () => loop.close(),
  };
};
