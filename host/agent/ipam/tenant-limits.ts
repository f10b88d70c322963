/**
 * Limits the number of addresses of one pod and of one namespace (`maxAddressesPerPod`, `maxAddressesPerNamespace` of
 * vendor-conf). A pod's addresses are all on this node and are counted here; the controller counts those of a
 * namespace and reports the namespaces that have reached their limit.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { NicDemand } from "../../ipam/model.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

/** A namespace that has at least `limit` addresses. */
export interface FullNamespace {
  readonly namespace: string;
  readonly addresses: number;
  readonly limit: number;
}

export interface TenantLimits {
  /** If undefined, the pod cannot reach the limit with all NICs that it announces. */
  readonly perPod: number | undefined;
  /** The pod's; undefined: it is not full, as far as is known. */
  readonly full: FullNamespace | undefined;
}

/**
 * Returns undefined if there is no limit that the pod could reach. `most`: how many addresses the pod can have with all
 * NICs that it announces or demands now.
 */
export function limitsFor(
  { vendorConf, coordinator }: Pick<Snapshot, "vendorConf" | "coordinator">,
  namespace: string,
  most: number,
): TenantLimits | undefined {
  const { maxAddressesPerPod, maxAddressesPerNamespace: limit } = vendorConf;
  const addresses = coordinator?.fullNamespaces?.get(namespace) ?? 0;
  const perPod = maxAddressesPerPod === 0 || most <= maxAddressesPerPod ? undefined : maxAddressesPerPod;
  const full = limit === 0 || addresses < limit ? undefined : { namespace, addresses, limit };
  return perPod === undefined && full === undefined ? undefined : { perPod, full };
}

interface LimitedDemand {
  readonly nics: readonly NicDemand[];
  readonly limits?: TenantLimits | undefined;
  readonly claimant: { readonly owner: string; readonly namespace: string; readonly pod: string };
}

/**
 * Throws CniError 101 when the pod would exceed a limit. It keeps its addresses; `mayHaveRetained`: an address may be
 * retained for it, which its namespace's count includes already.
 */
export async function requireWithinLimits(
  registry: Pick<Registry, "findOwner">,
  { nics, limits, claimant }: LimitedDemand,
  mayHaveRetained: boolean,
): Promise<void> {
  const { perPod, full } = limits ?? {};
  const own = (await registry.findOwner(claimant.owner)).filter(({ state }) => state === "Bound");
  const has = (ifName: string, family: number): boolean =>
    own.some((each) => each.ifName === ifName && each.ip.family === family);
  const missing = nics.flatMap(({ ifName, families }) => families.filter(({ family }) => !has(ifName, family))).length;
  if (missing === 0) return;
  if (perPod !== undefined && own.length + missing > perPod) {
    const text = `Pod ${claimant.namespace}/${claimant.pod} has ${own.length} addresses and wants ${missing} more, and may have ${perPod} (maxAddressesPerPod of vendor-conf)`;
    throw new CniError(ErrorCode.PoolExhausted, text);
  }
  if (full !== undefined && !mayHaveRetained) throw namespaceFull(full);
}

export function namespaceFull({ namespace, addresses, limit }: FullNamespace): CniError {
  const text = `Pods and workloads of namespace "${namespace}" have ${addresses} addresses, and may have ${limit} (maxAddressesPerNamespace of vendor-conf)`;
  return new CniError(ErrorCode.PoolExhausted, text);
}
