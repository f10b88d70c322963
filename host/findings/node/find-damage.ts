/** Finds disagreements between a node's records, the API server's objects, pods and NICs. */
import { isOwner, isStaticOwner, type NetnsStatus, type PodStatus } from "../../ipam/leak.ts";
import { listSome } from "../../lib/describe.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { prefixContains } from "../../net/prefix.ts";
import type { LinkState } from "../../plan/state.ts";
import { formatAddressName } from "../../records/allocation-record.ts";
import type { Finding } from "../../records/finding.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { isAdopted } from "../../registry/nic.ts";
import type { Allocation } from "../../registry/registry.ts";
import { allocationName, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { error, warning } from "../problem.ts";

/** A record that changed less than so long ago may be ahead of its NIC, or behind it: milliseconds. */
export const STEADY_MS = 30_000;

/** An address on a NIC of a pod. */
export interface NicAddress {
  /** Path of the network namespace. */
  readonly netns: string;
  /** A namespace has several paths, and one identity. */
  readonly netnsId?: string | undefined;
  readonly ifName: string;
  readonly ip: Ip;
  /** MAC addresses of all links of the namespace. */
  readonly macs: readonly Mac[];
  /** Index of the node's link below the NIC, or at the other end of a veth; undefined for a device of its own. */
  readonly parent?: number | undefined;
}

/** A record, with the status of its pod and NIC. */
export interface RowFacts {
  readonly row: Allocation;
  readonly pod: PodStatus;
  readonly netns: NetnsStatus;
  /** Identity of the namespace at the record's path. */
  readonly netnsId?: string | undefined;
}

export interface NodeFacts {
  readonly node: string;
  /** The clock of the records. */
  readonly nowMs: number;
  readonly rows: readonly RowFacts[];
  readonly nics: readonly NicAddress[];
  /** Objects by name: those that name this node, and those of its records and NICs. Undefined without a cluster. */
  readonly objects: ReadonlyMap<string, IpAllocation> | undefined;
  readonly pools: ReadonlyMap<string, IpPool>;
  /** Returns whether the pool can hand the address out. */
  readonly contains: (pool: string, ip: Ip) => boolean;
}

const AGENT_HELPS = "if it does not, see its log";
const UNRECORDED = "interface {ifName} in {netns} has the address, and no record says so";
const COLLECTED = "Garbage collection releases it; if it does not, see the agent's log, or release it";

/** The problems of a node's addresses. */
export const ADDRESS_PROBLEMS = {
  onTwoNics: error(
    "duplicate",
    "interface {ifName} in {netns} and interface {otherIfName} in {otherNetns} have the address",
    "Restart the pod whose record is missing",
  ),
  ofAnotherPod: error(
    "duplicate",
    "interface {ifName} in {netns} has the address, which is allocated to pod {holder} on node {node}",
    "Restart the pod of that namespace, which gets another address",
  ),
  recordedTwice: error(
    "duplicate",
    "this node's record says it is this pod's, the API server says it is {owner} on node {node}",
    "Restart this pod, which gets another address",
  ),
  rival: error(
    "duplicate",
    "a machine with the MAC address {mac} on {link} has it too, says the node's neighbour table",
    "Find that machine and give it another address, or restart the pod with detectIPConflict",
  ),
  unrecorded: error("lost-record", UNRECORDED, "Restart the pod of that namespace"),
  unrecordedAlone: error("lost-record", UNRECORDED, 'Run "berthctl recover"'),
  leak: error("leak", "its pod is gone", COLLECTED),
  leakWithNic: error("leak", "its pod is gone, and its NIC still has the address", COLLECTED),
  missing: error(
    "missing-address",
    "interface {ifName} in {netns} does not have the address: it was taken off, or the interface has gone with the node's interface under it",
    "Delete the pod, or restart the container: it then gets a new interface",
  ),
  lostObject: error(
    "lost-object",
    "the API server has no IPAllocation of it",
    `The agent creates it again within minutes; ${AGENT_HELPS}`,
  ),
  orphan: error(
    "orphan",
    "the API server has an IPAllocation of it for this node, which has no record",
    `The agent adopts or releases it within minutes; ${AGENT_HELPS}`,
  ),
  noPool: error(
    "wrong-pool",
    'pool "{pool}" does not exist',
    "Restore the pool's addresses, or restart the pod, which gets another one",
  ),
  outside: warning(
    "AddressesOutside",
    "in use and not among the addresses that the pool gives out now: {pods}; each goes when it is released",
    "Restart the pods, which get other addresses, or give the pool these back",
  ),
  otherGateway: warning(
    "PodsWithOtherGateway",
    "pods route by {routers}, which the pool does not name any more: {pods}; until they end no pod gets {routers}",
    "Restart the pods, which get the new routes",
  ),
};

/** Most pods that a finding about a pool names. */
const MAX_PODS = 16;

/** Returns one finding for each address and kind. */
export function findDamage(facts: NodeFacts): Finding[] {
  return [
    ...facts.nics.flatMap((nic) => findOnNic(nic, facts)),
    ...facts.rows.flatMap((each) => findInRow(each, facts)),
    ...findOrphans(facts),
    // In a cluster the pools' conditions say it.
    ...(facts.objects === undefined ? findInPools(facts) : []),
  ];
}

/** The remains of a change of pools until the pods end: one sentence for each pool. */
function findInPools({ rows, pools, contains }: NodeFacts): Finding[] {
  const { outside, otherGateway } = ADDRESS_PROBLEMS;
  const bound = rows.map(({ row }) => row).filter(({ state, containerId }) => state === "Bound" && containerId !== "");
  return [...pools.values()].flatMap(({ name, spec: { subnet, addressSpace, formerRouters = [] } }) => {
    const own = bound.filter(({ pool }) => pool === name);
    const former = formerRouters.map(formatIp);
    // The pools around hold back the routers of a pool that is gone.
    const isHeir = ({ pool, space }: Allocation): boolean => space === addressSpace && !pools.has(pool);
    const rerouted = bound.filter(
      (row) => (row.pool === name || isHeir(row)) && row.routers?.some((router) => former.includes(router)),
    );
    // The other IPAM allocated an adopted one, from ranges of its own.
    const isInside = (row: Allocation): boolean =>
      row.space === addressSpace && (contains(name, row.ip) || (isAdopted(row) && prefixContains(subnet, row.ip)));
    const left = own.filter((row) => !isInside(row));
    const found = [[outside, left] as const, [otherGateway, rerouted] as const].filter(([, some]) => some.length > 0);
    return found.map(([problem, some]) => {
      const pods = listSome(some.map(describeRow), MAX_PODS);
      return problem({ routers: former.join(", "), pods }, { pool: name });
    });
  });
}

const describeRow = ({ ip, namespace, pod, ifName }: Allocation): string =>
  `${formatIp(ip)} (${pod === "" ? ifName : `pod ${namespace}/${pod}`})`;

/** Addresses on NICs that no record explains. */
function findOnNic(nic: NicAddress, facts: NodeFacts): Finding[] {
  const { ip, ifName, netns } = nic;
  const own = facts.rows.filter(({ row }) => equalIp(row.ip, ip));
  if (own.some((each) => isOf(each, nic))) return [];
  const pool = [...facts.pools.values()].find(({ name }) => facts.contains(name, ip));
  // Pods may have equal private networks, as that of a virtual machine behind its pod's address.
  if (pool === undefined && own.length === 0) return [];
  const about = { ip, space: "", pool: "", namespace: "", pod: "", ifName };
  const other = facts.nics.find((each) => equalIp(each.ip, ip) && each.netns !== netns);
  if (other !== undefined) {
    // Of NICs without a record each later one names the first.
    const isLater = facts.nics.indexOf(other) > facts.nics.indexOf(nic);
    if (isLater && !own.some((each) => isOf(each, other))) return [];
    const values = { ifName, netns, otherIfName: other.ifName, otherNetns: other.netns };
    return [ADDRESS_PROBLEMS.onTwoNics(values, subjectOf(about))];
  }
  if (pool === undefined) return [];
  const { name, spec } = pool;
  const located = subjectOf({ ...about, space: spec.addressSpace, pool: name });
  const holder = facts.objects?.get(allocationName(ip, spec.addressSpace))?.spec.holders[0];
  if (holder !== undefined && own.length === 0) {
    const values = { ifName, netns, holder: `${holder.namespace}/${holder.pod}`, node: holder.node };
    return [ADDRESS_PROBLEMS.ofAnotherPod(values, located)];
  }
  // A DEL records the release before the runtime removes the NIC.
  if (own.some(({ row }) => !isSteady(row, facts))) return [];
  const { unrecorded, unrecordedAlone } = ADDRESS_PROBLEMS;
  return [(facts.objects === undefined ? unrecordedAlone : unrecorded)({ ifName, netns }, located)];
}

/** Whether the record is of the NIC. If its netns is unknown or unreadable, the NIC's name decides. */
export function isOf({ row, netns, netnsId }: RowFacts, nic: NicAddress): boolean {
  const { state, ifName, ip } = row;
  if (state !== "Bound" || !equalIp(ip, nic.ip) || ifName !== nic.ifName) return false;
  if (row.netns === undefined || netns === "unknown") return true;
  return netnsId === undefined ? row.netns === nic.netns : netnsId === nic.netnsId;
}

export function isSteady({ sinceMs }: Allocation, { nowMs }: Pick<NodeFacts, "nowMs">): boolean {
  return nowMs - sinceMs >= STEADY_MS;
}

function findInRow(each: RowFacts, facts: NodeFacts): Finding[] {
  const { row, netns } = each;
  if (row.state !== "Bound" || row.containerId === "" || !isSteady(row, facts)) return [];
  if (isLeak(each, facts)) {
    if (netns === "inUse") return [ADDRESS_PROBLEMS.leakWithNic({}, subjectOf(row))];
    return [ADDRESS_PROBLEMS.leak({}, { ...subjectOf(row), isReleasable: true })];
  }
  const { ifName, netns: path = "", pool } = row;
  return [
    ...(netns === "there" ? [ADDRESS_PROBLEMS.missing({ ifName, netns: path }, subjectOf(row))] : []),
    ...findObjectOf(row, facts),
    ...(facts.pools.has(pool) ? [] : [ADDRESS_PROBLEMS.noPool({ pool }, subjectOf(row))]),
  ];
}

function isLeak({ row, pod, netns }: RowFacts, { objects }: NodeFacts): boolean {
  if (objects === undefined) return netns === "gone";
  // A static pod may lack its mirror.
  if (isStaticOwner(row.owner) || row.pod === "") return netns === "gone";
  if (pod.kind !== "present") return pod.kind === "absent";
  return pod.pod.uid !== undefined && !isOwner(row.owner, pod.pod);
}

function findObjectOf(row: Allocation, { objects, node }: NodeFacts): Finding[] {
  if (objects === undefined || row.isConfirmed !== true) return [];
  const object = objects.get(allocationName(row.ip, row.space));
  if (object === undefined) return [ADDRESS_PROBLEMS.lostObject({}, subjectOf(row))];
  const { state, holders } = object.spec;
  if (holders.some(({ podUid }) => podUid === row.owner)) return [];
  const [holder] = holders;
  const owner = holder === undefined ? state : `allocated to pod ${holder.namespace}/${holder.pod}`;
  if (row.containerId === UNKNOWN_CONTAINER && object.spec.node !== node) return [];
  return [ADDRESS_PROBLEMS.recordedTwice({ owner, node: object.spec.node }, subjectOf(row))];
}

/** Objects of this node without a record. */
function findOrphans({ objects, node, rows }: NodeFacts): Finding[] {
  const orphans = [...(objects?.values() ?? [])].filter(({ deleting, spec }) => {
    const isRecorded = rows.some(({ row }) => row.space === spec.addressSpace && equalIp(row.ip, spec.ip));
    return spec.node === node && spec.state === "Bound" && !deleting && !isRecorded;
  });
  return orphans.map(({ spec }) => {
    const { ip, addressSpace: space, pool, holders } = spec;
    const { namespace = "", pod = "", ifName = "" } = holders[0] ?? {};
    return ADDRESS_PROBLEMS.orphan({}, subjectOf({ ip, space, pool, namespace, pod, ifName }));
  });
}

/** The subject of a finding: a row has all of it. */
type RowAbout = Pick<Allocation, "ip" | "space" | "pool" | "namespace" | "pod" | "ifName"> &
  Partial<Pick<Allocation, "owner" | "containerId">>;

/** Returns the subject of a finding about a record, or about an address without one. */
export function subjectOf({ ip, space, pool, namespace, pod, ifName, owner = "", containerId = "" }: RowAbout) {
  const address = formatAddressName(formatIp(ip), space);
  return { address, pool, namespace, pod, interface: ifName, owner, container: containerId };
}

/** A neighbour on one of the node's links whose MAC address the node knows. */
export interface ResolvedNeighbour {
  /** Index of the node's link. */
  readonly link: number;
  readonly ip: Ip;
  readonly mac: Mac;
  /** Time since the neighbour last proved to have the MAC address; 0 if the entry is permanent. */
  readonly confirmedAgoMs: number;
}

/** A MAC address with so many addresses on one link answers for others, as routers with proxy ARP do. */
export const PROXY_ADDRESSES = 3;

interface RivalFacts extends Pick<NodeFacts, "nowMs" | "rows" | "nics" | "objects" | "pools"> {
  readonly neighbours: readonly ResolvedNeighbour[];
  /** The node's links. */
  readonly links: readonly LinkState[];
}

/** Returns one finding for each address that another machine has proved to have since it is the pod's. */
export function findRivals(facts: RivalFacts): Finding[] {
  return facts.rows.flatMap((each) => {
    const { row } = each;
    const object = facts.objects?.get(allocationName(row.ip, row.space));
    // A virtual machine that migrates has the address on two nodes.
    const isShared = object !== undefined && object.spec.holders.length > 1;
    if (each.netns !== "inUse" || !isSteady(row, facts) || isShared) return [];
    const nic = facts.nics.find((other) => isOf(each, other));
    const rival = nic && findRival(nic, facts.nowMs - row.sinceMs, facts);
    if (rival === undefined) return [];
    const link = facts.links.find(({ index }) => index === rival.link)?.name ?? rival.link;
    return [ADDRESS_PROBLEMS.rival({ mac: rival.mac, link }, subjectOf(row))];
  });
}

function findRival(nic: NicAddress, sinceMs: number, facts: RivalFacts): ResolvedNeighbour | undefined {
  const segment = linksBelow(nic, facts.links);
  return facts.neighbours.find(
    (each) =>
      segment.includes(each.link) &&
      equalIp(each.ip, nic.ip) &&
      !nic.macs.includes(each.mac) &&
      // An older entry is of the pod that had the address before.
      each.confirmedAgoMs < sinceMs &&
      !isProxy(each, facts),
  );
}

/** The link below the NIC, and the bridge that it is a member of. */
function linksBelow({ parent }: NicAddress, links: readonly LinkState[]): number[] {
  const below = links.find(({ index }) => index === parent);
  const bridge = below && links.find(({ name }) => name === below.master);
  return [below, bridge].flatMap((link) => link?.index ?? []);
}

function isProxy({ link, mac }: ResolvedNeighbour, { neighbours, pools }: RivalFacts): boolean {
  const same = neighbours.filter((each) => each.link === link && each.mac === mac);
  const addresses = new Set(same.map(({ ip }) => formatIp(ip)));
  const gateways = [...pools.values()].flatMap(({ spec }) => (spec.gateway ? formatIp(spec.gateway) : []));
  return addresses.size >= PROXY_ADDRESSES || gateways.some((gateway) => addresses.has(gateway));
}
