/**
 * Owners of pools' addresses besides pods: ReservedIPs with an owner, templates that name addresses, Services and
 * Nodes. Makes them, and checks the promises (docs/fixed-addresses.md, docs/services.md). It sees NICs and objects,
 * never the product's memory.
 */
import type { StoredObject } from "../fakes/memory-api-server.ts";
import type { Seeded } from "../world/seeded.ts";
import type { Cluster } from "./cluster.ts";
import { PODS, RESERVED, SERVICES } from "./collections.ts";
import type { PodObject } from "./kubelet.ts";

/** While everything acts, an owner has its address within this time from when that is free: milliseconds. */
const OWNED_MS = 40_000;
/** Limit for recording a Node's or a Service's address while a controller acts: milliseconds. */
const RECORDED_MS = 20_000;
/** The same until a Service of the class has an address of each family. */
const BALANCED_MS = 40_000;
/** Longest ADD during which a reservation ends. */
const ENDED_MS = 60_000;
const MOST_RESERVED = 8;
const MOST_SERVICES = 4;
/** Of a Service that gets an address by the package load-balancers, which may be away. */
const CLASS = "ipam.vendor.io/address";
export const IPS = "ipam.vendor.io/ips";

/** Where an address is another's since before its reservation, that is given up so long after the end: milliseconds. */
export const RESTED_MS = 15_000;

interface Due {
  readonly address: string;
  readonly sinceMs: number;
  /** The pod's template names it, and it gets no other. */
  readonly isNamed: boolean;
}

interface OfNic extends Due {
  readonly ifName: string;
}

/** Of one family: those that pods may get, and those that only an owner may. */
interface Addresses {
  readonly open: readonly string[];
  readonly closed: readonly string[];
}

export class Reservations {
  readonly #cluster: Cluster;
  readonly #addresses: readonly Addresses[];
  /** By owner, NIC and family, as {@link keyOf}. */
  readonly #due = new Map<string, Due>();
  /** `KEY ADDRESS` of all times. */
  readonly #everDue = new Set<string>();
  readonly #endedMs = new Map<string, number>();
  /** When a record of the address first named a pod, or its member as long as it does. */
  readonly #since = new Map<string, number>();
  readonly #ofNodes = new Map<string, string>();
  /** For how long each thing that is due is lacking although it could be had: milliseconds. */
  #lacking: ReadonlyMap<string, number> = new Map();
  #checkedMs = 0;
  #services = 0;

  constructor(cluster: Cluster, addresses: readonly Addresses[]) {
    this.#cluster = cluster;
    this.#addresses = addresses;
  }

