/**
 * Keeps two objects of MetalLB's, with which its speakers announce the addresses of Services, and no others: an
 * IPAddressPool of exactly these, from which MetalLB gives none, and an L2Advertisement of it.
 */
import * as z from "zod";
import { isOwnObject, OTHER_KINDS, OWN_LABEL } from "../../host/controller/conditions/other-allocators.ts";
import { followObjects } from "../../host/controller/follow-objects.ts";
import { patchIfSame } from "../../host/controller/patch.ts";
import type { ControllerDeps } from "../../host/controller/types.ts";
import { ApiError, ApiUnavailable, callIfThere, isConflict, type KubeObject } from "../../host/kubernetes/kube-api.ts";
import { collectionPath, objectPath } from "../../host/kubernetes/paths.ts";
import { orElse } from "../../host/lib/try-or.ts";
import { compareIp, type Ip } from "../../host/net/ip.ts";
import { formatPrefix, wholePrefix } from "../../host/net/prefix.ts";
import { rangeContains } from "../../host/net/range.ts";

/** Time for which a write is tried, while MetalLB's webhook may be away: milliseconds. */
const WRITE_PATIENCE_MS = 2_000;

/** Of both objects. */
const NAME = "berth";

const { resource: POOLS } = OTHER_KINDS.IPAddressPool;
const ADVERTISEMENTS = { ...POOLS, plural: "l2advertisements" };

const schema = z.object({
  metadata: z.object({ uid: z.string(), resourceVersion: z.string() }),
  spec: z.object({ addresses: z.array(z.string()).catch([]) }).catch({ addresses: [] }),
});

function decode(object: KubeObject) {
  const { metadata, spec } = schema.parse(object);
  const ranges = OTHER_KINDS.IPAddressPool.read(object);
  return { ...metadata, isOwn: isOwnObject(object), addresses: spec.addresses, ranges };
}

/** "outdated": a watch is about to report another version of an object. A text: why they could not be written. */
export type Kept = "kept" | "outdated" | { readonly refusal: string };

/** Starts to watch at once; `onChange`: when an object has changed. MetalLB need not be there. */
export function openMetallb(deps: ControllerDeps, namespace: string, onChange: () => void) {
  const { leading: signal } = deps;
  const api: Pick<ControllerDeps["api"], "call"> = {
    call: (call) => deps.api.call({ ...call, patienceMs: WRITE_PATIENCE_MS }),
  };
  const follow = (kind: string, resource: typeof POOLS | typeof ADVERTISEMENTS) => {
    const path = collectionPath(resource, namespace);
    const all = followObjects(deps, onChange, { name: `${kind}s of MetalLB`, path, optional: true, decode });
    return { kind, resource, path, all };
  };
  const pools = follow("IPAddressPool", POOLS);
  const advertisements = follow("L2Advertisement", ADVERTISEMENTS);
  const problems = () => [...pools.all.problems, ...advertisements.all.problems];

  /** Makes the object, or deletes it without a `spec`; returns whether it was as the watch has it. */
  const sync = async ({ kind, resource, path, all }: typeof pools, spec: object | undefined): Promise<boolean> => {
    const before = all.items.get(`${namespace}/${NAME}`);
    const own = { path: objectPath(resource, { namespace, name: NAME }), signal };
    if (spec === undefined) {
      if (before?.isOwn !== true) return true;
      const { uid, resourceVersion } = before;
      const call = { ...own, method: "DELETE", body: { preconditions: { uid, resourceVersion } } } as const;
      return callIfThere(api, call).then(() => true, orElse(isConflict, false));
    }
    if (before === undefined) {
      const metadata = { name: NAME, labels: { [OWN_LABEL.key]: OWN_LABEL.value } };
      const body = { apiVersion: resource.apiVersion, kind, metadata, spec };
      return api.call({ method: "POST", path, body, signal }).then(() => true, orElse(isConflict, false));
    }
    const isAsWanted = !("addresses" in spec) || String(spec.addresses) === String(before.addresses);
    return isAsWanted || (await patchIfSame(api, { ...own, ...before, body: { spec } })) !== undefined;
  };

  return {
    get problems() {
      return problems();
    },
    /** Returns whether MetalLB may announce these from now on. Those that are in another pool of its are left there. */
    keep: async (ips: readonly Ip[]): Promise<Kept> => {
      const [problem] = problems();
      if (problem !== undefined) return { refusal: problem };
      if (!pools.all.isSynced || !advertisements.all.isSynced) return "outdated";
      const others = [...pools.all.items.values()].filter(({ isOwn }) => !isOwn).flatMap(({ ranges }) => ranges);
      const left = ips.filter((ip) => !others.some((range) => rangeContains(range, ip))).toSorted(compareIp);
      const addresses = [...new Set(left.map((ip) => formatPrefix(wholePrefix(ip))))];
      const isNeeded = addresses.length > 0;
      if (isNeeded && pools.all.items.get(`${namespace}/${NAME}`)?.isOwn === false)
        return {
          refusal: `IPAddressPool ${namespace}/${NAME} is not the controller's, which lacks its label; rename it`,
        };
      try {
        const isPool = await sync(pools, isNeeded ? { addresses, autoAssign: false } : undefined);
        const isAll = await sync(advertisements, isNeeded ? { ipAddressPools: [NAME] } : undefined);
        return isPool && isAll ? "kept" : "outdated";
      } catch (error) {
        if (!(error instanceof ApiError || error instanceof ApiUnavailable)) throw error;
        return { refusal: `MetalLB's objects in namespace ${namespace} cannot be written: ${error.message}` };
      }
    },
    close: async () => void (await Promise.all([pools, advertisements].map(({ all }) => all.close()))),
  };
}
