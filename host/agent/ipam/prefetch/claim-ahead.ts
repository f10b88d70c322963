/** Claims the addresses of an announced NIC's future ADD, without a container: same pools, same first address. */
import { CniError, ErrorCode } from "../../../cni/error.ts";
import type { AnnouncedNic } from "../../../ipam/plan-prefetch.ts";
import { isGrowing } from "../../../ipam/subnet-capacity.ts";
import { invariant } from "../../../lib/invariant.ts";
import type { Allocation } from "../../../registry/registry.ts";
import type { Pod } from "../../../resources/pod.ts";
import { type AddDeadline, type Clock, PREFETCH_PATIENCE_MS } from "../../request/add-deadline.ts";
import { allocateAddresses } from "../allocate.ts";
import type { ClusterAddresses } from "../cluster-ipam.ts";
import { type DemandDeps, prepareDemand } from "../demand.ts";
import { claimFirst } from "../first-claims.ts";
import type { PodIdentity } from "../pod-identity.ts";
import type { AddressDemand } from "../sources/source.ts";
import { hasUnobserved } from "../wait-for-pool.ts";

export interface ClaimAheadDeps extends Omit<DemandDeps, "cluster"> {
  readonly cluster?: ClusterAddresses | undefined;
  readonly clock: Clock;
  /**
   * Returns the identity that the pod will have for the ADD of this NIC. Not read from the snapshot, which may be
   * older than the pod. Throws ConfigError when an annotation is wrong.
   */
  readonly identityOf: (pod: Pod, ifName: string, signal: AbortSignal) => Promise<PodIdentity>;
}

interface ClaimAheadRequest {
  readonly owner: string;
  readonly pod: Pod;
  /** At least one. */
  readonly nics: readonly AnnouncedNic[];
  /** How many NICs of the pod's namespace have addresses ahead of their ADD on this node, with these. */
  readonly ahead: number;
}

type RowsByNic = ReadonlyMap<string, readonly Allocation[]>;

interface ClaimedAhead {
  readonly claimed: RowsByNic;
  /** Claimed by an agent that ran before this one. */
  readonly found: RowsByNic;
  /** NICs that were attached before. */
  readonly attached: readonly string[];
}

/**
 * Never waits for an address to become free. Rejects when nothing can be claimed now or within PREFETCH_PATIENCE_MS,
 * and when `unwanted` aborts; then nothing stays claimed.
 */
export async function claimAhead(
  deps: ClaimAheadDeps,
  request: ClaimAheadRequest,
  unwanted: AbortSignal,
): Promise<ClaimedAhead> {
  const patience = new AbortController();
  const done = new AbortController();
  const expire = (): void => patience.abort(new Error(`No answer within ${PREFETCH_PATIENCE_MS} ms`));
  deps.clock.sleep(PREFETCH_PATIENCE_MS, done.signal).then(expire, () => {});
  try {
    return await claimMissing(deps, request, AbortSignal.any([unwanted, patience.signal]));
  } finally {
    done.abort();
  }
}

async function claimMissing(
  deps: ClaimAheadDeps,
  { owner, pod, nics, ahead }: ClaimAheadRequest,
  signal: AbortSignal,
): Promise<ClaimedAhead> {
  const { inventory, clock, cluster } = deps;
  const { registry, poolCache, metrics } = inventory;
  const own = await registry.findOwner(owner);
  const bound = own.filter(({ state }) => state === "Bound");
  const names = nics.map(({ ifName }) => ifName);
  const attached = names.filter((ifName) => bound.some((row) => row.ifName === ifName && row.containerId !== ""));
  const isAttached = (ifName: string): boolean => attached.includes(ifName);
  const found = groupByNic(bound.filter(({ ifName }) => names.includes(ifName) && !isAttached(ifName)));
  const missing = nics.filter(({ ifName }) => !found.has(ifName) && !isAttached(ifName));
  const [first] = missing;
  if (first === undefined) return { claimed: new Map(), found, attached };
  signal.throwIfAborted();
  const sleep = () => Promise.reject(leftToAdd("All free addresses of the pools were released just now"));
  const deadline = { clock: { nowMs: () => clock.nowMs(), sleep }, signal };
  const demand = await demandAhead(deps, pod, first, deadline);
  // Claims of several NICs at once would not see one another: only ADDs, which come one by one, keep the limit. Pods
  // that never run must not be faster than the controller counts.
  const { maxAddressesPerNamespace: most } = inventory.snapshot.vendorConf;
  if (demand.limits?.perPod !== undefined || hasUnobserved(inventory.snapshot, demand) || (most !== 0 && ahead > most))
    throw leftToAdd("The pod or its namespace may exceed its limit of addresses, or too little is known");
  const isMissing = (ifName: string): boolean => missing.some((nic) => nic.ifName === ifName);
  const wanted = demand.nics.filter(({ ifName }) => isMissing(ifName));
  const allocating = { registry, poolCache, cluster, metrics };
  const claim = (admitted: AddressDemand) => allocateAddresses(allocating, admitted);
  const lacking = { ...demand, nics: wanted };
  const { epoch } = cluster ?? {};
  const { created } = await (epoch ? claimFirst({ epoch, registry, poolCache }, lacking, claim) : claim(lacking));
  return { claimed: groupByNic(created), found, attached };
}

/** Waits until the pool cache knows the pools, without those still being generated. Rejects as the selection. */
async function demandAhead(
  deps: ClaimAheadDeps,
  pod: Pod,
  { ifName, network, ipamConf }: AnnouncedNic,
  deadline: AddDeadline,
): Promise<AddressDemand> {
  invariant(ipamConf !== undefined, "Only NICs of this plugin are claimed ahead");
  const identity = await deps.identityOf(pod, ifName, deadline.signal);
  const request = { identity, ifName, network, ipamConf, containerId: "", requested: [] };
  // The ADD logs the warnings.
  const quiet = { ...deps, cluster: undefined, log: deps.log.child({}, { level: "error" }) };
  const { demand } = await prepareDemand(quiet, request, deadline);
  // The ADD waits for such a pool.
  return { ...demand, skipIfFull: isGrowing };
}

function groupByNic(rows: readonly Allocation[]): Map<string, readonly Allocation[]> {
  return Map.groupBy(rows, ({ ifName }) => ifName);
}

function leftToAdd(why: string): CniError {
  return new CniError(ErrorCode.TryAgainLater, why);
}
