/**
 * Finds faults that only the whole cluster shows: addresses on two nodes, objects of nodes and pools that are gone,
 * pods whose addresses no object explains, controllers of which none leads.
 */
import { documentation } from "../lib/documentation.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import { formatAddressName } from "../records/allocation-record.ts";
import type { CheckRecord } from "../records/check-record.ts";
import type { Finding } from "../records/finding.ts";
import { type IpAllocation, parseAllocationName } from "../resources/ip-allocation.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { locateAddress } from "../resources/locate-address.ts";
import { type Controllers, checkControllers } from "./check-controllers.ts";
import { error } from "./problem.ts";

/** A pod whose status shows addresses, and which is neither finished nor being deleted. */
export interface AddressedPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly ips: readonly Ip[];
}

export interface ClusterFacts {
  /** UID of the namespace kube-system. */
  readonly cluster: string | undefined;
  /** Undefined if the user may not list them. */
  readonly nodes: ReadonlySet<string> | undefined;
  readonly pools: readonly IpPool[];
  readonly allocations: readonly IpAllocation[];
  readonly pods: readonly AddressedPod[];
  /** Undefined if the user may not read them. */
  readonly controllers?: Controllers | undefined;
  /** The problems in the conditions of the objects. */
  readonly stated: readonly Finding[];
  /** Objects that could not be read: sentences. */
  readonly problems: readonly string[];
}

interface ClusterState {
  readonly facts: ClusterFacts;
  readonly records: readonly CheckRecord[];
  /** Nodes that have an agent, whether it answers or not. */
  readonly agents: ReadonlySet<string>;
}

const RESTART = "Restart this pod, which gets another address";

/** The problems of addresses that only the whole cluster shows. */
export const CLUSTER_PROBLEMS = {
  onTwoNodes: error("duplicate", "{places} have the address; {owner}", "Restart the pod to which it is not allocated"),
  ofAnotherPod: error(
    "duplicate",
    "the pod's status shows the address, which is allocated to pod {holder} on node {node}",
    RESTART,
  ),
  unrecorded: error("lost-record", "the pod's status shows the address, and {state}", RESTART),
  nodeGone: error(
    "orphan",
    "the API server has an IPAllocation of it for node {node}, which does not exist",
    "The controller releases it some time after the node is gone; if it does not, see its log",
  ),
  noAgent: error(
    "orphan",
    "the API server has an IPAllocation of it for node {node}, on which no agent runs",
    `Run the agent on that node; of one that is lost: ${documentation("garbage-collection.html#a-lost-node")}`,
  ),
  noPool: error(
    "wrong-pool",
    'its IPAllocation is {state} and names pool "{pool}", which does not exist',
    "Restore the pool, or restart the pod, which gets another address",
  ),
};

/** Returns the problems that the agents' own findings lack. */
export function findClusterDamage(state: ClusterState): Finding[] {
  const known = state.records.flatMap(({ findings }) => findings);
  const { allocations, pods, controllers } = state.facts;
  const objects = new Map(allocations.map((allocation) => [nameOf(allocation), allocation]));
  const found = [
    ...findOnTwoNodes(state, objects),
    ...allocations.flatMap((allocation) => [...findInObject(allocation, state)]),
    ...pods.flatMap((pod) =>
      state.agents.has(pod.node) ? pod.ips.flatMap((ip) => findPod(pod, ip, state.facts, objects)) : [],
    ),
  ];
  // Other findings of a node about an address must not hide that it has two holders.
  const isTold = ({ kind, address }: Finding): boolean =>
    known.some((each) => each.address === address && (kind !== "duplicate" || each.kind === kind));
  return [
    ...(controllers === undefined ? [] : checkControllers(controllers)),
    ...found.filter((each) => !isTold(each)),
  ];
}

type Objects = ReadonlyMap<string, IpAllocation>;

function findOnTwoNodes({ records }: ClusterState, objects: Objects): Finding[] {
  const used = records.flatMap(({ node, used = [] }) => used.map((each) => ({ ...each, node })));
  return [...Map.groupBy(used, ({ address }) => address)].flatMap(([address, places]) => {
    const { holders = [], pool = "" } = objects.get(address)?.spec ?? {};
    // A virtual machine that migrates has the address on two nodes.
    if (new Set(places.map(({ node }) => node)).size < 2 || holders.length > 1) return [];
    const where = places.map(({ node, place }) => `${place} on node ${node}`).join(" and ");
    const [owner] = holders;
    const whose = owner === undefined ? "no pod" : `pod ${owner.namespace}/${owner.pod}`;
    return [CLUSTER_PROBLEMS.onTwoNodes({ places: where, owner: `it is allocated to ${whose}` }, { address, pool })];
  });
}

function* findInObject(allocation: IpAllocation, { facts, agents }: ClusterState): Iterable<Finding> {
  const { spec, deleting } = allocation;
  const { state, node, pool, holders } = spec;
  if (deleting || state === "Cooling") return;
  const [holder] = holders;
  const about = {
    address: nameOf(allocation),
    pool,
    node,
    namespace: holder?.namespace ?? "",
    pod: holder?.pod ?? "",
    interface: holder?.ifName ?? "",
    owner: holder?.podUid ?? "",
  };
  const isGone = facts.nodes?.has(node) === false;
  if (state === "Bound" && isGone) yield CLUSTER_PROBLEMS.nodeGone({ node }, about);
  else if (state === "Bound" && !agents.has(node)) yield CLUSTER_PROBLEMS.noAgent({ node }, about);
  if (!facts.pools.some(({ name }) => name === pool)) yield CLUSTER_PROBLEMS.noPool({ state, pool }, about);
}

function findPod(pod: AddressedPod, ip: Ip, { pools }: ClusterFacts, byName: Objects): Finding[] {
  const places = locateAddress(ip, pools, []).filter(({ excluded }) => excluded === undefined);
  const [place] = places;
  if (place === undefined) return [];
  const objects = places.flatMap(({ addressSpace }) => byName.get(formatAddressName(formatIp(ip), addressSpace)) ?? []);
  const holders = objects.flatMap(({ spec }) => spec.holders);
  if (holders.some((holder) => holder.namespace === pod.namespace && holder.pod === pod.name)) return [];
  const [other] = holders;
  const about = {
    address: formatAddressName(formatIp(ip), place.addressSpace),
    pool: place.pool,
    node: pod.node,
    namespace: pod.namespace,
    pod: pod.name,
  };
  if (other !== undefined) {
    const values = { holder: `${other.namespace}/${other.pod}`, node: other.node };
    return [CLUSTER_PROBLEMS.ofAnotherPod(values, about)];
  }
  const [object] = objects;
  const what =
    object === undefined ? "the API server has no IPAllocation of it" : `its IPAllocation is ${object.spec.state}`;
  return [CLUSTER_PROBLEMS.unrecorded({ state: what }, about)];
}

/** The form of findings: `10.0.0.7/lab`. */
function nameOf({ name, spec }: IpAllocation): string {
  const { ip, addressSpace } = parseAllocationName(name) ?? spec;
  return formatAddressName(formatIp(ip), addressSpace);
}
