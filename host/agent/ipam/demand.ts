/** The demand of an ADD for its NIC: pod and namespace → selection → limits → start of the search for an address. */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { NetConf } from "../../cni/net-conf.ts";
import type { RequestedIp } from "../../cni/request.ts";
import { isEnabled } from "../../config/annotations.ts";
import type { IpamConf } from "../../config/ipam-conf.ts";
import { claimedWith, faultOfNic } from "../../ipam/announced-nics.ts";
import type { NicDemand, Selection, Subject } from "../../ipam/model.ts";
import { takesFirstAddress } from "../../ipam/pick.ts";
import { requestedByAnnotation, requestedByReservation, withReserved } from "../../ipam/requested-ips.ts";
import { refuseClaim, requestedByClaim, workloadOfClaim } from "../../ipam/retention.ts";
import { findUnservable, selectPools } from "../../ipam/selection.ts";
import { hasIpv6 } from "../../kernel/sysctl.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp } from "../../net/ip.ts";
import type { NicOfRow } from "../../registry/registry.ts";
import { memberKey, type Workload } from "../../resources/member.ts";
import { ownNames } from "../../resources/reserved-ip.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";
import { type AddDeadline, NEW_POOL_WAIT_MS, Timeout } from "../request/add-deadline.ts";
import { type NicDefinition, type NicSettings, pluginsOfNic } from "../request/nic-definition.ts";
import type { PoolChanges } from "./cluster-ipam.ts";
import type { PodIdentity } from "./pod-identity.ts";
import type { PoolInventory } from "./pool-inventory.ts";
import type { AddressDemand } from "./sources/source.ts";
import { limitsFor } from "./tenant-limits.ts";

/** A NIC for which addresses are demanded, by its ADD or ahead of it. */
export interface WantingNic extends NicOfRow {
  readonly identity: PodIdentity;
  readonly ipamConf: IpamConf;
  readonly requested: readonly RequestedIp[];
  /** The configuration of its main plugin. Absent ahead of the ADD: the definition of the network counts. */
  readonly main?: NetConf | undefined;
}

export interface DemandDeps {
  readonly inventory: PoolInventory;
  readonly networks: NicSettings;
  readonly node: NonNullable<Subject["node"]>;
  readonly log: Log;
  readonly detection: { readonly prober: Pick<QuarantineProber, "salt" | "hasSuspect"> };
  /** Default: no pool can be on its way. */
  readonly cluster?: { readonly poolChanges: PoolChanges } | undefined;
}

interface Selected {
  readonly snapshot: Snapshot;
  readonly subject: Subject;
  readonly selection: Selection;
  readonly definition: NicDefinition;
}

export interface Prepared extends Selected {
  readonly demand: AddressDemand & { readonly definition: NicDefinition };
}

/**
 * Throws what selectPools throws, ConfigError for an annotation of the NIC's network, and CniError 108 on a kernel
 * without IPv6.
 */
export async function prepareDemand(deps: DemandDeps, nic: WantingNic, deadline: AddDeadline): Promise<Prepared> {
  const { prober } = deps.detection;
  const selected = await select(deps, nic, deadline);
  const { snapshot, subject, selection, definition } = selected;
  const { identity, ifName, network, containerId, netns, netnsCookie } = nic;
  const { claims, owner, namespace, name: pod, workload, isMigrationTarget } = identity;
  const ofPod = { owner, namespace, pod, workload, isMigrationTarget };
  const annotations = identity.subject?.annotations ?? {};
  const fault = faultOfNic(annotations, ifName, subject.firstNic);
  if (fault !== undefined) throw fault;
  const nics = selection.nics.length === 1 ? selection.nics : claimedNow(selected, identity);
  if (subject.vendorConf.enableIPv6) requireIpv6(nics);
  const { networks = [] } = annotations;
  // Two families for each NIC that it announces, and the present demand.
  const most = 2 * (1 + networks.length) + nics.flatMap(({ families }) => families).length;
  for (const warning of selection.warnings)
    if (deps.log.isLevelEnabled("warn") && deps.inventory.isNewWarning(`${network} ${warning}`))
      deps.log.warn({ namespace, pod, ifName }, warning);
  return {
    ...selected,
    demand: {
      nics,
      requested: requestedByName(snapshot, identity, ifName, nic.requested),
      workloads: claims && followClaims(nic, definition, { nics, claims }),
      limits: limitsFor(snapshot, namespace, most),
      claimant: { ...ofPod, ifName, containerId, network, netns, netnsCookie },
      seedText: `${seedOf(identity)}${prober.salt}`,
      randomize: (pool) => prober.hasSuspect(pool),
      coversPod: nics.length === selection.nics.length && (nics.length > 1 || networks.length === 0),
      definition,
      deadline,
    },
  };
}