  /** An owner gets a reservation, another one, or another owner's former one. */
  reserve(random: Seeded): void {
    const cluster = this.#cluster;
    const nics = cluster.expected.flatMap((pod) =>
      pod.nics.flatMap(([ifName]) => {
        const name = cluster.ownerOf(pod, ifName);
        // Where the target of a migration is told late that an owner may have the address, the machine loses it.
        return name === undefined ? [] : [{ name, ifName, mayBeClosed: pod.runsOnce !== true }];
      }),
    );
    if (nics.length === 0) return;
    const { name, ifName, mayBeClosed } = random.pick(nics);
    const { open, closed } = random.pick(this.#addresses);
    const address = random.pick(mayBeClosed && random.chance(0.5) ? closed : open);
    const key = keyOf(name, ifName, address);
    for (const [each, due] of this.#due)
      if (due.address === address) this.#end(each);
      else if (each === key) this.#remove(each, due);
    if (this.#due.size >= MOST_RESERVED) this.unreserve(random);
    this.#due.set(key, { address, sinceMs: cluster.nowMs, isNamed: false });
    this.#everDue.add(`${key} ${address}`);
    const spec = { ips: [address], owner: { namespace: "shop", name, interface: ifName } };
    cluster.server.put(RESERVED, objectName(address), { metadata: { generation: 1 }, spec });
  }

  unreserve(random: Seeded): void {
    if (this.#due.size > 0) this.#remove(...random.pick([...this.#due]));
  }

  #end(key: string): void {
    this.#due.delete(key);
    this.#endedMs.set(key, this.#cluster.nowMs);
  }

  #remove(key: string, { address }: Due): void {
    this.#end(key);
    this.#cluster.server.remove(objectName(address), RESERVED);
  }

  /** A Service of the class, or one whose address another controller has chosen; or one goes. */
  balance(random: Seeded): void {
    const { server } = this.#cluster;
    const all = this.#servicesNow;
    if (all.length >= MOST_SERVICES || (all.length > 0 && random.chance(0.3))) {
      server.remove(random.pick(all).metadata.name, SERVICES);
      return;
    }
    const name = `svc-${++this.#services}`;
    const address = this.#pickOpen(random);
    const isOurs = random.chance(0.6);
    const annotations: Record<string, string> = isOurs && random.chance(0.3) ? { [IPS]: address } : {};
    const own = isOurs ? { loadBalancerClass: CLASS } : {};
    const spec = { type: "LoadBalancer", ipFamilies: ["IPv4", "IPv6"], ports: [{ port: 80 }], ...own };
    const status = { loadBalancer: isOurs ? {} : { ingress: [{ ip: address }] } };
    server.put(SERVICES, name, { metadata: { uid: name, namespace: "shop", annotations }, spec, status });
  }

  /** A Node says that it has an address, or none any more. */
  address(node: string, random: Seeded): void {
    if (!this.#ofNodes.delete(node)) this.#ofNodes.set(node, this.#pickOpen(random));
    this.#cluster.setAddress(node, this.#ofNodes.get(node));
  }

  #pickOpen(random: Seeded): string {
    return random.pick(random.pick(this.#addresses).open);
  }

  /** Nodes and Services have nothing any more. */
  rest(): void {
    const cluster = this.#cluster;
    for (const { metadata } of this.#servicesNow) cluster.server.remove(metadata.name, SERVICES);
    for (const node of this.#ofNodes.keys()) cluster.setAddress(node, undefined);
    this.#ofNodes.clear();
  }

  /** Ends reservations of addresses that others have. Returns the pods whose addresses are reserved. */
  giveUp(): readonly PodObject[] {
    const owners = this.#cluster.expected.filter((pod) => this.#duesOf(pod).length > 0);
    const isDue = (pod: PodObject, { address }: Due): boolean =>
      this.#duesOf(pod).some((due) => due.address === address && this.#mayHave(pod, due));
    for (const [key, due] of [...this.#due]) if (!owners.some((pod) => isDue(pod, due))) this.#remove(key, due);
    return owners;
  }

  /**
   * Whether the member's NIC may give up its former address for this one, or for any: an ADD that is under way does
   * before it is answered, also when the reservation ends.
   */
  mayChange(key: string, address?: string): boolean {
    const endedMs = this.#endedMs.get(key) ?? Number.NEGATIVE_INFINITY;
    const isDue = this.#due.has(key) || this.#cluster.nowMs - endedMs < ENDED_MS;
    return isDue || this.#everDue.has(`${key} ${address}`);
  }

  /** The addresses that the pod's annotation names, and those reserved for its NICs. */
  #duesOf(pod: PodObject): readonly OfNic[] {
    const cluster = this.#cluster;
    const object = cluster.server.collection(PODS).get(pod.name);
    const { annotations = {} } = (object?.metadata ?? {}) as { annotations?: Readonly<Record<string, string>> };
    const named = Object(JSON.parse((object?.metadata.uid === pod.uid ? annotations[IPS] : undefined) ?? "null"));
    const [own] = Array.isArray(named) ? named : (named[pod.name] ?? []);
    const addresses: readonly string[] = Object.values(own ?? {});
    for (const address of addresses) this.#everDue.add(`${keyOf(pod.name, "eth0", address)} ${address}`);
    return [
      ...addresses.map((address) => ({ address, ifName: "eth0", sinceMs: 0, isNamed: true })),
      ...pod.nics.flatMap(([ifName]) => {
        const owner = cluster.ownerOf(pod, ifName) ?? "";
        const found = [this.#due.get(keyOf(owner, ifName, "")), this.#due.get(keyOf(owner, ifName, ":"))];
        return found.flatMap((due) => (due === undefined ? [] : { ...due, ifName }));
      }),
    ];
  }

  /** Whether the address is free, or the NIC's or its member's. */
  #mayHave(pod: PodObject, { address, ifName }: Pick<OfNic, "address" | "ifName">): boolean {
    const cluster = this.#cluster;
    const { state, workload, holders = [] } = cluster.ledger.recordOf(address) ?? {};
    if (state === undefined || state === "Cooling") return true;
    if (holders.length > 0) return holders.every((each) => each.podUID === pod.uid && each.interface === ifName);
    const isMember = workload?.member === (cluster.ownerOf(pod, ifName) ?? pod.name);
    return state === "Kept" && isMember && workload.interface === ifName;
  }

  /** A pod is answered. */
  shown(pod: PodObject, ifName: string, addresses: readonly string[]): void {
    const cluster = this.#cluster;
    const dues = this.#duesOf(pod).filter((due) => due.ifName === ifName);
    for (const address of addresses) {
      const member = cluster.ledger.recordOf(address)?.workload?.member;
      const sinces = [`${address} ${pod.uid}`, `${address} ${member}`].map(
        (each) => this.#since.get(each) ?? cluster.nowMs,
      );
      const isOlder = (due: Due): boolean =>
        Math.min(...sinces) < cluster.knownMs(pod.node, due.sinceMs) && !due.isNamed;
      const due = dues.find((each) => isSameFamily(each.address, address));
      if (due !== undefined && due.address !== address && !isOlder(due))
        this.#problem(`${pod.name} (${pod.uid}) got ${address} for ${ifName}, and is to have ${due.address}`);
      for (const [key, other] of this.#due)
        if (other.address === address && !dues.some((each) => each.address === address) && !isOlder(other))
          this.#problem(`${pod.name} (${pod.uid}) got ${address} for ${ifName}, which is reserved for ${key}`);
    }
  }

  /** An allocation was written. */
  recorded(address: string, before: StoredObject | undefined, after: StoredObject | undefined): void {
    const [was, is] = [before, after].map((each) => Object(each?.spec.workload).member as string | undefined);
    if (was !== undefined && was !== is) this.#since.delete(`${address} ${was}`);
    const { holders = [] } = (after?.spec ?? {}) as { holders?: readonly { readonly podUID: string }[] };
    for (const each of [...holders.map(({ podUID }) => podUID), ...(is === undefined ? [] : [is])])
      this.#since.getOrInsert(`${address} ${each}`, this.#cluster.nowMs);
  }

  /** Called every now and then. `isLed`: a controller acts; `isServed`: everything does. */
  check(isLed: boolean, isServed: boolean): void {
    const { ledger, expected, nowMs } = this.#cluster;
    const passedMs = nowMs - this.#checkedMs;
    this.#checkedMs = nowMs;
    const lacking = new Map<string, number>();
    const lack = (what: string, withinMs: number, isActing = isLed): void => {
      const forMs = (this.#lacking.get(what) ?? 0) + (isActing ? passedMs : 0);
      lacking.set(what, forMs);
      if (forMs >= withinMs && forMs < withinMs + passedMs) this.#problem(`${what} after ${withinMs / 1000} s`);
    };
    for (const service of this.#servicesNow) {
      const { name } = service.metadata;
      const ips = ingressOf(service);
      const isOurs = service.spec.loadBalancerClass === CLASS;
      for (const ip of ips) {
        const record = ledger.recordOf(ip);
        const isOwn = record?.workload?.uid === service.metadata.uid;
        if (record === undefined) lack(`${ip} of Service ${name} has no record`, RECORDED_MS);
        if (isOurs && !isOwn && (record?.holders ?? []).length > 0)
          this.#problem(`${ip} is of Service ${name}, and its record is ${JSON.stringify(record)}`);
      }
      const isFixed = Object(service.metadata.annotations)[IPS] !== undefined;
      if (isOurs && !isFixed && ips.length < 2) lack(`Service ${name} has only [${ips}]`, BALANCED_MS);
    }
    for (const [node, ip] of this.#ofNodes)
      if (ledger.recordOf(ip) === undefined) lack(`${ip} of Node ${node} has no record`, RECORDED_MS);
    for (const pod of expected) {
      const dues = this.#duesOf(pod);
      const waits = dues.filter(({ ifName }) => ledger.addressesOf(pod.uid, ifName).length === 0);
      if (waits.length === 0 || !dues.every((due) => this.#mayHave(pod, due))) continue;
      const what = `${pod.name} (${pod.uid}) waits for ${waits.map(({ address }) => address)}, which it may have,`;
      lack(what, OWNED_MS, isServed);
    }
    this.#lacking = lacking;
  }

  get #servicesNow(): readonly StoredObject[] {
    return [...this.#cluster.server.collection(SERVICES).values()];
  }

  #problem(text: string): void {
    this.#cluster.ledger.problems.push(text);
  }
}

function isSameFamily(one: string, other: string): boolean {
  return one.includes(":") === other.includes(":");
}

function keyOf(owner: string, ifName: string, address: string): string {
  return `${owner} ${ifName} ${address.includes(":") ? 6 : 4}`;
}

/** Returns the name of the ReservedIP. */
function objectName(address: string): string {
  return address.includes(":") ? `owned-six-${address.split(":").at(-1)}` : `owned-blue-${address}`;
}

function ingressOf({ status }: StoredObject): readonly string[] {
  const { ingress = [] } = Object(status?.loadBalancer) as { ingress?: readonly { readonly ip: string }[] };
  return ingress.map(({ ip }) => ip);
}
