/**
 * ADD of `berth`: pod and namespace → selection → claim → result (docs/allocation.md); once more when a pool is still being generated.
 * Effects: those of claim-verified.ts.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { type AttachRequest, requestedIps } from "../../cni/request.ts";
import { decodeIpamConf } from "../../config/ipam-conf.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import type { Selection, Subject } from "../../ipam/model.ts";
import { buildNicResult, requireCarriers } from "../../ipam/nic-result.ts";
import type { PoolsByName } from "../../ipam/selection.ts";
import { formatIp } from "../../net/ip.ts";
import { type Prefix, prefixContains } from "../../net/prefix.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Addition } from "../plugin.ts";
import type { AllocateDeps } from "./allocate.ts";
import { claimVerified, type DetectionTools } from "./claim-verified.ts";
import { type DemandTools, prepareDemand, type WantingNic } from "./demand.ts";
import type { Identifier, PodIdentity } from "./pod-identity.ts";
import { giveBackUnfit, type Prefetched } from "./prefetched.ts";
import { type SkipIfFull, type SupplyTools, waitForPool } from "./wait-for-pool.ts";

export interface IpamTools extends DemandTools, SupplyTools, Omit<AllocateDeps, "poolCache"> {
  readonly identifier: Identifier;
}

export interface AddTools extends IpamTools, DetectionTools {
  /** Absent: nothing is claimed before an ADD. */
  readonly prefetched?: Prefetched | undefined;
  /** Told of each ADD of a known pod that fails, unless its caller hung up. Absent: nobody wants to know. */
  readonly reportRefusal?: ((pod: PodIdentity, error: unknown) => void) | undefined;
}

export async function addAddresses(tools: AddTools, request: AttachRequest, signal: AbortSignal): Promise<Addition> {
  const { ifName, containerId, netns } = request;
  const ipamConf = decodeIpamConf(request.netConf.ipam, "CNI configuration, ipam", tools.catalogue.snapshot.vendorConf);
  const identity = await tools.identifier.identify(request, signal);
  const nic = { identity, ifName, network: request.netConf.name, ipamConf, containerId, netns };
  try {
    await tools.prefetched?.waitForClaim(identity.owner, ifName, signal);
    const wanting = { ...nic, requested: requestedIps(request) };
    return await waitForPool(tools, (skipIfFull) => addTo(tools, wanting, skipIfFull, signal), signal);
  } catch (error) {
    if (!signal.aborted) tools.reportRefusal?.(identity, error);
    throw error;
  }
}

async function addTo(tools: AddTools, nic: WantingNic, skipIfFull: SkipIfFull, signal: AbortSignal): Promise<Addition> {
  const { identity, ifName, containerId } = nic;
  const { subject, selection, demand } = await prepareDemand(tools, nic, signal);
  await giveBackUnfit(tools, demand);
  const { held, created } = await claimVerified(
    { ...tools, poolCache: tools.catalogue.poolCache },
    { ...demand, skipIfFull },
  );
  const undo = async (): Promise<void> => {
    tools.verified.delete({ containerId, ifName });
    await tools.registry.undo(created);
  };
  try {
    const result = await resultOf(tools, selection, subject, identity.owner, held);
    tools.prefetched?.used(identity.owner, ifName);
    return { result, undo };
  } catch (error) {
    await undo();
    throw error;
  }
}

async function resultOf(
  tools: IpamTools,
  selection: Selection,
  subject: Subject,
  owner: string,
  held: readonly Allocation[],
): Promise<Addition["result"]> {
  const podRoutes = subject.pod?.annotations.routes ?? [];
  if (podRoutes.length > 0) {
    const all = (await tools.registry.findOwner(owner)).filter(({ state }) => state === "Bound");
    if (isLastNic(selection, subject, all)) requireCarriers(podRoutes, all.map(addressOf));
  }
  const { pools, refused } = tools.catalogue.snapshot;
  return buildNicResult({
    held: held.map((each) => ({ ...each, pool: findPoolOf(each, pools) ?? refuseUnusable(each, refused) })),
    cleanGateway: selection.nics.find(({ ifName }) => ifName === subject.ifName)?.cleanGateway ?? false,
    podRoutes,
  });
}

/** The pool of an address that may be older than the pool: renamed or moved, only one around the address has its gateway. */
function findPoolOf({ space, ip, pool }: Allocation, pools: PoolsByName): IpPool | undefined {
  const isAround = ({ spec }: IpPool): boolean => spec.addressSpace === space && prefixContains(spec.subnet, ip);
  const own = pools.get(pool);
  return own !== undefined && isAround(own) ? own : [...pools.values()].find(isAround);
}

/** Without its pool an address has no gateway and no routes. A pool that is gone has none; one that is only badly written will have them again. */
function refuseUnusable({ ip, pool, ifName }: Allocation, refused: ReadonlyMap<string, string>): undefined {
  const reason = refused.get(pool);
  if (reason === undefined) return undefined;
  const text = `Interface "${ifName}" has ${formatIp(ip)} of pool "${pool}", which ${reason}; mend the pool`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

function addressOf({ ip, prefixLength }: Allocation): Prefix {
  return { ip, length: prefixLength };
}

/**
 * Whether all NICs of the pod that could carry a route are known now: with a list of NICs (`ippools`, `subnets`) when all of them have addresses, as they have at once when
 * the pod announces them; else the last one of the pod's list of networks decides, and a NIC that nothing announces is the last.
 */
function isLastNic({ nics }: Selection, { pod, firstNic, ifName }: Subject, bound: readonly Allocation[]): boolean {
  if (nics.length > 1) return nics.every((nic) => bound.some((row) => row.ifName === nic.ifName));
  const names = announcedNics(pod?.annotations ?? {}, firstNic);
  return !names.includes(ifName) || ifName === names.at(-1);
}