/** Returns the NICs whose addresses are claimed with those of this one: of others only their ADD has all requests. */
function claimedNow({ snapshot, subject, selection }: Selected, identity: PodIdentity): readonly NicDemand[] {
  const { ifName, firstNic } = subject;
  const isClaimed = claimedWith(ifName, identity.subject?.annotations ?? {}, firstNic);
  const isNow = (nic: string): boolean => nic === ifName || requestedByName(snapshot, identity, nic).length === 0;
  return selection.nics.filter((nic) => isClaimed(nic.ifName) && isNow(nic.ifName));
}

/** Throws CniError 108 for an address that no main plugin could put on a NIC of this node. */
function requireIpv6(nics: readonly NicDemand[]): void {
  const six = nics.find(({ families }) => families.some(({ family }) => family === 6));
  if (six === undefined || hasIpv6()) return;
  throw new CniError(
    ErrorCode.KernelRefused,
    `Interface "${six.ifName}" is to get an IPv6 address, but this node's kernel runs without IPv6 (ipv6.disable=1); ` +
      "start the node with IPv6, or set enableIPv6 to false in vendor-conf",
  );
}

/** Another NIC of the demand, and one ahead of its ADD, has the main plugin of its network's definition. */
function takesFirst(networks: NicSettings, { identity, main, ...nic }: WantingNic, ifName: string): boolean {
  if (main !== undefined && ifName === nic.ifName) return takesFirstAddress(main);
  const pod = identity.subject;
  const announced = ifName === nic.ifName ? nic : pod && networks.nicsOf(pod).find((each) => each.ifName === ifName);
  if (announced === undefined) return false;
  const plugins = pluginsOfNic(networks, { ifName, network: announced.network, pod });
  return plugins.some(({ entry }) => takesFirstAddress({ type: String(entry.type), raw: entry }));
}

/**
 * Returns the addresses of the NIC that `requests`, annotation, IPAMClaim and reservations name, each once. Annotation
 * and reservations are ignored in disabled families, as names of pools are. A migrating machine keeps the addresses of
 * its start, whatever is reserved or reported for it meanwhile.
 */
function requestedByName(
  snapshot: Snapshot,
  { namespace, name: pod, subject, claims, workload, isMigrationTarget = false }: PodIdentity,
  ifName: string,
  requests: readonly RequestedIp[] = [],
): RequestedIp[] {
  const { ips } = subject?.annotations ?? {};
  const named = claims?.get(ifName);
  // Most pods request none.
  if (requests.length + snapshot.reserved.length === 0 && ips === undefined && named === undefined) return [];
  const own = ownNames(namespace, pod, named?.name ?? workload?.member);
  const nic = { own, ifName, firstNic: snapshot.firstNic };
  const byAnnotation = requestedByAnnotation(ips, nic);
  const byClaim = named?.claim === undefined ? [] : requestedByClaim(named.claim);
  const all: RequestedIp[] = [];
  const isServed = ({ ip }: RequestedIp): boolean => isEnabled(ip.family, snapshot.vendorConf);
  for (const each of [...requests, ...byAnnotation.filter(isServed), ...byClaim])
    if (!(isMigrationTarget && each.isPreference) && !all.some(({ ip }) => equalIp(ip, each.ip))) all.push(each);
  return withReserved(all, isMigrationTarget ? [] : requestedByReservation(snapshot.reserved, nic).filter(isServed));
}

