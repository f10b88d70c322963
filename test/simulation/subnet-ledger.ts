/**
 * Invariants of the pools that the controller generates out of Subnets (docs/develop/subnets.md). It sees the objects
 * of the API server alone.
 */
import { POD_ATTEMPT_MS } from "../../host/kubernetes/http/retry.ts";
import { formatIp, parseIp } from "../../host/net/ip.ts";
import { parseRange } from "../../host/net/range.ts";
import type { StoredObject } from "../fakes/memory-api-server.ts";
import type { Cluster } from "./cluster.ts";
import { POOLS, SUBNETS } from "./collections.ts";
import type { PodObject } from "./kubelet.ts";
import { replacesEnding, uidOf, wantedOf } from "./workload.ts";

/**
 * Longest wait of a user for addresses that its Subnet has, and longest time for which it keeps needless ones, while a
 * controller leads: milliseconds.
 */
const BOUND_MS = 30_000;
/** Time for which a controller must have led and run without a break before that time begins: milliseconds. */
const CAUGHT_UP_MS = 5_000;
/**
 * A pod that is answered later than this after its agent was told that its pool lost the address had it before:
 * milliseconds. A claim that is under way may wait for one answer that is lost.
 */
const LOST_MS = POD_ATTEMPT_MS + 2_000;
/**
 * A controller may not know of a record that is there for less, not counting the time in which it stood still:
 * milliseconds.
 */
const HELD_MS = 15_000;
const FAMILIES = [4, 6] as const;
type Family = (typeof FAMILIES)[number];

export interface GeneratedPool {
  readonly name: string;
  readonly subnet: string;
  /** Namespace of its workload. */
  readonly namespace: string;
  readonly owner: string;
  readonly ifName: string;
  readonly family: Family;
  readonly addresses: readonly string[];
  readonly isDeleting: boolean;
}

/** Demand of one workload, NIC and family. */
interface Demand {
  readonly key: string;
  readonly owner: string;
  readonly ifName: string;
  readonly family: Family;
  readonly subnets: readonly string[];
  readonly wanted: number;
}

export class SubnetLedger {
  readonly #cluster: Cluster;
  /** Recorded addresses: the time of the record in {@link #servedMs}, its pool, and the pods bound to it. */
  readonly #held = new Map<
    string,
    { readonly sinceMs: number; readonly pool: unknown; readonly pods: readonly string[] }
  >();
  /** For how long a controller has led and run, as of the last check: milliseconds. */
  #servedMs = 0;
  /** Since when it does without a break; undefined: it does not. */
  #servedSinceMs: number | undefined;
  /** By fault: its duration while a controller led: milliseconds. */
  readonly #wrong = new Map<string, { text: string; forMs: number }>();
  /** By address: the pools that lost it, and when. */
  readonly #lost = new Map<string, { readonly pool: GeneratedPool; readonly atMs: number }[]>();
  /** `uid eth0 10.7.0.1` */
  readonly #had = new Set<string>();
  #checkedMs = 0;
  /** As the last write has left them, by name. */
  readonly #pools = new Map<string, GeneratedPool>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  allocationWritten(address: string, after: StoredObject | undefined): void {
    const { sinceMs = this.#servedMs } = this.#held.get(address) ?? {};
    if (after === undefined) this.#held.delete(address);
    else {
      const { state, holders, pool } = after.spec as { state?: string; holders?: { pod: string }[]; pool?: unknown };
      const pods = state === "Bound" ? (holders ?? []).map(({ pod }) => pod) : [];
      this.#held.set(address, { sinceMs, pool, pods });
    }
  }

  /** After each write of a pool. Returns it if it was generated. */
  poolWritten(before: StoredObject | undefined, after: StoredObject | undefined): GeneratedPool | undefined {
    const [former, pool] = [before, after].map((object) => object && generatedOf(object));
    const name = (pool ?? former)?.name;
    if (name === undefined) return undefined;
    if (pool === undefined) this.#pools.delete(name);
    else this.#pools.set(name, pool);
    if (former !== undefined) this.#noteLost(former, pool);
    this.#requireOnePool();
    if (pool !== undefined) this.#requireAssigned(pool);
    return pool;
  }

