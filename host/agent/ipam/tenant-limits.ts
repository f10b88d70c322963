/**
 * What one pod and one namespace may hold (`maxAddressesPerPod`, `maxAddressesPerNamespace` of vendor-conf), before addresses are claimed for a NIC. The pod's addresses are
 * all on this node, and are counted here; those of a namespace are counted by the controller, which tells agents of namespaces that have their share.
 * Effects: reads the registry.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { VendorConf } from "../../config/vendor-conf.ts";
import type { NicDemand } from "../../ipam/model.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

export interface TenantLimits {
  /** Undefined: the pod cannot come to it, with all NICs that it announces. */
  readonly perPod: number | undefined;
  /** The pod's namespace has at least `limit` addresses; undefined: as far as is known it has fewer. */
  readonly full: { readonly namespace: string; readonly addresses: number; readonly limit: number } | undefined;
}

/** `most`: of addresses that the pod can have with all NICs that it announces and that are wanted now. */
export function limitsFor(
  { vendorConf, coordinator }: Pick<Snapshot, "vendorConf" | "coordinator">,
  namespace: string,
  most: number,
): TenantLimits {
  const { maxAddressesPerPod: perPod, maxAddressesPerNamespace: limit }: VendorConf = vendorConf;
  const addresses = coordinator?.fullNamespaces?.get(namespace) ?? 0;
  return {
    perPod: perPod === 0 || most <= perPod ? undefined : perPod,
    full: limit === 0 || addresses < limit ? undefined : { namespace, addresses, limit },
  };
}

interface LimitedDemand {
  readonly nics: readonly NicDemand[];
  readonly limits?: TenantLimits | undefined;
  readonly claimant: { readonly owner: string; readonly namespace: string; readonly pod: string };
}

/**
 * Throws CniError 101 when the pod is to have more than it may. What it has already it keeps; `keeps`: something may be kept for it, which counts among its namespace's
 * already.
 */
export async function requireWithinLimits(
  registry: Pick<Registry, "findOwner">,
  { nics, limits, claimant }: LimitedDemand,
  keeps: boolean,
): Promise<void> {
  const { perPod, full } = limits ?? {};
  if (perPod === undefined && full === undefined) return;
  const own = (await registry.findOwner(claimant.owner)).filter(({ state }) => state === "Bound");
  const has = (ifName: string, family: number): boolean =>
    own.some((each) => each.ifName === ifName && each.ip.family === family);
  const missing = nics.flatMap(({ ifName, families }) => families.filter(({ family }) => !has(ifName, family))).length;
  if (missing === 0) return;
  if (perPod !== undefined && own.length + missing > perPod) {
    const text = `Pod ${claimant.namespace}/${claimant.pod} has ${own.length} addresses and wants ${missing} more, and may have ${perPod} (maxAddressesPerPod of vendor-conf)`;
    throw new CniError(ErrorCode.PoolExhausted, text);
  }
  if (full !== undefined && !keeps) throw namespaceFull(full);
}

/** Of addresses that were just claimed and that nobody had. Throws CniError 101 when the namespace has its share. */
export function refuseFresh(
  { limits }: Pick<LimitedDemand, "limits">,
  fresh: readonly Allocation[] = [],
): CniError | undefined {
  return limits?.full === undefined || fresh.length === 0 ? undefined : namespaceFull(limits.full);
}

function namespaceFull({ namespace, addresses, limit }: NonNullable<TenantLimits["full"]>): CniError {
  const text = `Pods and workloads of namespace "${namespace}" have ${addresses} addresses, and may have ${limit} (maxAddressesPerNamespace of vendor-conf)`;
  return new CniError(ErrorCode.PoolExhausted, text);
}
