/**
 * From a NIC that wants addresses to the demand that the claim serves: pod and namespace → selection → where the search starts.
 * Effects: none; waits where a pool may just be on its way.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { RequestedIp } from "../../cni/request.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import { announcedNics, claimedWith } from "../../ipam/announced-nics.ts";
import type { NicDemand, Selection, Subject } from "../../ipam/model.ts";
import { findUnservable } from "../../ipam/refusal.ts";
import { askedByClaim, refuseClaim, workloadOfClaim } from "../../ipam/retention.ts";
import { selectPools } from "../../ipam/selection.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp } from "../../net/ip.ts";
import { memberKey, type Workload } from "../../resources/ip-allocation.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { NicReference, NicSettings } from "../nic-definition.ts";
import type { AddressDemand } from "./allocate.ts";
import type { Catalogue } from "./catalogue.ts";
import type { PodIdentity } from "./pod-identity.ts";
import { describeSubject } from "./subject.ts";
import { limitsFor } from "./tenant-limits.ts";

/** How long an ADD that no pool may serve waits for one that was made just before it: milliseconds. @limit */
export const POOL_GRACE_MS = 300;

/** A NIC for which addresses are wanted, now or soon. */
export interface WantingNic {
  readonly identity: PodIdentity;
  readonly ifName: string;
  /** `name` of the network's configuration. */
  readonly network: string;
  readonly ipamConf: IpamConf;
  /** "": ahead of the NIC's ADD. */
  readonly containerId: string;
  readonly netns?: string | undefined;
  readonly requested: readonly RequestedIp[];
}

export interface DemandTools extends NicSettings {
  readonly catalogue: Catalogue;
  readonly node: Subject["node"];
  readonly log: Log;
  readonly nowMs: () => number;
  /** Absent: all that is there is known. */
  readonly poolChanges?: PoolChanges | undefined;
}

/** Changes of pools and settings, and addresses that become free on this node. */
export interface PoolChanges {
  /** How many there were. */
  readonly count: number;
  /** Resolves when there were more than `since`; false when none came within so many milliseconds. Rejects with the signal's reason. */
  changed(signal: AbortSignal, wait: { readonly since: number; readonly withinMs: number }): Promise<boolean>;
}

export interface Prepared {
  readonly subject: Subject;
  readonly selection: Selection;
  readonly demand: AddressDemand & { readonly nic: NicReference };
}

/** Throws what selectPools throws, and ConfigError for an annotation of the namespace. */
export async function prepareDemand(tools: DemandTools, nic: WantingNic, signal: AbortSignal): Promise<Prepared> {
  const { subject, selection } = await select(tools, nic, signal);
  const { identity, ifName, network, containerId, netns } = nic;
  const annotations = identity.subject?.annotations ?? {};
  const isClaimed = claimedWith(ifName, annotations, subject.firstNic);
  const nics = selection.nics.filter((each) => isClaimed(each.ifName));
  const { workloads, requested } = followClaims(tools, nic, nics);
  const { owner, namespace, name, workload } = identity;
  // Two families for each NIC that it announces, and what is wanted now.
  const most =
    2 * announcedNics(annotations, subject.firstNic).length + nics.flatMap(({ families }) => families).length;
  const limits = limitsFor(tools.catalogue.snapshot, namespace, most);
  for (const warning of selection.warnings) tools.log.warn({ namespace, pod: name, ifName }, warning);
  return {
    subject,
    selection,
    demand: {
      nics,
      requested,
      workloads,
      limits,
      claimant: { owner, namespace, pod: name, ifName, containerId, network, netns, workload },
      seedText: seedOf(identity),
      coversPod:
        nics.length === selection.nics.length && (nics.length > 1 || (annotations.networks ?? []).length === 0),
      nic: { ifName, network, pod: identity.subject },
      signal,
    },
  };
}

/**
 * The IPAMClaims of the NICs that are claimed keep their addresses, and may ask for some. Throws CniError 11 when one is not there, and 102 when one is
 * for another NIC than refers to it.
 */
function followClaims(
  tools: DemandTools,
  { identity: { claims, subject }, ifName, network, requested }: WantingNic,
  nics: readonly NicDemand[],
): { readonly workloads: ReadonlyMap<string, Workload> | undefined; readonly requested: readonly RequestedIp[] } {
  if (claims === undefined || claims.size === 0) return { workloads: undefined, requested };
  const workloads = new Map<string, Workload>();
  for (const nic of nics) {
    const named = claims.get(nic.ifName);
    if (named === undefined) continue;
    const source = `IPAMClaim "${named.namespace}/${named.name}" of interface "${nic.ifName}"`;
    const { claim } = named;
    if (claim === undefined) throw new CniError(ErrorCode.TryAgainLater, `${source} does not exist`);
    workloads.set(nic.ifName, workloadOfClaim(claim));
    if (nic.ifName !== ifName) continue;
    const names = [network, ...(tools.networkNames({ ifName, network, pod: subject }) ?? [])];
    const refusal = refuseClaim(claim, ifName, names);
    if (refusal !== undefined) throw new CniError(ErrorCode.InvalidAnnotation, `${source} cannot serve it: ${refusal}`);
  }
  const claim = claims.get(ifName)?.claim;
  const byClaim = claim === undefined ? [] : askedByClaim(claim);
  const isNew = ({ ip }: RequestedIp): boolean => !requested.some((other) => equalIp(other.ip, ip));
  return { workloads, requested: [...requested, ...byClaim.filter(isNew)] };
}

/** Pods of the same name start at the same place; those of a workload that keeps addresses at a place of the workload's (allocation rule 8). */
function seedOf({ workload, owner, namespace, name }: PodIdentity): string {
  if (workload !== undefined) return memberKey(workload);
  return name === "" ? owner : `${namespace}/${name}`;
}

interface Selected {
  readonly subject: Subject;
  readonly selection: Selection;
}

/** A watch tells of a pool a moment after its maker has heard that it is there: a NIC that nobody serves looks once more. */
async function select(tools: DemandTools, nic: WantingNic, signal: AbortSignal): Promise<Selected> {
  const { poolChanges, nowMs } = tools;
  const untilMs = nowMs() + POOL_GRACE_MS;
  for (;;) {
    const since = poolChanges?.count ?? 0;
    const hasChanged = async (): Promise<boolean> =>
      (await poolChanges?.changed(signal, { since, withinMs: untilMs - nowMs() })) ?? false;
    const snapshot = await tools.catalogue.loaded();
    try {
      const selected = selectNow(tools, nic, snapshot);
      if (isServable(selected.selection.nics) || !(await hasChanged())) return selected;
    } catch (error) {
      if (!(await hasChanged())) throw error;
    }
  }
}

function selectNow(tools: DemandTools, nic: WantingNic, snapshot: Snapshot): Selected {
  const { identity, ifName, network, ipamConf } = nic;
  const networkNames = tools.networkNames({ ifName, network, pod: identity.subject });
  const subject = describeSubject(snapshot, { identity, ifName, network, networkNames, ipamConf, node: tools.node });
  return { subject, selection: selectPools(subject, snapshot.pools, snapshot.refused) };
}

/** For pools that are generated the ADD waits longer, once it knows that the NIC has no address yet (generated/supply-wait.ts). */
function isServable(nics: readonly NicDemand[]): boolean {
  const unservable = findUnservable(nics);
  return unservable === undefined || unservable.demand.generated !== undefined;
}
