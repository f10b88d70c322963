/** Addresses that workloads name for members: missing records, and why others are refused (docs/decisions/0065). */
import { CniError } from "../cni/error.ts";
import { decodePodAnnotations, isEnabled, type PodAnnotations } from "../config/annotations.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Candidate } from "../ipam/model.ts";
import { claimsOf } from "../ipam/retention.ts";
import { selectPools } from "../ipam/selection.ts";
import { equalIp, FAMILIES, type Family, formatIp, type Ip, parseIp } from "../net/ip.ts";
import { allocationName, type IpAllocationSpec, NO_NODE } from "../resources/ip-allocation.ts";
import type { IpPool, IpPoolSpec } from "../resources/ip-pool.ts";
import { findExclusion } from "../resources/locate-address.ts";
import { describeWorkload, isRecreated, isSameMember, type Workload } from "../resources/member.ts";
import { NONE_OCCUPIED } from "../resources/occupied-ips.ts";
import { tableOfPools } from "../resources/pools-by-name.ts";
import { SpacesIndex } from "../resources/range-search.ts";
import { isReservedFor, ownNames } from "../resources/reserved-ip.ts";
import { hasMember } from "../resources/workloads/stateful-set.ts";
import type { CachedAllocation } from "./cached-allocation.ts";
import { firstNicOf, settingsOf } from "./caches.ts";
import { claimedBy, recordFor } from "./claimants.ts";
import { describe } from "./examples.ts";
import type { NamespaceShares } from "./namespace-shares.ts";
import { valuesOf } from "./objects.ts";
import type { Caches, NamingWorkload } from "./types.ts";

/** `why` is a clause about an address that cannot be given. */
type Offer = { readonly text: string } & ({ readonly spec: IpAllocationSpec } | { readonly why: string });

/**
 * Returns a function that returns the record for each address of a workload by the present caches, or why there can be
 * none. `text`: `10.6.0.50 for db-0`. `only`: this address alone. It throws ConfigError for a claim and annotations,
 * also of the namespace, that cannot be read.
 */