/**
 * Returns the IPAMClaims of the demanded NICs, which retain their addresses. Throws CniError 11 when one does not
 * exist, and 102 when one is for another NIC than refers to it.
 */
function followClaims(
  { ifName, network }: WantingNic,
  { networkNames = [] }: NicDefinition,
  { nics, claims }: { readonly nics: readonly NicDemand[]; readonly claims: NonNullable<PodIdentity["claims"]> },
): ReadonlyMap<string, Workload> {
  const workloads = new Map<string, Workload>();
  for (const nic of nics) {
    const named = claims.get(nic.ifName);
    if (named === undefined) continue;
    const source = `IPAMClaim "${named.namespace}/${named.name}" of interface "${nic.ifName}"`;
    const { claim } = named;
    if (claim === undefined) throw new CniError(ErrorCode.TryAgainLater, `${source} does not exist`);
    workloads.set(nic.ifName, workloadOfClaim(claim));
    if (nic.ifName !== ifName) continue;
    const refusal = refuseClaim(claim, ifName, [network, ...networkNames]);
    if (refusal !== undefined) throw new CniError(ErrorCode.InvalidAnnotation, `${source} cannot serve it: ${refusal}`);
  }
  return workloads;
}

/**
 * Pods of the same name start at the same place; those whose addresses are retained at a place of their address
 * owner's member (retention).
 */
function seedOf({ workload, owner, namespace, name }: PodIdentity): string {
  if (workload !== undefined) return memberKey(workload);
  return name === "" ? owner : `${namespace}/${name}`;
}

/** The watch reports a pool a moment after its creation: a NIC that no pool can serve selects once more. */
async function select(deps: DemandDeps, nic: WantingNic, deadline: AddDeadline): Promise<Selected> {
  const { inventory } = deps;
  const { poolChanges } = deps.cluster ?? {};
  let timeout: Timeout | undefined;
  for (;;) {
    let since = poolChanges?.changeCount ?? 0;
    const snapshot = await inventory.loaded();
    /** Waits for another snapshot. Addresses that become free, as with each DEL, change nothing in selection. */
    const hasOther = async (): Promise<boolean> => {
      timeout ??= new Timeout(deadline.clock, NEW_POOL_WAIT_MS);
      if (poolChanges === undefined) return false;
      while (await poolChanges.changed(deadline.signal, { since, withinMs: timeout.leftMs })) {
        if (inventory.snapshot !== snapshot) return true;
        since = poolChanges.changeCount;
      }
      return false;
    };
    try {
      const selected = selectNow(deps, nic, snapshot);
      const unservable = findUnservable(selected.selection.nics);
      // For generated pools the ADD waits longer, once it knows that the NIC has no address yet (wait-for-pool.ts).
      const isServable = unservable === undefined || unservable.demand.generated !== undefined;
      if (isServable || !(await hasOther())) return selected;
    } catch (error) {
      if (!(await hasOther())) throw error;
    }
  }
}

function selectNow(deps: DemandDeps, nic: WantingNic, snapshot: Snapshot): Selected {
  const { identity, ifName, network, ipamConf } = nic;
  const definition = deps.networks.definitionOf({ ifName, network, pod: identity.subject });
  const subject = {
    ...{ ifName, network, ipamConf, vendorConf: snapshot.vendorConf, node: deps.node, pod: identity.subject },
    networkNames: definition.networkNames,
    namespace: snapshot.namespaces.get(identity.namespace) ?? identity.home,
    firstNic: snapshot.firstNic,
  };
  const { nics, warnings } = selectPools(subject, snapshot.pools, snapshot.refused);
  const refused = deps.inventory.refused.get(identity.owner);
  const own = nics.map((each) => ({ ...each, refused, takesFirst: takesFirst(deps.networks, nic, each.ifName) }));
  return { snapshot, subject, selection: { nics: own, warnings }, definition };
}
