/**
 * Nodes, the API server and Services claim addresses: the claims that count, and the records that are missing for them.
 * Addresses that a tenant writes into a Service (`externalIPs`, `loadBalancerIP`) prove nothing (docs/decisions/0060).
 */
import * as z from "zod";
import { parseYaml } from "../config/yaml.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { type Change, valueAfter } from "../kubernetes/mirror.ts";
import { byName } from "../lib/order.ts";
import { compareIp, equalIp, formatIp, type Ip, parseIp } from "../net/ip.ts";
import { allocationName, type IpAllocationSpec, isMachines, NO_NODE } from "../resources/ip-allocation.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { findOwnExclusion } from "../resources/locate-address.ts";
import { describeWorkload, type Workload } from "../resources/member.ts";
import { NONE_OCCUPIED } from "../resources/occupied-ips.ts";
import { SpacesIndex } from "../resources/range-search.ts";
import type { ReservedIp } from "../resources/reserved-ip.ts";
import type { CachedAllocation } from "./cached-allocation.ts";
import { valuesOf } from "./objects.ts";
import type { Caches, Claimant } from "./types.ts";

/** Most addresses of pools that one Node keeps out of them: its kubelet names them itself. */
export const MAX_NODE_ADDRESSES = 8;

/** Most addresses of pools that the Services of one namespace keep out of them. @limit */
export const MAX_SERVICE_ADDRESSES = 32;

/** Most sentences about owners beyond a limit. */
const MAX_SENTENCES = 20;

type ClaimCaches = Pick<Caches, "nodes" | "services" | "apiServer" | "pools" | "reserved" | "allocations">;

const addresses = z.array(z.string()).catch([]);

const service = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  status: z
    .object({ loadBalancer: z.object({ ingress: z.array(z.object({ ip: z.string().optional() })) }) })
    .optional()
    .catch(undefined),
});

type Named = Pick<Claimant, "kind" | "namespace" | "name">;

/** Whether its Service stands for the API server, whose addresses are in other objects. */
const isApiServer = ({ kind, namespace, name }: { readonly [key in keyof Named]: string }): boolean =>
  kind === "Service" && namespace === "default" && name === "kubernetes";

/** Reads a Service: the addresses of its load balancer. Undefined if it has none, unless it is the API server's. */
export function readService(object: KubeObject): Claimant | undefined {
  const { metadata, status } = service.safeParse(object).data ?? {};
  if (metadata === undefined) return undefined;
  const found = (status?.loadBalancer.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  const claimant = { kind: "Service", ...metadata, addresses: found } as const;
  return found.length > 0 || isApiServer(claimant) ? claimant : undefined;
}

const slice = z.object({ endpoints: z.array(z.object({ addresses })).catch([]) });

/** Reads one of the API server's own EndpointSlices: the machines that run it. */
export function readEndpoints(object: KubeObject): readonly string[] {
  return slice.parse(object).endpoints.flatMap(({ addresses }) => addresses);
}

const KEY = "ClusterConfiguration";

const kubeadmMap = z.object({ data: z.object({ [KEY]: z.string() }) });

const configuration = z.object({ controlPlaneEndpoint: z.string() });

/** Reads the ConfigMap kubeadm-config: `controlPlaneEndpoint`'s host, a name or an address of the API server. */
export function readControlPlane(object: KubeObject): readonly string[] {
  const text = kubeadmMap.safeParse(object).data?.data[KEY];
  if (text === undefined) return [];
  const endpoint = configuration.safeParse(parseYaml(text, KEY)[0]?.value).data?.controlPlaneEndpoint;
  const host = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::\d+)?$/.exec(endpoint ?? "")?.groups;
  return [host?.six ?? host?.four ?? ""];
}

/** Adds the API server's addresses in other objects. */
function completed(claimant: Claimant, { apiServer }: Pick<Caches, "apiServer">): Claimant {
  if (!isApiServer(claimant)) return claimant;
  const others = apiServer.flatMap(({ items }) => [...items.values()].flat());
  return { ...claimant, addresses: [...claimant.addresses, ...others] };
}

