/**
 * Decides which addresses of running pods, which another IPAM gave them, become Berth's allocations
 * (docs/migration.md). The kernel says which NIC has which address; the runtimes' cached results say which pod and
 * container the NIC's namespace belongs to, and the answer to the NIC's ADD.
 */

import type { LiveAddress } from "../../../host/agent/request/live-namespaces.ts";
import type { CachedAttachment } from "../../../host/agent/request/runtime-cache.ts";
import { decodePodArgs } from "../../../host/cni/request.ts";
import { isFinished, isOwner, podFacts } from "../../../host/ipam/leak.ts";
import { equalIp, type Ip } from "../../../host/net/ip.ts";
import type { Mac } from "../../../host/net/mac.ts";
import { UNKNOWN_CONTAINER } from "../../../host/registry/journal.ts";
import { isAdopted } from "../../../host/registry/nic.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { locateAddress } from "../../../host/resources/locate-address.ts";
import type { Pod } from "../../../host/resources/pod.ts";
import type { ReservedIp } from "../../../host/resources/reserved-ip.ts";

export interface AdoptionEvidence {
  readonly cached: readonly CachedAttachment[];
  /** The addresses in all pods' namespaces on this node. */
  readonly live: readonly LiveAddress[];
  /** All rows of the journal. */
  readonly rows: readonly Allocation[];
  readonly pools: readonly IpPool[];
  readonly reserved: readonly ReservedIp[];
  /** Returns a pod of this node, as the watch has it. */
  readonly findPod: (namespace: string, name: string) => Pod | undefined;
  /** Returns undefined if the path leads into no namespace. */
  readonly netnsIdOf: (path: string) => string | undefined;
}

/** The pod and the sandbox that a NIC belongs to. `owner`: UID, of a static pod the hash of its manifest. */
interface NicOwner {
  readonly namespace: string;
  readonly pod: string;
  readonly owner: string;
  readonly containerId: string;
}

interface AddressPlacement {
  readonly ip: Ip;
  readonly space: string;
  readonly pool: string;
  readonly prefixLength: number;
}

/** A NIC, and those of its addresses that are to be adopted: at most one of a family. */
export interface AdoptableNic extends NicOwner {
  readonly ifName: string;
  readonly netns: string;
  readonly mac: Mac | undefined;
  /** Types of the IPAM plugins that its network names; empty if the runtime has not recorded that. */
  readonly ipams: readonly string[];
  readonly addresses: readonly AddressPlacement[];
}

export interface RefusedAddress {
  /** Undefined if it is unknown. */
  readonly owner: NicOwner | undefined;
  readonly ifName: string;
  readonly ip: Ip;
  /** A clause. */
  readonly reason: string;
}

/** Plugin whose NICs are Berth's own. */
const OWN_IPAM = "berth";

/** Returns whether Berth would allocate the address to another pod as soon as it is free. */
export function isAllocatable({ ip, space }: Pick<Allocation, "ip" | "space">, evidence: PoolEvidence): boolean {
  const pools = evidence.pools.filter(({ spec }) => spec.addressSpace === space && !spec.disable);
  return locateAddress(ip, pools, evidence.reserved).some(({ excluded }) => excluded === undefined);
}

type PoolEvidence = Pick<AdoptionEvidence, "pools" | "reserved">;

/**
 * Addresses that are in no pool, and those that Berth itself gave a NIC, are in no list. `recorded`: adopted before.
 */
export function planAdoption(evidence: AdoptionEvidence) {
  const byNamespace = Map.groupBy(evidence.cached, ({ netns }) => netns && evidence.netnsIdOf(netns));
  const byNic = Map.groupBy(evidence.live, ({ netnsId, ifName }) => `${netnsId} ${ifName}`);
  const plans = [...byNic.values()].map((addresses) => planNic(addresses, byNamespace, evidence));
  const placed = plans.flatMap(({ nic }) => nic ?? []);
  const isRecorded = (nic: AdoptableNic): boolean =>
    nic.addresses.every((address) => evidence.rows.some((row) => isAdopted(row) && isRowOf(row, nic, address)));
  return {
    adoptable: placed.filter((nic) => !isRecorded(nic)),
    recorded: placed.filter(isRecorded),
    refused: plans.flatMap(({ refused }) => refused),
  };
}

interface NicPlan {
  readonly nic?: AdoptableNic;
  readonly refused: readonly RefusedAddress[];
}

