/**
 * Fills a pool with other pods' allocations, many thousands within seconds, and a cluster with nodes: written into
 * etcd as the API server stores them.
 * Effects: keys of etcd.
 */
import { randomUUID } from "node:crypto";
import { formatIp } from "../../../host/net/ip.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { allocationName, type Holder, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { openEtcd } from "../history/etcd.ts";
import { ALLOCATIONS } from "../history/follow.ts";
import { allocationObject, allocationSpec } from "./objects.ts";

export interface FillOptions {
  /** IPv4 */
  readonly subnet: string;
  readonly pool: string;
  /** Tells whether the next address is taken, in their order. */
  readonly isTaken: () => boolean;
  /** Returns the place of the next address's pod, which then exists. Default: no pod, of a node that does not exist. */
  readonly place?: () => PodPlace;
}

interface PodPlace {
  readonly namespace: string;
  readonly node: string;
}

/** etcd's own limit is 128. */
const KEYS_PER_CALL = 100;
/** No agent of a fleet is called so. */
const NODE = "elsewhere";
const CREATED = "2026-01-01T00:00:00Z";

/** Gives how many were written. Neither the network's own address nor the broadcast address is among them. */
export async function fillPool(etcdUrl: string, { subnet, pool, isTaken, place }: FillOptions): Promise<number> {
  const prefix = parsePrefix(subnet);
  if (prefix?.ip.family !== 4) throw new TypeError(`${subnet} is no IPv4 subnet`);
  await using keys = openWriter(etcdUrl);
  const last = prefix.ip.value + 2n ** BigInt(32 - prefix.length) - 2n;
  let taken = 0;
  for (let value = prefix.ip.value + 1n; value <= last; value++) {
    if (!isTaken()) continue;
    taken++;
    const podUid = randomUUID();
    const { namespace, node } = place?.() ?? { namespace: "scale", node: NODE };
    const holder = { namespace, pod: `pod-${podUid}`, podUid, ifName: "eth0", node };
    await keys.add(allocationEntry({ family: 4, value }, prefix.length, pool, holder));
    if (place !== undefined) await keys.add(podEntry(holder));
  }
  return taken;
}

/** They are ready. */
export async function fillNodes(etcdUrl: string, names: Iterable<string>): Promise<void> {
  await using keys = openWriter(etcdUrl);
  for (const name of names) {
    const metadata = { name, uid: randomUUID(), creationTimestamp: CREATED };
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    await keys.add([`/registry/minions/${name}`, JSON.stringify({ apiVersion: "v1", kind: "Node", metadata, status })]);
  }
}

export async function fillNamespaces(etcdUrl: string, names: Iterable<string>): Promise<void> {
  await using keys = openWriter(etcdUrl);
  for (const name of names) {
    const metadata = { name, uid: randomUUID(), creationTimestamp: CREATED };
    const object = { apiVersion: "v1", kind: "Namespace", metadata, spec: { finalizers: ["kubernetes"] } };
    await keys.add([`/registry/namespaces/${name}`, JSON.stringify(object)]);
  }
}

/** A key of etcd, and the object as JSON. */
export type Entry = [key: string, value: string];

interface Writer extends AsyncDisposable {
  add(entry: Entry): Promise<void>;
}

/** Disposing it writes the rest. */
export function openWriter(etcdUrl: string): Writer {
  const etcd = openEtcd(etcdUrl);
  let entries: Entry[] = [];
  const flush = async (): Promise<void> => {
    if (entries.length > 0) await etcd.putAll(entries);
    entries = [];
  };
  return {
    add: async (entry) => {
      entries.push(entry);
      if (entries.length >= KEYS_PER_CALL) await flush();
    },
    [Symbol.asyncDispose]: async () => {
      await flush().finally(() => etcd.close());
    },
  };
}

/** The first holder's pod has the address. */
export function allocationEntry(ip: IpAllocationSpec["ip"], prefixLength: number, pool: string, holder: Holder): Entry {
  const spec = allocationSpec(formatIp(ip), { prefixLength, pool, node: holder.node, holders: [holder] });
  const stored = storedMetadata();
  return [`${ALLOCATIONS}${allocationName(ip, "")}`, JSON.stringify(allocationObject(spec, stored))];
}

/** Returns the metadata that the API server gives an object when it is created. */
export function storedMetadata() {
  return { uid: randomUUID(), generation: 1, creationTimestamp: CREATED };
}

/** A pod that runs; `own`: of its metadata. */
export function podEntry({ namespace, pod: name, podUid: uid, node }: Holder, own: object = {}): Entry {
  const metadata = { ...own, name, namespace, uid, creationTimestamp: CREATED };
  const spec = { nodeName: node, containers: [{ name: "main", image: "example/main:1" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata, spec, status: { phase: "Running" } };
  return [`/registry/pods/${namespace}/${name}`, JSON.stringify(pod)];
}