export function claimantsOf(caches: Pick<Caches, "nodes" | "services" | "apiServer">): Claimant[] {
  const own = [...caches.nodes.items.values()].map((node): Claimant => ({ ...node, namespace: "" }));
  return [...own, ...[...caches.services.items.values()].map((each) => completed(each, caches))];
}

/** Returns the UIDs of all claimants of an address, by its text in the usual form. */
export function claimedBy(caches: Pick<Caches, "nodes" | "services" | "apiServer">) {
  const claimed = new Map<string, Set<string>>();
  for (const { uid, addresses } of claimantsOf(caches))
    for (const ip of addresses.flatMap((text) => parseIp(text) ?? []))
      claimed.getOrInsertComputed(formatIp(ip), () => new Set()).add(uid);
  return claimed;
}

/** Whether the change gives it other addresses. */
export function haveOtherAddresses(change: Change<Pick<Claimant, "addresses">>): boolean {
  return (valueAfter(change)?.addresses ?? []).join() !== (change.before?.addresses ?? []).join();
}

/**
 * Returns whether the claimant, as just read, has the address, and whether its pool could give it; "unknown" while the
 * API server's other objects are unread. `found`: undefined if there is none.
 */
export function decideRecord(
  caches: ClaimCaches,
  { pool, ip, addressSpace, workload }: CachedAllocation["spec"],
  found: Claimant | undefined,
): "alive" | "gone" | "unknown" {
  const own = caches.pools.items.get(pool)?.value;
  const kept = valuesOf(caches.reserved.items.values());
  const isOffered = own?.spec.addressSpace === addressSpace && !own.deleting && mayGive(own, ip, kept);
  if (!isOffered || found === undefined || found.uid !== workload?.uid) return "gone";
  const its = completed(found, caches).addresses.flatMap((text) => parseIp(text) ?? []);
  if (its.some((each) => equalIp(each, ip))) return "alive";
  return isApiServer(found) && !areRead(caches) ? "unknown" : "gone";
}

const areRead = ({ apiServer }: Pick<Caches, "apiServer">): boolean => apiServer.every(({ isSynced }) => isSynced);

/** Whether a pool would give a free address to a pod, or to one pod alone. */
function mayGive(pool: IpPool, ip: Ip, reserved: readonly ReservedIp[]): boolean {
  return findOwnExclusion(ip, pool, { reserved, occupied: NONE_OCCUPIED, siblings: [] }) === undefined;
}

/** Returns a function that returns each address space's first pool that could give an address. */
function openOffers({ pools, reserved }: ClaimCaches): (ip: Ip) => readonly IpPool[] {
  const entryOf = <T extends IpPool | ReservedIp>(of: T) => ({ ...of.spec, space: of.spec.addressSpace, value: of });
  const entries = valuesOf(pools.items.values()).flatMap((pool) => (pool.deleting ? [] : entryOf(pool)));
  const spaces = [...new Set(entries.map(({ space }) => space))];
  const [index, kept] = [new SpacesIndex(entries), new SpacesIndex(valuesOf(reserved.items.values()).map(entryOf))];
  const find = (space: string, ip: Ip) => index.find(space, ip).toSorted(byName);
  return (ip) =>
    spaces.flatMap((space) => find(space, ip).find((pool) => mayGive(pool, ip, kept.find(space, ip))) ?? []);
}

export interface Claim {
  readonly claimant: Claimant;
  readonly spec: IpAllocationSpec;
}

/** Returns the record of the pool's address for its Node or Service. */
export function recordOf({ kind, namespace, name, uid }: Omit<Claimant, "addresses">, ip: Ip, pool: IpPool) {
  return recordFor({ kind, namespace, name, uid, member: name }, ip, pool);
}

/** Returns the record of the pool's address for the workload, without a pod. */
export function recordFor(
  workload: Workload,
  ip: Ip,
  { name: pool, spec: { addressSpace, subnet } }: IpPool,
): IpAllocationSpec {
  const frame = { ip, addressSpace, prefixLength: subnet.length, pool, node: NO_NODE };
  return { ...frame, state: "Kept", holders: [], workload };
}

const nameOf = ({ spec }: Claim): string => allocationName(spec.ip, spec.addressSpace);

