/** What the status of an IPAMClaim should say: the addresses given to its NIC. */
import { equalIp, FAMILIES, formatIp, type Ip } from "../../net/ip.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import type { IpamClaim } from "../../resources/workloads/ipam-claim.ts";
import type { CachedAllocation } from "../cached-allocation.ts";

interface ClaimStatus {
  /** With the prefix length of the pool's subnet, IPv4 first. */
  readonly ips: readonly string[];
  /** The pod that has the addresses, or the last one that had them. */
  readonly ownerPod: string;
}

/** The states of addresses that are given: those that a pod has count before retained ones, except what the status says already. */
const RANKED_STATES = ["Bound", "Kept"] as const;

/**
 * Returns undefined if the status is up to date, or nothing has been given. Addresses of earlier pods stay in it until there are new ones, and those that
 * are bound or retained, or in quarantine because their node is lost, stay even then: the next pod requests what it says, and a new one may be of an ADD that is never answered. `gone`: addresses that
 * the claim had and that are neither. Another pod may have them by now, and each next one of the claim would be refused.
 */
export function planClaimStatus(
  claim: IpamClaim,
  allocations: readonly CachedAllocation[],
  gone: readonly Ip[] = [],
): ClaimStatus | undefined {
  const own = allocations.filter(({ spec }) => isOf(claim, spec.workload));
  const ranked = RANKED_STATES.flatMap((state) => own.filter(({ spec }) => spec.state === state));
  const isSaid = ({ spec }: CachedAllocation): boolean => claim.given.some(({ ip }) => equalIp(ip, spec.ip));
  const given = FAMILIES.flatMap((family) => {
    const ofFamily = ranked.filter(({ spec }) => spec.ip.family === family);
    const ofLostNode = own.find(
      (each) => each.spec.state === "Quarantined" && each.spec.ip.family === family && isSaid(each),
    );
    return ofFamily.find(isSaid) ?? ofFamily[0] ?? ofLostNode ?? [];
  });
  if (given.length === 0) return withdraw(claim, gone);
  const ips = given.map(({ spec }) => `${formatIp(spec.ip)}/${spec.prefixLength}`);
  const ownerPod = given.flatMap(({ spec }) => spec.holders)[0]?.pod ?? claim.ownerPod;
  const before = claim.given.map(({ ip, length }) => `${formatIp(ip)}/${length}`);
  return before.join() === ips.join() && ownerPod === claim.ownerPod ? undefined : { ips, ownerPod };
}

/** Undefined if the status says none of them. */
function withdraw({ given, ownerPod }: IpamClaim, gone: readonly Ip[]): ClaimStatus | undefined {
  const rest = given.filter(({ ip }) => !gone.some((each) => equalIp(each, ip)));
  if (rest.length === given.length) return undefined;
  const ips = rest.map(({ ip, length }) => `${formatIp(ip)}/${length}`);
  return { ips, ownerPod: rest.length === 0 ? "" : ownerPod };
}

/** The UID alone is not enough: any pod may have it in its owner reference. */
function isOf({ namespace, uid }: IpamClaim, workload: Workload | undefined): boolean {
  return workload?.kind === "IPAMClaim" && workload.namespace === namespace && workload.uid === uid;
}