  /** An address in use leaves its pool only if the Subnet does not offer it any more, or the pool goes. */
  #noteLost(former: GeneratedPool, pool: GeneratedPool | undefined): void {
    const { server, nowMs, ledger } = this.#cluster;
    const { name, subnet } = former;
    const offered = new Set(addressesIn(server.collection(SUBNETS).get(subnet)?.spec.ips));
    for (const address of former.addresses) {
      const isThere = pool?.addresses.includes(address) === true;
      if (!isThere || pool?.isDeleting === true) ledger.forgetAddress(address);
      if (isThere) continue;
      this.#lost.set(address, [...(this.#lost.get(address) ?? []), { pool: former, atMs: nowMs }]);
      const held = this.#held.get(address);
      // An address of another pool's pod is no loss.
      const heldForMs = held?.pool === name ? this.#servedMs - held.sinceMs : 0;
      if (pool !== undefined && !pool.isDeleting && offered.has(address) && heldForMs > HELD_MS)
        this.#problem(`${address} was taken out of pool ${name}, and has been in use for ${heldForMs / 1000} s`);
    }
  }

  /** After each write of a Subnet: the addresses of its pools are assigned. */
  subnetWritten(name: string): void {
    for (const pool of this.#pools.values()) if (pool.subnet === name) this.#requireAssigned(pool);
  }

  #requireOnePool(): void {
    const of = new Map<string, string>();
    for (const { name, addresses } of this.#pools.values())
      for (const address of addresses) {
        const other = of.get(address);
        if (other !== undefined) this.#problem(`${address} is in two pools: ${other} and ${name}`);
        of.set(address, name);
      }
  }

  #requireAssigned({ name, subnet, addresses }: GeneratedPool): void {
    const assigned = this.#assignedOf(subnet).get(name) ?? [];
    const missing = addresses.find((address) => !assigned.includes(address));
    if (missing !== undefined)
      this.#problem(`${missing} is in pool ${name}, and Subnet ${subnet} has not assigned it to that pool`);
  }

  #problem(text: string): void {
    this.#cluster.ledger.problems.push(text);
  }

  /** A pod of a workload that names Subnets has the addresses of that workload's pools, and no other pod has them. */
  shown(
    { name, uid, node, owner }: PodObject & { readonly owner: string },
    ifName: string,
    addresses: readonly string[],
  ): void {
    const isUser = this.#cluster.workloads.some((each) => each.subnets !== undefined && uidOf(each) === owner);
    for (const address of addresses) {
      // A pod keeps an address that its pool has lost since, and the member's next one does not get it.
      if (isUser && !this.#isGiven(address)) this.#cluster.ledger.forgetAddress(address);
      const key = `${uid} ${ifName} ${address}`;
      const isNew = !this.#had.has(key);
      this.#had.add(key);
      if (!isNew) continue;
      const pools = [...this.#pools.values()].filter((pool) => pool.addresses.includes(address));
      // An agent may have claimed it for a pool whose change it was told later, which the controller finds out
      // (docs/develop/subnets.md, life of a generated pool).
      const { nowMs, network } = this.#cluster;
      for (const { pool, atMs } of this.#lost.get(address) ?? [])
        if (nowMs - network.toldMs(node, POOLS, atMs) < LOST_MS) pools.push(pool);
      const isOwn = pools.some((pool) => pool.owner === owner && pool.namespace === "shop" && pool.ifName === ifName);
      if (isOwn || (!isUser && pools.length === 0)) continue;
      const what = pools.map((pool) => `${pool.name} of ${pool.owner} for ${pool.ifName}`).join(", ");
      this.#problem(
        `${name} (${uid}) of ${owner} got ${address} for ${ifName}, which is in ${what || "no generated pool"}`,
      );
    }
  }

  /** Whether a pool that is not being deleted has the address. */
  #isGiven(address: string): boolean {
    return [...this.#pools.values()].some(({ addresses, isDeleting }) => !isDeleting && addresses.includes(address));
  }

  /** Called every now and then. */
  check(): void {
    const { nowMs, hasLeader, ledSinceMs } = this.#cluster;
    const passedMs = nowMs - this.#checkedMs;
    this.#checkedMs = nowMs;
    if (hasLeader) this.#servedMs += passedMs;
    this.#servedSinceMs = hasLeader ? Math.max(this.#servedSinceMs ?? nowMs, ledSinceMs) : undefined;
    const isCaughtUp = this.#servedSinceMs !== undefined && nowMs - this.#servedSinceMs >= CAUGHT_UP_MS;
    const found = new Map(this.#faults());
    for (const [key, { text }] of this.#wrong) if (found.get(key) !== text) this.#wrong.delete(key);
    for (const [key, text] of found) {
      const known = this.#wrong.getOrInsertComputed(key, () => ({ text, forMs: 0 }));
      if (isCaughtUp) known.forMs += passedMs;
      if (known.forMs < BOUND_MS) continue;
      this.#problem(`${text}, for ${BOUND_MS / 1000} s`);
      known.forMs = 0;
    }
  }

  /** Yields the faults of now, with the objects that they concern. The text changes when the fault does. */
  *#faults(): Iterable<readonly [string, string]> {
    const demands = this.#demands();
    const isDemanded = new Map(demands.map((demand) => [demand.key, demand]));
    for (const { key, wanted, subnets } of demands) {
      const pools = this.#poolsOf(key).filter(({ subnet }) => subnets.includes(subnet));
      const has = pools.flatMap(({ addresses }) => addresses);
      const strange = pools.flatMap(({ name, addresses }) => addresses.filter((each) => this.#isOthers(each, name)));
      const free = has.length - strange.length < wanted ? subnets.flatMap((name) => this.#freeOf(name)) : [];
      if (free.length > 0)
        yield [
          `short ${key}`,
          `${key} has ${has.length} of ${wanted} addresses wanted, ${strange.length} of them in use by others, although ${subnets.join()} has some`,
        ];
      const unused = has.filter((address) => !this.#held.has(address));
      if (has.length > wanted && unused.length > 0)
        yield [
          `long ${key}`,
          `${key} has ${has.length} addresses, ${unused.length} of them without use, and wants ${wanted}`,
        ];
    }
    for (const pool of this.#pools.values()) {
      const key = keyOf(pool);
      const isWanted = isDemanded.get(key)?.subnets.includes(pool.subnet) === true;
      const isKept = !this.#reclaims(pool);
      // The pool may have lost an address that is recorded for it.
      const isNamed = this.#held.values().some((held) => held.pool === pool.name);
      const isUnused = !isNamed && !pool.addresses.some((address) => this.#held.has(address));
      // The wants of a workload that no controller follows are those of its pods, also while they end.
      const isThing =
        pool.owner.startsWith("set-thing-") && this.#cluster.pods.some(({ name }) => /^thing-/.test(name));
      if (pool.namespace !== "shop" || isThing) continue;
      if (isUnused && (pool.isDeleting || (!isWanted && !isKept)))
        yield [`left ${pool.name}`, `pool ${pool.name} of ${key} is still there, and nothing needs it`];
    }
  }

  /** Whether a pod has the address that got it from another pool. */
  #isOthers(address: string, pool: string): boolean {
    const held = this.#held.get(address);
    return held !== undefined && held.pool !== pool;
  }

  /** Returns the faults when all is quiet: sentences. */
  unfinished(): string[] {
    const faults = [...this.#faults()].map(([, text]) => text);
    for (const { key, wanted } of this.#demands()) {
      const has = this.#poolsOf(key).flatMap(({ addresses }) => addresses).length;
      if (has !== wanted) faults.push(`${key} has ${has} of ${wanted} addresses`);
    }
    return faults;
  }

  #poolsOf(key: string): GeneratedPool[] {
    return [...this.#pools.values()].filter(
      (pool) => !pool.isDeleting && pool.namespace === "shop" && keyOf(pool) === key,
    );
  }

  /** A pool stays when its workload says so, or did. */
  #reclaims({ owner }: GeneratedPool): boolean {
    const workload = this.#cluster.workloads.find(({ name }) => owner.startsWith(`set-${name}-`));
    return workload?.subnets?.reclaim !== false;
  }

  #demands(): Demand[] {
    const { workloads, pods: all } = this.#cluster;
    return workloads.flatMap((workload) => {
      const { name, nics, subnets } = workload;
      if (subnets === undefined) return [];
      const isOwn = (pod: PodObject): boolean => pod.name.startsWith(`${name}-`) && !pod.isDeleting && !pod.isFinished;
      const wanted = wantedOf(workload, all.filter(isOwn).length);
      if (wanted === undefined) return [];
      const owner = uidOf(workload);
      const ending = new Set(
        all.filter(({ isDeleting, isFinished }) => isDeleting && !isFinished).map(({ name }) => name),
      );
      return nics.flatMap(([ifName]) =>
        FAMILIES.map((family) => {
          const key = `${owner} ${ifName} ${family}`;
          const more = replacesEnding(workload) ? this.#heldBy(ending, key).length : 0;
          const named = family === 4 ? subnets.ipv4 : subnets.ipv6;
          return { key, owner, ifName, family, subnets: named, wanted: wanted + more };
        }),
      );
    });
  }

  /** Returns the addresses that these pods have of the pools. */
  #heldBy(pods: ReadonlySet<string>, key: string): string[] {
    return this.#poolsOf(key).flatMap(({ name, addresses }) =>
      addresses.filter((address) => {
        const held = this.#held.get(address);
        return held?.pool === name && held.pods.some((pod) => pods.has(pod));
      }),
    );
  }

  /** Addresses that the Subnet offers and that no pool has, nor any pod. */
  #freeOf(name: string): string[] {
    const object = this.#cluster.server.collection(SUBNETS).get(name);
    if (object === undefined) return [];
    const taken = new Set([...this.#assignedOf(name).values()].flat());
    return addressesIn(object.spec.ips).filter((address) => !taken.has(address) && !this.#held.has(address));
  }

  #assignedOf(subnet: string): Map<string, readonly string[]> {
    const object = this.#cluster.server.collection(SUBNETS).get(subnet);
    const pools = (object?.status?.pools ?? []) as readonly {
      readonly name: string;
      readonly ips?: readonly string[];
    }[];
    return new Map(pools.map(({ name, ips }) => [name, addressesIn(ips)]));
  }
}

function keyOf({ owner, ifName, family }: GeneratedPool): string {
  return `${owner} ${ifName} ${family}`;
}

interface Application {
  readonly namespace: string;
  readonly uid: string;
}

/** Returns undefined for a pool that was not generated. */
export function generatedOf({ metadata, spec }: StoredObject): GeneratedPool | undefined {
  const generated = spec.generated as
    | { readonly subnet: string; readonly interface: string; readonly application: Application }
    | undefined;
  if (generated === undefined) return undefined;
  return {
    name: metadata.name,
    subnet: generated.subnet,
    namespace: generated.application.namespace,
    owner: generated.application.uid,
    ifName: generated.interface,
    family: String(spec.subnet).includes(":") ? 6 : 4,
    addresses: addressesIn(spec.ips),
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

/** Returns the addresses of small ranges, as the API server has them. */
function addressesIn(ranges: unknown): string[] {
  if (!Array.isArray(ranges)) return [];
  return ranges.flatMap((text: string) => {
    const range = parseRange(text);
    if (range === undefined || parseIp(text.split("-")[0] ?? "") === undefined) return [];
    const { first, last } = range;
    const count = Number(last.value - first.value) + 1;
    return Array.from({ length: count }, (_, index) => formatIp({ ...first, value: first.value + BigInt(index) }));
  });
}