export function openOffers(caches: Caches): (of: NamingWorkload, only?: Ip) => readonly Offer[] {
  const siblings = valuesOf(caches.pools.items.values());
  // Blocks are leased for pods. A NIC's network is unknown before the pod.
  const open = siblings.filter(({ deleting, source }) => !deleting && source === undefined);
  // Addresses of a disabled pool alone are reserved, too, or another pod could get them when the pool is enabled.
  const off = new Set<string>(open.flatMap(({ name, spec }) => (spec.disable ? name : [])));
  const tableFor = (unknown: Partial<IpPoolSpec>) =>
    tableOfPools(open.map((pool) => ({ ...pool, spec: { ...pool.spec, multusName: [], disable: false, ...unknown } })));
  const pools = tableFor({});
  // So are the labels of a claim's pod.
  const poolsOfClaims = tableFor({ podAffinity: undefined });
  const index = new SpacesIndex([...pools.values()].map((value) => ({ space: "", ranges: value.spec.ranges, value })));
  const reserved = valuesOf(caches.reserved.items.values());
  const [vendorConf, firstNic] = [settingsOf(caches), firstNicOf(caches)];
  const { enableStatefulSet, enableKubevirt } = vendorConf;
  const isOff: Partial<Record<string, boolean>> = { StatefulSet: !enableStatefulSet, VirtualMachine: !enableKubevirt };
  return (of, only) => {
    const { kind, namespace, name, uid, labels } = of;
    if (of.fault !== undefined) throw of.fault;
    const annotations = decodePodAnnotations(of.annotations, vendorConf);
    const isRead = ({ ip }: Named): boolean => of.requested !== undefined || isEnabled(ip.family, vendorConf);
    const named = namedBy(of, annotations.ips, firstNic).filter(isRead);
    const isWanted = ({ ip }: Named): boolean => only === undefined || equalIp(ip, only);
    const namesOf = (ip: Ip): string[] => index.find("", ip).map((pool) => pool.name);
    const isClaim = kind === "IPAMClaim";
    const home = caches.namespaces.items.get(namespace);
    const application = { kind: "none", reason: "no address is reserved in them" } as const;
    const having = [...new Set(named.filter(isWanted).flatMap(({ ip }) => namesOf(ip)))].sort();
    const select = (ifName: string, family: Family): readonly Candidate[] => {
      const subject = {
        ...{ node: undefined, pod: { namespace, name, labels, annotations, application } },
        ...{ namespace: home && isClaim ? { ...home, annotations: {} } : home, network: "" },
        // So are the pools that the network's configuration names.
        ipamConf: { type: "berth" as const, [`default_ipv${family}_ippool`]: having },
        ...{ ifName, firstNic, vendorConf },
      };
      const { nics } = selectPools(subject, isClaim ? poolsOfClaims : pools);
      const own = nics.find((each) => each.ifName === ifName)?.families;
      return own?.find((each) => each.family === family)?.candidates ?? [];
    };
    /** By NIC and family, selected once: the patterns of a tenant take long. */
    const selections = new Map<string, readonly Candidate[] | string>();
    const find = ({ member, ifName: nic = firstNic, ip, isStray }: Named): IpPool | string => {
      if (isStray) return `no pod of ${describeWorkload(of)} has that name`;
      if (isOff[kind] === true) return `vendor-conf has it that a ${kind} keeps no addresses`;
      const claim = claimsOf(annotations, firstNic, nic).get(nic);
      if (claim !== undefined) return `interface "${nic}" refers to IPAMClaim "${claim}"`;
      const key = `${nic} ${ip.family}`;
      const selected = selections.getOrInsertComputed(key, () => orWhy(CniError, () => select(nic, ip.family)));
      if (typeof selected === "string") return selected;
      const names = namesOf(ip);
      const candidates = selected
        .filter((each) => names.includes(each.name))
        .sort((a, b) => Number(off.has(a.name)) - Number(off.has(b.name)));
      const own = ownNames(namespace, member);
      const others = reserved.filter((each) => !isReservedFor(each, own));
      const around = { reserved: others, occupied: NONE_OCCUPIED, siblings };
      const reasons: string[] = [];
      for (const each of candidates) {
        const why = each.brief ?? each.refusal ?? (each.pool && findExclusion(ip, each.pool, around, true));
        if (why === undefined && each.pool !== undefined) return each.pool;
        reasons.push(`pool "${each.name}": ${why}`);
      }
      return reasons.join("; ") || `no pool${names.length > 0 ? " that its pods select" : ""} has it`;
    };
    const offer = (each: Named): Offer => {
      const { member, ifName, ip } = each;
      const text = `${formatIp(ip)} for ${member}`;
      const pool = find(each);
      if (typeof pool === "string") return { text, why: pool };
      return { text, spec: { ...recordFor({ kind, namespace, name, uid, member, ifName }, ip, pool), number: 0 } };
    };
    const byNic = Map.groupBy(named, ({ member, ifName }) => `${member} ${ifName}`);
    return [...byNic.values()].flatMap((all) => {
      const twice = FAMILIES.find((family) => all.filter(({ ip }) => ip.family === family).length > 1);
      if (twice === undefined) return all.filter(isWanted).map(offer);
      const texts = all.flatMap(({ ip }) => (ip.family === twice ? formatIp(ip) : []));
      return { text: texts.join(" and "), why: `a NIC gets one IPv${twice} address` };
    });
  };
}

/** Returns the text of such an error in place of throwing it. */
function orWhy<T>(kind: typeof CniError | typeof ConfigError, work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    if (error instanceof kind) return error.message;
    throw error;
  }
}

/** An address of a member's NIC, by default any. */
interface Named extends Pick<Workload, "member" | "ifName"> {
  readonly ip: Ip;
  /** No member ever has the name. */
  readonly isStray?: boolean;
}

/** Returns the addresses that the workload names, but not for members to come; a list is for the first member. */
function namedBy(of: NamingWorkload, ips: PodAnnotations["ips"] = [], firstNic: string): readonly Named[] {
  const { name, ordinals, requested } = of;
  if (requested !== undefined) {
    const nic = { member: name, ifName: of.ifName || undefined };
    return requested.flatMap((text) => parseIp(text) ?? []).map((ip) => ({ ...nic, ip }));
  }
  const first = ordinals === undefined ? name : `${name}-${ordinals.start}`;
  const byMember = ips instanceof Map ? [...ips] : [[first, ips] as const];
  const has = (member: string, own = ordinals): boolean =>
    own === undefined ? member === name : hasMember(name, own, member);
  const isStray = (member: string): boolean => !has(member, ordinals && { start: 0, replicas: Infinity });
  const told = byMember.filter(([member]) => has(member) || isStray(member));
  return told.flatMap(([member, nics]) =>
    nics.flatMap(({ interface: ifName = firstNic, ipv4, ipv6 }) =>
      [ipv4, ipv6].flatMap((ip) => (ip === undefined ? [] : [{ member, ifName, ip, isStray: isStray(member) }])),
    ),
  );
}

