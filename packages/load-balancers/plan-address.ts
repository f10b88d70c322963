/** Decides about a Service's address of one family: its present one, one that it shares, or a free one. */
import type { CachedAllocation } from "../../host/controller/cached-allocation.ts";
import { MAX_SERVICE_ADDRESSES } from "../../host/controller/claimants.ts";
import { MAX_EXAMPLES } from "../../host/controller/examples.ts";
import { listSome } from "../../host/lib/describe.ts";
import { equalIp, type Family, formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import { allocationName } from "../../host/resources/ip-allocation.ts";
import type { IpPool } from "../../host/resources/ip-pool.ts";
import { type BalancedService, IPS_ANNOTATION } from "./service.ts";

/** Most addresses of one pool that are looked at for a free one. */
const MAX_LOOKED_AT = 65_536;

export type ServiceRecord = Pick<CachedAllocation["spec"], "ip" | "addressSpace" | "workload">;

export interface AddressWorld {
  /** Of all Services, Kept. */
  readonly records: readonly ServiceRecord[];
  /** All Services of the class. */
  readonly services: readonly BalancedService[];
  /** Whether there is an allocation of this name. */
  readonly isTaken: (name: string) => boolean;
  /** MAC of the machine that answers for an address in quarantine; undefined if none does, or it is unknown. */
  readonly macOf: (name: string) => string | undefined;
  /** Why the pool never gives the address, a clause; undefined if it may. */
  readonly exclusionOf: (pool: IpPool, ip: Ip) => string | undefined;
  /** Whether a Node or another Service has it, or says so, in whichever address space. */
  readonly isClaimed: (ip: Ip) => boolean;
}

/** `held`: the record is there, perhaps another Service's that is shared. `claim`: one is to be made, for the pool. */
export type AddressPlan =
  | { readonly kind: "held"; readonly ip: Ip }
  | { readonly kind: "claim"; readonly ip: Ip; readonly pool: IpPool }
  | { readonly kind: "refused"; readonly reason: string; readonly message: string };

const refused = (reason: string, message: string): AddressPlan => ({ kind: "refused", reason, message });

const has = (ips: readonly Ip[], ip: Ip): boolean => ips.some((each) => equalIp(each, ip));

/** `pools`: those that it may use, of the family, in order. `first`: its address of the family before. */
export function planAddress(
  service: BalancedService,
  family: Family,
  pools: readonly IpPool[],
  { first, ...world }: AddressWorld & { readonly first?: Ip | undefined },
): AddressPlan {
  const requested = parseIp(service.requested?.[family] ?? "");
  const poolOf = (ip: Ip): IpPool | undefined =>
    requested === undefined || equalIp(requested, ip)
      ? pools.find((pool) => pool.spec.family === ip.family && world.exclusionOf(pool, ip) === undefined)
      : undefined;
  const isFree = (pool: IpPool, ip: Ip): boolean => !world.isTaken(allocationName(ip, pool.spec.addressSpace));
  const told = ipsOf(service).find((ip) => ip.family === family && poolOf(ip) !== undefined);
  const toldPool = told && poolOf(told);
  if (told !== undefined && has(keptBy(service, world, first), told)) return { kind: "held", ip: told };
  if (told !== undefined && toldPool !== undefined && isFree(toldPool, told))
    return { kind: "claim", ip: told, pool: toldPool };
  const usable = [...recordsOf(service, world), ...sharedBy(service, world, first)];
  const held = usable.find((ip) => ip.family === family && poolOf(ip) !== undefined);
  if (held !== undefined) return { kind: "held", ip: held };
  const most = world.records.filter(({ workload }) => workload?.namespace === service.namespace).length;
  if (most >= MAX_SERVICE_ADDRESSES)
    return refused(
      "TooMany",
      `Services of namespace ${service.namespace} have ${most} addresses, want fewer than ${MAX_SERVICE_ADDRESSES}; delete one`,
    );
  if (requested !== undefined) {
    const pool = poolOf(requested);
    const text = `annotation "${IPS_ANNOTATION}": ${formatIp(requested)}`;
    if (pool === undefined) return refused("NotOfPool", `${text}: ${whyNot(requested, pools, world)}`);
    if (isFree(pool, requested) && !world.isClaimed(requested)) return { kind: "claim", ip: requested, pool };
    const mac = world.macOf(allocationName(requested, pool.spec.addressSpace));
    const answer = mac === undefined ? "" : `, ${mac} answers for it`;
    return refused("InUse", `${text} is in use${answer}; "kubectl berth ip ${formatIp(requested)}" shows what has it`);
  }
  for (const pool of pools) {
    const ip = findFree(pool, world);
    if (ip !== undefined) return { kind: "claim", ip, pool };
  }
  const names = pools.map(({ name }) => `"${name}"`);
  return refused(
    "NoRoom",
    `No address is free in pool ${listSome(names, MAX_EXAMPLES)}; add addresses, or name other pools`,
  );
}

/** Returns the addresses of its status that stay while it gets no others. `first`: as for planAddress. */
export function keptBy(service: BalancedService, world: AddressWorld, first?: Ip): Ip[] {
  const usable = [...recordsOf(service, world), ...sharedBy(service, world, first)];
  // Of a Service that is gone the record will be this one's.
  const isLeft = (ip: Ip): boolean => {
    const { uid, namespace } = world.records.find((each) => equalIp(each.ip, ip))?.workload ?? {};
    return namespace === service.namespace && !world.services.some((other) => other.uid === uid);
  };
  return ipsOf(service).filter((ip) => has(usable, ip) || isLeft(ip));
}

function whyNot(ip: Ip, pools: readonly IpPool[], { exclusionOf }: AddressWorld): string {
  const reasons = pools.map((pool) => `pool "${pool.name}" may not give it: ${exclusionOf(pool, ip)}`);
  return listSome(reasons, MAX_EXAMPLES);
}

const ipsOf = ({ ingress }: BalancedService): Ip[] => ingress.flatMap((text) => parseIp(text) ?? []);

function recordsOf({ uid }: BalancedService, { records }: AddressWorld): Ip[] {
  return records.flatMap(({ ip, workload }) => (workload?.uid === uid ? [ip] : []));
}

/**
 * Returns the addresses of Services that it may share with all that have them. MetalLB chooses the node that announces
 * a Service by its first address, and with a local policy among those with its pods: all that share choose the same.
 */
function sharedBy(service: BalancedService, world: AddressWorld, first: Ip | undefined): Ip[] {
  const { namespace, sharingKey, ports, uid, families, local } = service;
  if (sharingKey === undefined) return [];
  const others = world.services.filter((other) => other.namespace === namespace && other.uid !== uid);
  const having = others.map((other) => ({ other, ips: [...ipsOf(other), ...recordsOf(other, world)] }));
  const mayShare = ({ other, ips }: (typeof having)[number]): boolean =>
    other.sharingKey === sharingKey &&
    other.local === local &&
    other.families[0] === families[0] &&
    (first === undefined || has(ips, first)) &&
    !other.ports.some((port) => ports.includes(port));
  const all = having.flatMap(({ ips }) => ips);
  return all.filter((ip) => having.filter(({ ips }) => has(ips, ip)).every(mayShare));
}

/** The last addresses first: pods get the first ones of a pool with ascending selection. */
function findFree(pool: IpPool, world: AddressWorld): Ip | undefined {
  const { addressSpace, ranges, family } = pool.spec;
  let left = MAX_LOOKED_AT;
  for (const { first, last } of ranges.toReversed())
    for (let value = last.value; value >= first.value && left > 0; value--, left--) {
      const ip = { family, value };
      if (world.isTaken(allocationName(ip, addressSpace)) || world.exclusionOf(pool, ip) !== undefined) continue;
      if (!world.isClaimed(ip)) return ip;
    }
  return undefined;
}
