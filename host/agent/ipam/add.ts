/**
 * ADD of `berth`: pod and namespace → selection → claim → result (docs/develop/allocation.md); once more while a
 * generated pool is still growing.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { type AttachRequest, decodePodArgs, requestedIps } from "../../cni/request.ts";
import type { AnnotatedRoute } from "../../config/annotations.ts";
import { describeForeign } from "../../config/foreign-annotations.ts";
import { decodeIpamConf } from "../../config/ipam-conf.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import type { NicDemand, Selection, Subject } from "../../ipam/model.ts";
import { buildNicResult, findPoolOf, routesOfNic } from "../../ipam/nic-result.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../ipam/requested-ips.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, formatIp, isLinkLocal } from "../../net/ip.ts";
import type { SourceName } from "../../records/audit-line.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";
import type { Detection } from "../detection/open-detection.ts";
import type { AddDeadline, Clock } from "../request/add-deadline.ts";
import type { NicSettings } from "../request/nic-definition.ts";
import type { Addition } from "../request/plugin.ts";
import type { Claimed } from "./allocate.ts";
import type { AttachingNics } from "./attaching-nics.ts";
import { claimVerified } from "./claim-verified.ts";
import type { ClusterIpam, ReportedPod } from "./cluster-ipam.ts";
import { type Prepared, prepareDemand, type WantingNic } from "./demand.ts";
import { mayBeLeased, requireLeased } from "./leased-blocks.ts";
import type { Identifier } from "./pod-identity.ts";
import type { PoolInventory } from "./pool-inventory.ts";
import { type AddressDemand, type ForeseenRows, isSameAddress, isServed } from "./sources/source.ts";
import { hasUnobserved, type SkipIfFull, untilObserved, waitForPool } from "./wait-for-pool.ts";

/** The dependencies of an ADD. */
export interface AddDeps {
  readonly identifier: Identifier;
  readonly networks: NicSettings;
  readonly node: NonNullable<Subject["node"]>;
  readonly inventory: PoolInventory;
  readonly detection: Detection;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent on a view and without a cluster. */
  readonly attaching?: AttachingNics | undefined;
  /** The record of released attachments. Absent on a view and without a cluster. */
  readonly fences?: { attaching(attachment: Attachment): void; released(row: Allocation): void } | undefined;
  /** Absent in the embedded mode. */
  readonly cluster?: ClusterIpam | undefined;
  /** As in {@link AllocateDeps}. */
  readonly view?: ForeseenRows | undefined;
  /** Only of an explanation: ends before the candidate pools are searched. */
  readonly onSelected?: (selection: Selection) => Promise<void>;
}

/** `signal` aborts when the caller hangs up. */
export function addAddresses(deps: AddDeps, request: AttachRequest, signal: AbortSignal): Promise<Addition> {
  if (deps.attaching === undefined) return addToNic(deps, request, signal);
  return deps.attaching.run(request, () => addToNic(deps, request, signal));
}

async function addToNic(deps: AddDeps, request: AttachRequest, signal: AbortSignal): Promise<Addition> {
  const { ifName, containerId, netns, netnsCookie } = request;
  const { identifier, cluster, clock } = deps;
  const deadline = { clock, signal };
  const { namespace = "", name = "", uid: owner = "" } = decodePodArgs(request.args);
  let pod: ReportedPod = { namespace, name, owner };
  try {
    const { vendorConf, firstNic } = deps.inventory.snapshot;
    const ipamConf = decodeIpamConf(request.netConf.ipam, "CNI configuration, ipam", vendorConf);
    const identity = await identifier.identify(request, signal);
    pod = identity;
    if (cluster !== undefined && identity.foreignAnnotations !== undefined) {
      const text = describeForeign(identity.foreignAnnotations, ifName === firstNic);
      if (text !== undefined) cluster.reportIgnored(identity, text);
    }
    deps.fences?.attaching(request);
    const nic = { identity, ifName, network: request.netConf.name, ipamConf, containerId, netns, netnsCookie };
    await cluster?.prefetched.waitForClaim(identity.owner, ifName, signal);
    const wanting = { ...nic, main: request.netConf, requested: requestedIps(request) };
    return await waitForPool(deps, (skipIfFull) => addTo(deps, wanting, skipIfFull, deadline), deadline);
  } catch (error) {
    if (!signal.aborted && pod.name !== "") cluster?.reportRefusal(pod, error);
    throw error;
  }
}