/** One NIC in the kernel, and the attachments of all namespaces by their {@link LiveAddress.netnsId}. */
function planNic(
  addresses: readonly LiveAddress[],
  byNamespace: ReadonlyMap<string | undefined, readonly CachedAttachment[]>,
  evidence: AdoptionEvidence,
): NicPlan {
  const foreign = addresses.filter(
    (each) => locateAddress(each.prefix.ip, evidence.pools, []).length > 0 && !isOfBerth(each, evidence),
  );
  const [first] = foreign;
  if (first === undefined) return { refused: [] };
  const { ifName, netns, mac } = first;
  const cached = byNamespace.get(first.netnsId) ?? [];
  const answered = cached.filter((each) => each.ifName === ifName);
  const ipams = [...new Set(answered.flatMap((each) => each.ipams))];
  if (ipams.includes(OWN_IPAM)) return { refused: [] };
  const owner = findOwner(cached);
  const refuseAll = (reason: string): NicPlan => ({
    refused: foreign.map(({ prefix: { ip } }) => ({ owner, ifName, ip, reason })),
  });
  if (owner === undefined) return refuseAll("no runtime has recorded with its UID which pod has this NIC");
  const obstacle = podObstacle(owner, evidence);
  if (obstacle !== undefined) return refuseAll(obstacle);
  const placements: AddressPlacement[] = [];
  const refused: RefusedAddress[] = [];
  for (const { prefix } of foreign) {
    const { ip } = prefix;
    const found = addressObstacle(ip, { nic: first, foreign, answered }, evidence) ?? placementOf(ip, evidence.pools);
    const isSecond = placements.some((each) => each.ip.family === ip.family);
    if (typeof found === "string") refused.push({ owner, ifName, ip, reason: found });
    else if (isSecond)
      refused.push({ owner, ifName, ip, reason: "Berth records one address of each family for a NIC" });
    else placements.push(found);
  }
  if (placements.length === 0) return { refused };
  return { nic: { ...owner, ifName, netns, mac, ipams, addresses: placements }, refused };
}

/**
 * Returns whether an ADD of Berth gave the NIC the address. A journal that was lost does not know for which network.
 */
function isOfBerth({ prefix, ifName, netnsId }: LiveAddress, { rows, netnsIdOf }: AdoptionEvidence): boolean {
  return rows.some(
    (row) =>
      row.state === "Bound" &&
      (row.network !== "" || row.containerId === UNKNOWN_CONTAINER) &&
      equalIp(row.ip, prefix.ip) &&
      row.ifName === ifName &&
      (row.netns === undefined || netnsIdOf(row.netns) === netnsId),
  );
}

function isRowOf(
  row: Allocation,
  { owner, containerId, ifName }: AdoptableNic,
  { ip, space }: AddressPlacement,
): boolean {
  const isOfNic = row.owner === owner && row.containerId === containerId && row.ifName === ifName;
  return isOfNic && row.space === space && equalIp(row.ip, ip);
}

/** Returns the pod of a namespace's attachments; undefined if none names it with its UID, or if they name several. */
function findOwner(cached: readonly CachedAttachment[]): NicOwner | undefined {
  const owners = cached.flatMap(({ containerId, args }): NicOwner[] => {
    const { namespace, name, uid } = decodePodArgs(args);
    return namespace === undefined || name === undefined || uid === undefined
      ? []
      : [{ namespace, pod: name, owner: uid, containerId }];
  });
  const isOne = new Set(owners.map(({ owner, containerId }) => `${owner} ${containerId}`)).size === 1;
  return isOne ? owners[0] : undefined;
}

/** Returns why nothing of the pod is adopted: a clause. */
function podObstacle({ namespace, pod, owner }: NicOwner, { findPod }: AdoptionEvidence): string | undefined {
  const found = findPod(namespace, pod);
  if (found === undefined || !isOwner(owner, podFacts(found))) return "the API server has no such pod on this node";
  if (isFinished(found)) return "its pod has finished";
  return found.deleting ? "its pod is ending" : undefined;
}

interface NicAddresses {
  readonly nic: Pick<LiveAddress, "netnsId" | "ifName">;
  /** The addresses that may be adopted. */
  readonly foreign: readonly LiveAddress[];
  /** Attachments of this very NIC. */
  readonly answered: readonly CachedAttachment[];
}

/** Returns why the address may be none that an IPAM gave the NIC: a clause. */
function addressObstacle(
  ip: Ip,
  { nic, foreign, answered }: NicAddresses,
  { live, pools }: AdoptionEvidence,
): string | undefined {
  const isElsewhere = (each: LiveAddress): boolean =>
    equalIp(each.prefix.ip, ip) && (each.netnsId !== nic.netnsId || each.ifName !== nic.ifName);
  const other = live.find(isElsewhere);
  if (other !== undefined) return `NIC ${other.ifName} in ${other.netns} has it as well`;
  const gateway = pools.find(({ spec }) => spec.gateway !== undefined && equalIp(spec.gateway, ip));
  if (gateway !== undefined) return `it is the gateway of pool "${gateway.name}"`;
  const results = answered.flatMap(({ result }) => result.ips);
  if (results.length > 0)
    return results.some(({ address }) => equalIp(address.ip, ip))
      ? undefined
      : "the runtime's record of the NIC does not have it";
  const ofFamily = foreign.filter(({ prefix }) => prefix.ip.family === ip.family);
  return ofFamily.length === 1
    ? undefined
    : "the NIC has several, and no record of the runtime says which are an IPAM's";
}

/** Returns the pool that would have it; a clause if that is not clear. */
function placementOf(ip: Ip, pools: readonly IpPool[]): AddressPlacement | string {
  const places = locateAddress(ip, pools, []);
  const spaces = new Set(places.map(({ addressSpace }) => addressSpace));
  if (spaces.size > 1)
    return `pools of ${spaces.size} address spaces have it: ${places.map(({ pool }) => pool).join(", ")}`;
  const place = places.find(({ excluded }) => excluded === undefined) ?? places[0];
  const pool = pools.find(({ name }) => name === place?.pool);
  if (pool === undefined) return "it is in no pool";
  const { addressSpace: space, subnet } = pool.spec;
  return { ip, space, pool: pool.name, prefixLength: subnet.length };
}
