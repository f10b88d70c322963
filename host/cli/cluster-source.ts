/**
 * The records of a whole cluster, from its API server, within the rights of the kubeconfig's user. Writes nothing.
 * Shows as much as possible of an object that cannot be decoded.
 */

import { sizeOf, spansOf, withoutSpans } from "../core/spans.ts";
import { findInConditions } from "../findings/conditions.ts";
import { type KubeClient, openKubeClient } from "../kubernetes/client.ts";
import { loadCredentials } from "../kubernetes/credentials.ts";
import { callIfThere, isForbidden, type KubeCall, type KubeObject } from "../kubernetes/kube-api.ts";
import { collectionPath, NAMESPACES, type ObjectName, objectPath, PODS, type Resource } from "../kubernetes/paths.ts";
import { Reflector } from "../kubernetes/reflector.ts";
import { pauseUnlessAborted } from "../lib/abort.ts";
import { messageOf } from "../lib/describe.ts";
import { openLog } from "../lib/log.ts";
import { byName } from "../lib/order.ts";
import { orElse } from "../lib/try-or.ts";
import { compareIp, formatIp, type Ip, parseIp } from "../net/ip.ts";
import type { AddressRecord } from "../records/address-record.ts";
import { type AllocationRecord, formatAddressName } from "../records/allocation-record.ts";
import type { Finding } from "../records/finding.ts";
import type { PodRecord } from "../records/pod-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";
import type { ReservationRecord } from "../records/reservation-record.ts";
import { checkPools } from "../resources/check-pools.ts";
import { IP_ALLOCATIONS, IP_POOL_USAGES, IP_POOLS, RESERVED_IPS } from "../resources/collections.ts";
import { describePool } from "../resources/describe-pool.ts";
import { describeReservations } from "../resources/describe-reservation.ts";
import { allocationName, decodeIpAllocation, type IpAllocation } from "../resources/ip-allocation.ts";
import { decodeIpPool, type IpPool } from "../resources/ip-pool.ts";
import { poolShape } from "../resources/ip-pool-shape.ts";
import { decodeIpPoolUsage, type PoolUsage } from "../resources/ip-pool-usage.ts";
import { locateAddress } from "../resources/locate-address.ts";
import { decodePod } from "../resources/pod.ts";
import { decodeReservedIp, hasEnded, type ReservedIp } from "../resources/reserved-ip.ts";
import { conditionsOf } from "../resources/status.ts";
import { type BerthPod, readBerthPods } from "./berth-pods.ts";
import { readLeader } from "./read-leader.ts";
import { CLUSTER_PATIENCE_MS, decodedPools, listObjects, nameOf, readObjects, tryTo } from "./read-objects.ts";
import {
  type AllocationFilter,
  isOfPod,
  matchesFilter,
  type PodName,
  type Source,
  type VersionRecord,
} from "./source.ts";

/** Time for which `--watch` gathers changes before it prints them: milliseconds. */
const WATCH_GATHER_MS = 250;

interface ClusterSourceOptions {
  /** As kubectl merges them; undefined in a pod, for its service account. */
  readonly kubeconfig: readonly string[] | undefined;
  readonly context: string | undefined;
  readonly userAgent: string;
}

/** Rejects with ConfigError for a kubeconfig that cannot be used. */
export async function openClusterSource({
  kubeconfig,
  context,
  userAgent,
}: ClusterSourceOptions): Promise<ClusterSource> {
  const credentials = await loadCredentials({ kubeconfig, context });
  return new ClusterSource(openKubeClient({ credentials, userAgent, random: Math.random }));
}

export class ClusterSource implements Source {
  readonly api: KubeClient;
  /** While changes are followed: the objects of a collection by name. */
  readonly #followed = new Map<Resource, Reflector<KubeObject>>();
  /** While they are followed, most objects are the same ones as at the look before. */
  readonly #decoded = new WeakMap<KubeObject, DecodedAllocation>();

  constructor(api: KubeClient) {
    this.api = api;
  }

