/** Addresses that an annotation, an IPAMClaim or the runtime requests by name: honoured or refused, never replaced. */
import { CniError, ErrorCode } from "../cni/error.ts";
import type { RequestedIp } from "../cni/request.ts";
import type { PodAnnotations } from "../config/annotations.ts";
import { equalIp, type Family, formatIp, type Ip } from "../net/ip.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { NOT_IN_RANGES } from "../resources/locate-address.ts";
import { findReserved, isReservedFor, type OwnNames, type ReservedIp } from "../resources/reserved-ip.ts";
import type { Candidate, NicDemand } from "./model.ts";
import { findWithholding, type Proposal, poolsOf, proposalOf } from "./pick.ts";
import type { PoolCache } from "./pool-cache.ts";
import { describePassedOver, noPoolMatches, type Reader } from "./refusal.ts";

type RequestedPool =
  | { readonly kind: "pool"; readonly pool: IpPool }
  | { readonly kind: "none"; readonly reason: string; readonly forLog: string };

/** A pod and one of its NICs, for which addresses may be requested by name. */
interface NamedNic {
  readonly own: OwnNames;
  readonly ifName: string;
  /** Name of the pod's first NIC, which is meant where none is named. */
  readonly firstNic: string;
}

/** Returns the annotation `ips`'s entries for the NIC: of the first one, with its name and without. */
export function findNamed(ips: PodAnnotations["ips"] = [], { own, ifName, firstNic }: NamedNic) {
  const listed = ips instanceof Map ? own.names.flatMap((name) => ips.get(name) ?? []) : ips;
  return listed.filter((entry) => (entry.interface ?? firstNic) === ifName);
}

/** Returns the addresses that it requests. */
export function requestedByAnnotation(ips: PodAnnotations["ips"], named: NamedNic): RequestedIp[] {
  const source = 'annotation "ipam.vendor.io/ips"' as const;
  const all = findNamed(ips, named).flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
  return all.flatMap((ip) => (ip === undefined ? [] : [{ ip, source }]));
}

/** Returns the addresses reserved for the NIC. Of several reservations of an address one counts (findReserved). */
export function requestedByReservation(
  reserved: readonly ReservedIp[],
  { own, ifName, firstNic }: NamedNic,
): RequestedIp[] {
  const ofPod = reserved.filter((each) => isReservedFor(each, own));
  const ofNic = ofPod.filter(({ spec: { owner } }) => (owner?.interface ?? firstNic) === ifName);
  return ofNic.flatMap((each) => {
    const { ranges, addressSpace: space } = each.spec;
    const source = `ReservedIP "${each.name}"` as const;
    return ranges.flatMap(({ first: ip }): RequestedIp[] => {
      const counting = findReserved(reserved, { space, ip });
      if (counting === each) return [{ ip, source, reservedIn: space }];
      return ofNic.some((other) => other === counting) ? [] : [{ ip, source }];
    });
  });
}

/**
 * Adds reserved addresses to the requests, which come first: a reservation counts unless one of them insists on another
 * address of its family.
 */
export function withReserved(requests: readonly RequestedIp[], reserved: readonly RequestedIp[]): RequestedIp[] {
  const has = (all: readonly RequestedIp[], { family }: Ip): boolean => all.some(({ ip }) => ip.family === family);
  const kept = requests.flatMap((request) => {
    const { reservedIn } = reserved.find(({ ip }) => equalIp(ip, request.ip)) ?? {};
    if (reservedIn !== undefined) return [{ ...request, reservedIn, isPreference: false }];
    return request.isPreference === true && has(reserved, request.ip) ? [] : [request];
  });
  return [...kept, ...reserved.filter(({ ip }) => !has(kept, ip))];
}

/**
 * Returns the candidate pool that can hand out a requested address. `heldIn`: the address space in which the pod had it
 * before, or a ReservedIP has it for the pod.
 */