export function isOffered(offers: readonly Offer[], { ip, pool, workload }: CachedAllocation["spec"]): boolean {
  return offers.some(
    (each) => "spec" in each && equalIp(each.spec.ip, ip) && each.spec.pool === pool && isOwn(each.spec, workload),
  );
}

export interface FixedClaim {
  readonly of: NamingWorkload;
  readonly text: string;
  readonly spec: IpAllocationSpec;
}

/** Of the workloads that were added. */
export interface FixedPlan {
  /** By name. */
  readonly missing: ReadonlyMap<string, FixedClaim>;
  /** Why workloads do not get some of their named addresses: sentences without a full stop. */
  readonly refused: ReadonlyMap<NamingWorkload, readonly string[]>;
  /** The names of all records that exist or should exist. */
  readonly wanted: ReadonlySet<string>;
  /** If two workloads name one address, the first gets it. */
  readonly add: (of: NamingWorkload) => void;
}

/** `shares`: of all allocations. */
export function openFixedPlan(caches: Caches, shares: NamespaceShares): FixedPlan {
  const offersOf = openOffers(caches);
  const most = settingsOf(caches).maxAddressesPerNamespace;
  const claimed = claimedBy(caches);
  const [missing, wanted] = [new Map<string, FixedClaim>(), new Set<string>()];
  const room = new Map<string, number>();
  /** Returns why the address cannot be given. */
  const plan = (of: NamingWorkload, offer: Offer): string | undefined => {
    if ("why" in offer) return offer.why;
    const { spec } = offer;
    const name = allocationName(spec.ip, spec.addressSpace);
    wanted.add(name);
    const found = missing.get(name) ?? caches.allocations.items.get(name);
    const due = dueFor(found, spec);
    if (due !== "due") return due === "taken" && found !== undefined ? describeTaken(found.spec, of) : undefined;
    if (claimed.has(formatIp(spec.ip))) return "a Node or a Service has it";
    const left = room.getOrInsertComputed(of.namespace, (each) => shares.roomOf(each, most));
    if (left <= 0) return `namespace ${of.namespace} has as many addresses as it may`;
    room.set(of.namespace, left - 1);
    missing.set(name, { of, ...offer });
    return undefined;
  };
  const refused = new Map<NamingWorkload, readonly string[]>();
  const add = (of: NamingWorkload): void => {
    const offers = orWhy(ConfigError, () => offersOf(of));
    const reasonOf = (each: Offer): string[] => {
      const why = plan(of, each);
      return why === undefined ? [] : [`${each.text}: ${why}`];
    };
    const reasons = typeof offers === "string" ? [offers] : offers.flatMap(reasonOf);
    if (reasons.length > 0) refused.set(of, reasons);
  };
  return { missing, refused, wanted, add };
}

/** A cooling address is free when its record is gone. A recreated workload's former record was on no NIC. */
export function dueFor(
  found: (Pick<CachedAllocation, "spec"> & { readonly deleting?: boolean }) | undefined,
  { workload }: IpAllocationSpec,
): "due" | "taken" | "later" {
  if (found === undefined) return "due";
  const { spec, deleting } = found;
  if (deleting || spec.state === "Cooling" || isOwn(spec, workload)) return "later";
  return spec.node === NO_NODE && isRecreated(spec.workload, workload) ? "due" : "taken";
}

/** A claim may be for any NIC; objects of older agents do not name theirs. */
function isOwn({ workload }: Pick<IpAllocationSpec, "workload">, of: Workload | undefined): boolean {
  const [wanted, named] = [of?.ifName, workload?.ifName];
  return (wanted === undefined || named === undefined || wanted === named) && isSameMember(of, workload);
}

/** Does not name the owner of an address in another namespace. */
function describeTaken(spec: CachedAllocation["spec"], { namespace }: NamingWorkload): string {
  if (spec.quarantine?.reason === "NodeLost") return "a pod of a lost node may have it";
  if (spec.state === "Quarantined") return "another machine answers for it";
  if (spec.workload?.kind === "Node") return "a Node has it";
  const its = spec.holders[0]?.namespace ?? spec.workload?.namespace;
  return its === namespace ? `it is taken: ${describe(spec)}` : "another namespace has it";
}