  /** Says when no controller counts the addresses in use. A user who may not read who leads is told nothing. */
  async scope(kind?: "pools" | "allocations"): Promise<string | undefined> {
    if (kind !== "pools") return undefined;
    const pods = readBerthPods(this.api);
    const leader = await pods.then((found) => readLeader(this.api, found, new Date())).catch(() => undefined);
    return leader === "" ? 'NO CONTROLLER LEADS: the counts may be old; "kubectl berth status" says more' : undefined;
  }

  async pools(): Promise<readonly PoolRecord[]> {
    const [pools, usages] = await Promise.all([this.#objects(IP_POOLS), this.#objects(IP_POOL_USAGES)]);
    return poolsOf(pools, usages, reservedOf(pools.some(hasSource) ? await this.#objects(RESERVED_IPS) : []));
  }

  async allocations(filter: AllocationFilter): Promise<readonly AllocationRecord[]> {
    const { node } = filter;
    const objects = await this.#objects(
      IP_ALLOCATIONS,
      node === undefined ? {} : { fieldSelector: `spec.node=${node}` },
    );
    return this.#allocationsOf(objects).filter((record) => matchesFilter(record, filter));
  }

  async reservations(): Promise<readonly ReservationRecord[]> {
    const [pools, objects] = await Promise.all([this.#objects(IP_POOLS), this.#objects(RESERVED_IPS)]);
    return describeReservations(reservedOf(objects), decodedPools(pools), Date.now()).sort(byName);
  }

  async address(address: string, space = ""): Promise<AddressRecord> {
    const ip = parseIp(address);
    if (ip === undefined) return { address, places: [], allocations: [] };
    const [pools, reserved] = await Promise.all([this.#objects(IP_POOLS), this.#objects(RESERVED_IPS)]);
    const inForce = reservedOf(reserved).filter((each) => !hasEnded(each, Date.now()));
    const places = locateAddress(ip, decodedPools(pools), inForce);
    const spaces = new Set(["", space, ...places.map(({ addressSpace }) => addressSpace)]);
    const objects = await Promise.all(
      [...spaces].map((each) => this.#find(IP_ALLOCATIONS, { name: allocationName(ip, each) })),
    );
    const allocations = objects.filter((object) => object !== undefined).map(allocationOf);
    const isOfSpace = ({ spec }: KubeObject) => space === "" || Object(spec).addressSpace === space;
    const stated = Object.entries({ IPPool: pools.filter(isOfSpace), ReservedIP: reserved.filter(isOfSpace) });
    const found = stated.flatMap(([kind, all]) => all.flatMap((each) => findingsIn(kind, each)));
    const isAbout = ({ text }: Finding): boolean =>
      text.split(/[^0-9a-f.:]+/).some((word) => word.replace(/[.:]$/, "") === address);
    const conditions = found.filter(isAbout).map(({ object, text }) => `${object}: ${text}`);
    return { address, places, allocations, conditions };
  }

  async pod({ namespace, name }: PodName): Promise<PodRecord> {
    const object = await this.#find(PODS, { namespace, name });
    const {
      uid = "",
      nodeName = "",
      phase = "Unknown",
    } = object === undefined ? {} : decodePod(object, `pod "${namespace}/${name}"`);
    // A retained address has no pod to be found by.
    const all = this.#allocationsOf(await this.#objects(IP_ALLOCATIONS));
    const allocations = all.filter((record) => isOfPod(record, { namespace, name }));
    const pod = object === undefined ? undefined : { uid, node: nodeName, phase };
    return { namespace, name, pod, isMissing: object === undefined, allocations };
  }

  waitingPods(): Promise<readonly PodName[]> {
    const pending = { resource: PODS, query: { fieldSelector: "status.phase=Pending" } };
    return readObjects(this.api, pending, ({ metadata }) => {
      const { deletionTimestamp, ...name } = metadata as PodName & { readonly deletionTimestamp?: string };
      return deletionTimestamp === undefined ? name : undefined;
    });
  }

  async hasNamespace(name: string): Promise<boolean | undefined> {
    const found = this.#find(NAMESPACES, { name }).then((object) => object !== undefined);
    return found.catch(orElse(isForbidden, undefined));
  }

  /** Berth's programs by the tags of their images. */
  async versions(): Promise<readonly VersionRecord[]> {
    const server = await this.api.call({ method: "GET", path: "/version", patienceMs: CLUSTER_PATIENCE_MS });
    const pods = await readBerthPods(this.api);
    return [{ component: "API server", version: String(server.gitVersion) }, ...versionsOf(pods)];
  }

  async *changes(...[kind, signal, note]: Parameters<Source["changes"]>): AsyncGenerator<void> {
    const resources = kind === "pools" ? [IP_POOLS, IP_POOL_USAGES] : [IP_ALLOCATIONS];
    let isChanged = false;
    const onChange = () => {
      isChanged = true;
    };
    for (const resource of resources) this.#followed.set(resource, this.#reflect(resource, onChange));
    const reflectors = [...this.#followed.values()];
    let wasAway = false;
    try {
      for (const reflector of reflectors) reflector.start();
      await Promise.all(reflectors.map((reflector) => this.#synced(reflector, signal)));
      while (!signal.aborted) {
        isChanged = false;
        yield;
        do {
          await pauseUnlessAborted(WATCH_GATHER_MS, signal);
          const [problem] = reflectors.flatMap(({ problems }) => problems);
          const isAway = problem !== undefined;
          if (isAway !== wasAway) note(isAway ? `${problem}; retrying` : "The API server answers again");
          wasAway = isAway;
        } while (!isChanged && !signal.aborted);
      }
    } finally {
      await Promise.all(reflectors.map((reflector) => reflector.close()));
      this.#followed.clear();
    }
  }

  close(): Promise<void> {
    return this.api.close();
  }

  /** Rejects with the reason if the first list does not come in time. */
  async #synced(reflector: Reflector<KubeObject>, signal: AbortSignal): Promise<void> {
    try {
      await reflector.synced(AbortSignal.any([signal, AbortSignal.timeout(CLUSTER_PATIENCE_MS)]));
    } catch (error) {
      if (signal.aborted) return;
      throw reflector.problems[0] === undefined ? error : new Error(reflector.problems[0]);
    }
  }

  #reflect(resource: Resource, onChange: () => void): Reflector<KubeObject> {
    return new Reflector<KubeObject>({
      api: this.api,
      name: resource.plural,
      path: collectionPath(resource),
      decode: (object) => object,
      keyOf: ({ metadata }) => String((metadata as { name?: unknown }).name),
      onChange,
      log: openLog("berthctl", "silent"),
      random: Math.random,
    });
  }

  /** In the order of their addresses. */
  #allocationsOf(objects: readonly KubeObject[]): AllocationRecord[] {
    const decoded = objects.map((object) => this.#decoded.getOrInsertComputed(object, () => decodeAllocation(object)));
    return decoded.sort(compareDecoded).map(({ record }) => record);
  }

  /** Returns undefined if there is no such object. */
  #find(resource: Resource, name: ObjectName): Promise<KubeObject | undefined> {
    const path = objectPath(resource, name);
    return callIfThere(this.api, { method: "GET", path, patienceMs: CLUSTER_PATIENCE_MS });
  }

  async #objects(resource: Resource, query: KubeCall["query"] = {}): Promise<readonly KubeObject[]> {
    const followed = this.#followed.get(resource);
    if (followed !== undefined) return [...followed.items.values()];
    return listObjects(this.api, { resource, query });
  }
}

function poolsOf(
  pools: readonly KubeObject[],
  usages: readonly KubeObject[],
  reserved: readonly ReservedIp[],
): PoolRecord[] {
  const usageOf = new Map(
    usages.map((object) => [nameOf(object), tryTo(() => decodeIpPoolUsage(object, "IPPoolUsage").usage)]),
  );
  const decoded = pools.map((object): { name: string; pool?: IpPool; refused?: string } => {
    const name = nameOf(object);
    try {
      return { name, pool: decodeIpPool(object, `IPPool "${name}"`) };
    } catch (error) {
      return { name, refused: `is invalid: ${messageOf(error)}` };
    }
  });
  const { refused } = checkPools(decoded.flatMap(({ pool }) => pool ?? []));
  return decoded
    .map(({ name, pool, refused: invalid }): PoolRecord => {
      const usage = usageOf.get(name);
      const { bound = 0, cooling = 0, kept = 0, quarantined = 0 } = usage ?? {};
      const states = { Bound: bound, Cooling: cooling, Kept: kept, Quarantined: quarantined };
      const counts = pool && usage && countsOf(pool, usage);
      const known = pool && { ...describePool(pool, reserved), ...counts, deleting: pool.deleting || undefined };
      return { name, ...known, states, refused: invalid ?? refused.get(name) };
    })
    .sort(byName);
}

/** Those that cannot be decoded are left out. */
function reservedOf(objects: readonly KubeObject[]): readonly ReservedIp[] {
  return objects.flatMap((object) => tryTo(() => decodeReservedIp(object, "ReservedIP")) ?? []);
}

/** Counts the pods of each component by the tag of their first image. */
function versionsOf(pods: readonly BerthPod[]): VersionRecord[] {
  const running = pods.map(({ component, image }) => {
    const version = /:([^:/@]+)(?:@[^/]*)?$/.exec(image)?.[1] ?? image;
    return { component, version };
  });
  const groups = Map.groupBy(running, ({ component, version }) => `${component} ${version}`);
  return [...groups.values()].flatMap((group) => group.slice(0, 1).map((each) => ({ ...each, count: group.length })));
}

/** Findings about a source of blocks belong to the package that has it. */
export function findingsIn(kind: string, object: KubeObject): Finding[] {
  const conditions = conditionsOf(object);
  const own = hasSource(object) ? conditions.filter(({ type }) => type !== "Supplied") : conditions;
  return findInConditions(`${kind} ${nameOf(object)}`, own);
}

const hasSource = ({ spec }: KubeObject): boolean => Object(spec).source !== undefined;

/** The controller counts up to 2^53; of larger pools it knows the addresses in use. */
function countsOf(pool: IpPool, usage: PoolUsage): { total: string; used: string; free: string } {
  const inUse = BigInt(usage.bound + usage.cooling + usage.kept + usage.quarantined - usage.outside + usage.others);
  if (usage.total < Number.MAX_SAFE_INTEGER) {
    const [total, free] = [BigInt(usage.total), BigInt(usage.free)];
    return { total: String(total), free: String(free), used: String(total - free) };
  }
  const { ranges, masked } = poolShape(pool, []);
  const total = sizeOf(withoutSpans(spansOf(ranges), spansOf(masked)));
  return { total: String(total), free: String(total - inUse), used: String(inUse) };
}

function allocationOf(object: KubeObject): AllocationRecord {
  const name = nameOf(object);
  let allocation: IpAllocation;
  try {
    allocation = decodeIpAllocation(object, `IPAllocation "${name}"`);
  } catch {
    const nothing = { addressSpace: "", pool: "", namespace: "", pod: "", interface: "" };
    return { ...nothing, address: name, state: "Invalid", cursor: name };
  }
  const { ip, addressSpace, prefixLength, pool, state, node, holders, workload, quarantine, since } = allocation.spec;
  const [first = quarantine?.holder, second] = holders;
  const address = formatIp(ip);
  const { namespace = "", pod = "", podUid: owner = "", ifName = "" } = first ?? {};
  return {
    address,
    prefixLength,
    addressSpace,
    pool,
    state,
    namespace,
    pod,
    owner,
    interface: ifName,
    node,
    second: second && { namespace: second.namespace, pod: second.pod, interface: second.ifName, node: second.node },
    workload: workload && {
      kind: workload.kind,
      namespace: workload.namespace,
      name: workload.name,
      member: workload.member,
    },
    since,
    cursor: formatAddressName(address, addressSpace),
    quarantine: quarantine && { reason: quarantine.reason, mac: quarantine.mac, parent: quarantine.parent },
  };
}

interface DecodedAllocation {
  readonly record: AllocationRecord;
  readonly ip: Ip | undefined;
}

function decodeAllocation(object: KubeObject): DecodedAllocation {
  const record = allocationOf(object);
  return { record, ip: parseIp(record.address) };
}

/** Addresses in their order, IPv4 first; texts that are no addresses last. */
function compareDecoded(
  { record: a, ip: one }: DecodedAllocation,
  { record: b, ip: other }: DecodedAllocation,
): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return one.family - other.family || compareIp(one, other) || (a.addressSpace < b.addressSpace ? -1 : 1);
}