/** A coordinator with podMACPrefix does not see a MAC that the runtime hands only to other plugins of the chain. */
function rememberMac({ answered, links }: Detection, { ifName, containerId, netns = "", main }: WantingNic): void {
  const requested = main?.runtimeConfig.mac ?? main?.args.cni.mac;
  answered.setMac({ containerId, ifName }, { requested, found: links.observe(netns, ifName)?.mac });
}

async function addTo(deps: AddDeps, nic: WantingNic, skipIfFull: SkipIfFull, deadline: AddDeadline): Promise<Addition> {
  const { inventory, detection, cluster, view } = deps;
  const { registry, poolCache, metrics } = inventory;
  const { identity, ifName, containerId } = nic;
  const { namespace, name: pod, owner: uid } = identity;
  let prepared = await prepareDemand(deps, nic, deadline);
  let isBlind = cluster !== undefined && hasUnobserved(inventory.snapshot, prepared.demand);
  if (isBlind && cluster !== undefined) {
    await untilObserved({ inventory, poolChanges: cluster.poolChanges }, prepared.demand, deadline);
    prepared = await prepareDemand(deps, nic, deadline);
    isBlind = hasUnobserved(inventory.snapshot, prepared.demand);
  }
  const { selection, demand } = prepared;
  if (deps.onSelected !== undefined) await deps.onSelected(selection);
  const own = selection.nics.find((each) => each.ifName === ifName);
  let ahead = cluster?.prefetched.claimedFor(uid, ifName) ?? [];
  if (ahead.length > 0 && (own === undefined || !isFit(poolCache, own, demand, ahead))) {
    await cluster?.prefetched.discard(uid, ifName);
    ahead = [];
  }
  const claiming = { registry, poolCache, detection, cluster, metrics, view, isBlind };
  const isLeasing = cluster !== undefined && poolCache.leasing.size > 0 && mayBeLeased(demand);
  const attached = isLeasing ? await registry.findAttachment(demand.claimant) : [];
  const claimed = await claimVerified(claiming, { ...demand, skipIfFull });
  const { held, created } = claimed;
  const undo = async (): Promise<void> => {
    detection.answered.delete({ containerId, ifName });
    await registry.undo(created);
  };
  try {
    if (isLeasing) {
      const known = [...attached, ...claimed.picked.filter(({ source }) => source === "retained")];
      await requireLeased(cluster, {
        held,
        isKnown: (row) => known.some((each) => isSameAddress(each, row)),
        pools: inventory.snapshot.pools,
        signal: deadline.signal,
      });
    }
    const result = await resultOf(inventory, prepared, { own, held });
    if (ahead.length > 0) cluster?.prefetched.used(uid, ifName);
    detection.answered.answer({ containerId, ifName }, held);
    const { podMACPrefix, mode, acceptRA } = demand.definition.settings;
    // The main plugin could not add a route that the router's own advertisement has made.
    if (!acceptRA && result.routes.some(({ dst, gw }) => dst.length === 0 && gw !== undefined && isLinkLocal(gw)))
      detection.links.refuseDefaults?.(nic.netns ?? "", ifName);
    if (podMACPrefix !== "" && mode !== "disable") rememberMac(detection, nic);
    const sources = held.map((each) => sourceOf(each, claimed, ahead));
    return { result, undo, assigned: { namespace, pod, uid, allocations: held, sources, rule: own?.rule ?? "" } };
  } catch (error) {
    await undo();
    throw error;
  }
}