interface RecordsPlan {
  /** The names of all records that should exist. */
  readonly wanted: ReadonlySet<string>;
  /** Records to write: the name is free, or belongs, or did, to a claimant without the address. */
  readonly missing: readonly Claim[];
  /** The claimants of addresses that belong to another owner, by the allocation's name. The older record stays. */
  readonly contested: ReadonlyMap<string, Claimant>;
  /** Sentences about claims beyond a limit. */
  readonly problems: readonly string[];
}

export function planRecords(caches: ClaimCaches): RecordsPlan {
  const { wanted, problems } = countedClaims(caches);
  const missing: Claim[] = [];
  const contested = new Map<string, Claimant>();
  for (const [name, claims] of wanted) {
    const due = dueFor(caches.allocations.items.get(name), claims, areRead(caches));
    if (due === "contested") contested.set(name, claims[0].claimant);
    else if (due !== undefined) missing.push(due);
  }
  return { wanted: new Set(wanted.keys()), missing, contested, problems };
}

type Claims = readonly [Claim, ...Claim[]];

/** Returns the claims that count, by the name of their record; recorded ones first. */
function countedClaims(caches: ClaimCaches) {
  const offers = openOffers(caches);
  const { items } = caches.allocations;
  const wanted = new Map<string, Claims>();
  const problems: string[] = [];
  const isRecorded = (claim: Claim): boolean => isSameOwner(items.get(nameOf(claim))?.spec, claim);
  for (const [, all] of Map.groupBy(claimantsOf(caches), groupOf)) {
    const claims = all.flatMap((claimant) =>
      claimant.addresses.flatMap((text) => {
        const ip = parseIp(text);
        return ip === undefined
          ? []
          : offers(ip).map((pool): Claim => ({ claimant, spec: recordOf(claimant, ip, pool) }));
      }),
    );
    claims.sort((a, b) => Number(isRecorded(b)) - Number(isRecorded(a)) || compareIp(a.spec.ip, b.spec.ip));
    const own = [...Map.groupBy(claims, nameOf)];
    const [first] = all;
    const most = first === undefined ? 0 : mostOf(first);
    if (first !== undefined && own.length > most && problems.length < MAX_SENTENCES)
      problems.push(`${whoseOf(first)} ${own.length} addresses of pools; only ${most} are kept from pods`);
    for (const [name, [one, ...others]] of own.slice(0, most))
      if (one !== undefined) wanted.set(name, [...(wanted.get(name) ?? []), one, ...others] as unknown as Claims);
  }
  return { wanted, problems };
}

function groupOf(claimant: Claimant): string {
  return claimant.kind === "Node" || isApiServer(claimant) ? describeWorkload(claimant) : claimant.namespace;
}

function mostOf(claimant: Claimant): number {
  if (isApiServer(claimant)) return Number.POSITIVE_INFINITY;
  return claimant.kind === "Node" ? MAX_NODE_ADDRESSES : MAX_SERVICE_ADDRESSES;
}

function whoseOf({ kind, namespace, name }: Claimant): string {
  return kind === "Node" ? `Node "${name}" has` : `Services of namespace "${namespace}" have`;
}

function isSameOwner(record: Pick<CachedAllocation["spec"], "node" | "workload"> | undefined, { claimant }: Claim) {
  const { kind, uid } = record?.workload ?? {};
  return record?.node === NO_NODE && kind === claimant.kind && uid === claimant.uid;
}

/** Returns the claim to write; undefined if there is none now. `found`: the object of that name, or none. */
export function dueFor(
  found: Pick<CachedAllocation, "deleting" | "spec"> | undefined,
  claims: Claims,
  isComplete = true,
): Claim | "contested" | undefined {
  if (found === undefined) return claims[0];
  const { state, pool, prefixLength, workload, node } = found.spec;
  if (found.deleting) return undefined;
  // Until it has cooled, a pod's address is left to its next sandbox. On no node it was no pod's.
  if (state === "Cooling") return node === NO_NODE ? claims[0] : undefined;
  if (!isMachines(found.spec)) return state === "Quarantined" ? undefined : "contested";
  const own = claims.find((claim) => isSameOwner(found.spec, claim));
  if (own === undefined) return !isComplete && workload !== undefined && isApiServer(workload) ? undefined : claims[0];
  return own.spec.pool === pool && own.spec.prefixLength === prefixLength ? undefined : own;
}
