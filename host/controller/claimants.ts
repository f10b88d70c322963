/**
 * Nodes and Services, which say which addresses they have: how many of these are believed, and whose one is. What a
 * tenant writes into a Service by itself (`externalIPs`, `loadBalancerIP`) is no evidence (docs/decisions/0060).
 */
import * as z from "zod";
import { joinRanges, rangesContain } from "../core/spans.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { compareIp, FAMILIES, formatIp, type Ip, parseIp } from "../net/ip.ts";
import type { Range } from "../net/range.ts";
import { COORDINATOR_NAME, occupiedOf } from "../resources/coordinator.ts";
import { OccupiedIps } from "../resources/occupied-ips.ts";
import { MAX_OCCUPIED } from "../resources/status.ts";
import type { Caches, Claimant } from "./types.ts";

/** Most addresses of pools that one Node keeps out of them: its kubelet names them itself. */
export const MAX_NODE_ADDRESSES = 8;

/** Most addresses of pools that the Services of one namespace keep out of them. @limit */
export const MAX_SERVICE_ADDRESSES = 32;

/** Most sentences about owners with more. */
const MAX_SENTENCES = 20;

const service = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  status: z.object({ loadBalancer: z.object({ ingress: z.array(z.object({ ip: z.string().optional() })) }) }),
});

/** Reads a Service: the addresses that a load balancer answers for in its place. Undefined if it has none. */
export function readService(object: KubeObject): Claimant | undefined {
  const { metadata, status } = service.safeParse(object).data ?? {};
  const addresses = (status?.loadBalancer.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  return metadata === undefined || addresses.length === 0 ? undefined : { kind: "Service", ...metadata, addresses };
}

export function claimantsOf({ nodes, services }: Pick<Caches, "nodes" | "services">): Claimant[] {
  const own = [...nodes.items.values()].map((node): Claimant => ({ ...node, namespace: "" }));
  return [...own, ...services.items.values()];
}

/** Returns the published addresses with the names of their claimants, and these by address. */
export function namedClaims(caches: Pick<Caches, "nodes" | "services" | "coordinators">) {
  const occupied = occupiedOf(caches.coordinators.items.get(COORDINATOR_NAME)?.status);
  const claimants = new Map<string, Claimant>();
  for (const each of occupied.length > 0 ? claimantsOf(caches) : [])
    for (const text of inOrder(each.addresses)) claimants.set(text, each);
  const named = occupied.map((each) => {
    const { kind, namespace, name } = claimants.get(formatIp(each.ip)) ?? {};
    const path = namespace === "" ? name : `${namespace}/${name}`;
    return kind === undefined ? each : { ...each, why: `${kind} ${path} has it` };
  });
  return { occupied: new OccupiedIps(named), claimants };
}

/** Returns the addresses, each once; `isWanted`: default all. */
function inOrder(texts: readonly string[], isWanted: (ip: Ip) => boolean = () => true): readonly string[] {
  const found = texts.flatMap((text) => parseIp(text) ?? []).filter(isWanted);
  return [...new Set(found.toSorted(compareIp).map(formatIp))];
}

type OccupiedStatus = Readonly<Record<"nodes" | "apiServer" | "services", readonly string[]>>;

/**
 * Returns what is published, and sentences about what is not. `ranges` are those of all pools and Subnets. Lists are
 * ascending; an address is in the first list that has it. `apiServer`: as text.
 */
export function planOccupied(
  { claimants, apiServer }: { readonly claimants: readonly Claimant[]; readonly apiServer: readonly string[] },
  ranges: readonly Range[],
): { readonly occupied: OccupiedStatus; readonly problems: readonly string[] } {
  const joined = FAMILIES.map((family) => {
    const own = ranges.filter(({ first }) => first.family === family);
    return joinRanges(own, family);
  });
  const isInPool = (ip: Ip): boolean => joined.some((each) => rangesContain(each, ip));
  const seen = new Set<string>();
  const inPools = (texts: readonly string[]) => inOrder(texts, isInPool).filter((text) => !seen.has(text));
  const problems: string[] = [];
  const countedOf = (kind: Claimant["kind"], most: number): string[] => {
    const own = claimants.filter((each) => each.kind === kind);
    const byOwner = Map.groupBy(own, ({ namespace, name }) => namespace || name);
    return [...byOwner].flatMap(([owner, all]) => {
      const found = inPools(all.flatMap(({ addresses }) => addresses));
      const whose = kind === "Node" ? `Node "${owner}" has` : `Services of namespace "${owner}" have`;
      if (found.length > most && problems.length < MAX_SENTENCES)
        problems.push(`${whose} ${found.length} addresses of pools; only the lowest ${most} are kept from pods`);
      return found.slice(0, most);
    });
  };
  let leftOut = 0;
  const listOf = (addresses: readonly string[]): readonly string[] => {
    const list = inPools(addresses);
    for (const text of list) seen.add(text);
    leftOut += Math.max(0, list.length - MAX_OCCUPIED);
    return list.slice(0, MAX_OCCUPIED);
  };
  const occupied = {
    nodes: listOf(countedOf("Node", MAX_NODE_ADDRESSES)),
    apiServer: listOf(apiServer),
    services: listOf(countedOf("Service", MAX_SERVICE_ADDRESSES)),
  };
  if (leftOut > 0) problems.push(`${leftOut} more addresses of pools that machines have are not kept from pods`);
  return { occupied, problems };
}