/** Returns where a held address came from; `ahead` was claimed ahead for the NIC. */
function sourceOf(row: Allocation, { created, picked }: Claimed, ahead: readonly Allocation[]): SourceName {
  const isRow = (each: Pick<Allocation, "space" | "ip">): boolean => isSameAddress(each, row);
  if (ahead.some(isRow)) return "prefetched";
  if (!created.some(isRow)) return "own";
  const pick = picked.find(isRow);
  return pick?.requested === true ? "requested" : (pick?.source ?? "free");
}

async function resultOf(
  inventory: PoolInventory,
  prepared: Prepared,
  { own, held }: { readonly own: NicDemand | undefined; readonly held: readonly Allocation[] },
): Promise<Addition["result"]> {
  const { pools, refused } = inventory.snapshot;
  for (const each of held) if (findPoolOf(each, pools) === undefined) refuseUnusable(each, refused);
  const { routes = [] } = prepared.subject.pod?.annotations ?? {};
  const podRoutes = routes.length > 0 ? await podRoutesOf(inventory, prepared, held) : [];
  return buildNicResult({ held, pools, cleanGateway: own?.cleanGateway ?? false, podRoutes });
}

/** Returns the pod's own routes that the NIC carries. */
async function podRoutesOf(
  { registry, snapshot: { pools } }: PoolInventory,
  { subject, selection, demand }: Prepared,
  own: readonly Allocation[],
): Promise<readonly AnnotatedRoute[]> {
  const bound = (await registry.findOwner(demand.claimant.owner)).filter(({ state }) => state === "Bound");
  const others = bound.filter(({ ifName }) => ifName !== subject.ifName);
  const held = inOrder([...own, ...others], subject);
  const areAll = isLastNic(selection, subject, bound);
  return routesOfNic(subject.pod?.annotations.routes ?? [], subject.ifName, { held, pools, areAll });
}

/** Returns the rows in the order in which their NICs are attached; last those that the pod does not announce. */
function inOrder(rows: readonly Allocation[], { pod, firstNic }: Subject): Allocation[] {
  const names = announcedNics(pod?.annotations ?? {}, firstNic);
  const placeOf = ({ ifName }: Allocation): number => (names.includes(ifName) ? names.indexOf(ifName) : names.length);
  return rows.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Throws CniError 11 if the pool is invalid: its gateway and routes are unknown. A pool that is gone has none. */
function refuseUnusable({ ip, pool, ifName }: Allocation, refused: ReadonlyMap<string, string>): void {
  const reason = refused.get(pool);
  if (reason === undefined) return;
  const text = `Interface "${ifName}" has ${formatIp(ip)} of pool "${pool}", which ${reason}; fix the pool`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

/**
 * Whether all NICs of the pod that could carry a route are known now. With a list of NICs (`ippools`, `subnets`):
 * when all of them have addresses. Else when this is the last NIC of the pod's list of networks; a NIC that is not
 * announced counts as the last.
 */
function isLastNic({ nics }: Selection, { pod, firstNic, ifName }: Subject, bound: readonly Allocation[]): boolean {
  if (nics.length > 1) return nics.every((nic) => bound.some((row) => row.ifName === nic.ifName));
  const names = announcedNics(pod?.annotations ?? {}, firstNic);
  return !names.includes(ifName) || ifName === names.at(-1);
}

/**
 * Returns whether the NIC would be served with just these addresses: all of them lie in candidates, each family has
 * one, and no other address is requested.
 */
function isFit(
  poolCache: PoolCache,
  nic: NicDemand,
  { requested }: AddressDemand,
  claimed: readonly Allocation[],
): boolean {
  const isWanted = ({ space, ip }: Allocation): boolean =>
    findPoolOfRequested(poolCache, nic, ip, space).kind === "pool";
  const isGiven = requested.every((request) => claimed.some(({ ip }) => equalIp(ip, request.ip)));
  return isServed(nic, claimed) && isGiven && claimed.every(isWanted);
}