export function findPoolOfRequested(poolCache: PoolCache, nic: NicDemand, ip: Ip, heldIn?: string): RequestedPool {
  const isHeld = heldIn !== undefined;
  const demand = nic.families.find(({ family }) => family === ip.family);
  if (demand === undefined) {
    const reason = `${nic.rule} names no IPv${ip.family} pool`;
    return { kind: "none", reason, forLog: reason };
  }
  const isElsewhere = (pool?: IpPool): boolean => isHeld && pool !== undefined && pool.spec.addressSpace !== heldIn;
  const mayHave = (pool: IpPool): boolean =>
    !isElsewhere(pool) && poolCache.contains(pool.name, ip, isHeld) && findWithholding(nic, pool, ip) === undefined;
  const pool = poolsOf(demand).find(mayHave);
  if (pool !== undefined) return { kind: "pool", pool };
  const shortReasonOf = (): string => `may not hand out ${formatIp(ip)}`;
  const reasonFor =
    (reader: Reader) =>
    (candidate: Candidate): string => {
      if (isElsewhere(candidate.pool)) return `${shortReasonOf()}: it is reserved in address space "${heldIn}"`;
      const excluded = poolCache.findExclusion(candidate.name, ip, { isBrief: reader === "owner", isHeld });
      const why = excluded ?? (candidate.pool && findWithholding(nic, candidate.pool, ip));
      return why === undefined || why === NOT_IN_RANGES ? shortReasonOf() : `${shortReasonOf()}: ${why}`;
    };
  const textFor = (reader: Reader): string =>
    describePassedOver(demand.candidates, reader, {
      reasonOf: reasonFor(reader),
      shortReasonOf,
      separator: " ",
    }).join("; ");
  return { kind: "none", reason: textFor("owner"), forLog: textFor("administrator") };
}

/**
 * Returns all requested addresses with their pools, without preferences that no pool hands out: retained ones are found
 * anyway. Throws CniError 100 or 7 if no pool can hand one out, PoolShortage if the pool has not been generated yet.
 */
export function assignRequested(poolCache: PoolCache, nic: NicDemand, requested: readonly RequestedIp[]): Proposal[] {
  const byFamily = new Map<Family, Ip>();
  return requested.flatMap(({ ip, length, source, reservedIn, isPreference }) => {
    const first = byFamily.get(ip.family);
    if (first !== undefined) {
      const text = `${formatIp(first)} and ${formatIp(ip)}: a NIC gets one IPv${ip.family} address`;
      throw refuseRequested(ErrorCode.InvalidNetworkConfig, source, text);
    }
    byFamily.set(ip.family, ip);
    const demand = nic.families.find(({ family }) => family === ip.family);
    if (demand?.generated !== undefined && demand.candidates.length === 0)
      throw noPoolMatches({ nics: [nic], nic, demand });
    // The coordinator may accept now an address that it refused before, and there is no other address to try.
    const found = findPoolOfRequested(poolCache, { ...nic, refused: [] }, ip, reservedIn);
    if (found.kind === "none") {
      if (isPreference === true) return [];
      const [text, forLog] = [found.reason, found.forLog].map((reason) => `${formatIp(ip)}: ${reason}`);
      throw refuseRequested(ErrorCode.NoPoolMatches, source, text ?? "", forLog);
    }
    const { subnet } = found.pool.spec;
    if (length !== undefined && length !== subnet.length) {
      const text = `${formatIp(ip)}/${length}: the subnet of pool "${found.pool.name}" has length ${subnet.length}`;
      throw refuseRequested(ErrorCode.InvalidNetworkConfig, source, text);
    }
    return proposalOf(found.pool, { ifName: nic.ifName, ip, requested: true });
  });
}

/** Returns the error. `text` names the address and the reason; `forLog` is the same with all names. */
export function refuseRequested(code: ErrorCode, source: string, text: string, forLog?: string): CniError {
  const head = `The address requested by ${source} is refused`;
  return new CniError(code, `${head}: ${text}`, { forLog: forLog && `${head}: ${forLog}` });
}
