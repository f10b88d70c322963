/**
 * From a NIC that wants addresses to the demand that the claim serves: pod and namespace → selection → where the search starts.
 * Called by add.ts for a request, and by the prefetch for a NIC whose ADD is still to come.
 * Effects: none; waits where a pool may just be on its way.
 */
import type { RequestedIp } from "../../cni/request.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import type { NicDemand, Selection, Subject } from "../../ipam/model.ts";
import { findUnservable } from "../../ipam/refusal.ts";
import { selectPools } from "../../ipam/selection.ts";
import type { Log } from "../../lib/log.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { NicReference, NicTools } from "../nic-definition.ts";
import type { Catalogue } from "./catalogue.ts";
import type { AddressDemand } from "./claim-addresses.ts";
import type { PodIdentity } from "./pod-identity.ts";
import { describeSubject } from "./subject.ts";

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
  readonly asked: readonly RequestedIp[];
}

export interface DemandTools extends NicTools {
  readonly catalogue: Catalogue;
  readonly node: Subject["node"];
  readonly log: Log;
  /** False when no pool came or changed in the time for which it is worth waiting. Absent: all that is there is known. */
  readonly awaitPools?: ((signal: AbortSignal) => Promise<boolean>) | undefined;
}

export interface Prepared {
  readonly subject: Subject;
  readonly selection: Selection;
  readonly demand: AddressDemand & { readonly nic: NicReference };
}

/** Throws what selectPools throws, and ConfigError for an annotation of the namespace. */
export async function prepareDemand(tools: DemandTools, nic: WantingNic, signal: AbortSignal): Promise<Prepared> {
  const { subject, selection } = await select(tools, nic, signal);
  const { identity, ifName, network, containerId, netns, asked } = nic;
  const { owner, namespace, name, workload } = identity;
  for (const warning of selection.warnings) tools.log.warn({ namespace, pod: name, ifName }, warning);
  return {
    subject,
    selection,
    demand: {
      nics: selection.nics,
      asked,
      claimant: { owner, namespace, pod: name, ifName, containerId, network, netns, workload },
      seedText: seedOf(identity),
      isWhole: selection.nics.length > 1 || (identity.subject?.annotations.networks ?? []).length === 0,
      nic: { ifName, network, pod: identity.subject },
      signal,
    },
  };
}

/** Pods of the same name start at the same place; those of a workload that keeps addresses at a place of the workload's (allocation rule 8). */
function seedOf({ workload, owner, namespace, name }: PodIdentity): string {
  if (workload !== undefined) return `${workload.uid}/${workload.member}`;
  return name === "" ? owner : `${namespace}/${name}`;
}

interface Selected {
  readonly subject: Subject;
  readonly selection: Selection;
}

/** A watch tells of a pool a moment after its maker has heard that it is there: a NIC that nobody serves looks once more. */
async function select(tools: DemandTools, nic: WantingNic, signal: AbortSignal): Promise<Selected> {
  for (;;) {
    const snapshot = await tools.catalogue.settled();
    try {
      const selected = selectNow(tools, nic, snapshot);
      if (isServable(selected.selection.nics) || !(await tools.awaitPools?.(signal))) return selected;
    } catch (error) {
      if (!(await tools.awaitPools?.(signal))) throw error;
    }
  }
}

function selectNow(tools: DemandTools, nic: WantingNic, snapshot: Snapshot): Selected {
  const { identity, ifName, network, ipamConf } = nic;
  const networkNames = tools.networkNames({ ifName, network, pod: identity.subject });
  const subject = describeSubject(snapshot, { identity, ifName, network, networkNames, ipamConf, node: tools.node });
  return { subject, selection: selectPools(subject, snapshot.pools, snapshot.refused) };
}

function isServable(nics: readonly NicDemand[]): boolean {
  return findUnservable(nics) === undefined;
}
