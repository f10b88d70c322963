/** Addresses that an annotation, an IPAMClaim or the runtime requests by name: honoured or refused, never replaced. */
import { CniError, ErrorCode } from "../cni/error.ts";
import type { RequestedIp } from "../cni/request.ts";
import { equalIp, type Family, formatIp, type Ip } from "../net/ip.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { NOT_IN_RANGES } from "../resources/locate-address.ts";
import { type Candidate, familyName, type NicDemand } from "./model.ts";
import { describePassedOver, type Reader } from "./passed-over.ts";
import { type Proposal, poolsOf, proposalOf } from "./pick.ts";
import type { PoolCache } from "./pool-cache.ts";
import { noPoolMatches } from "./refusal.ts";
import { findWithholding } from "./withheld.ts";

type RequestedPool =
  | { readonly kind: "pool"; readonly pool: IpPool }
  | { readonly kind: "none"; readonly reason: string; readonly forLog: string };

/** Returns the candidate pool that can hand out a requested address. `isHeld`: its owner had it before. */
export function findPoolOfRequested(poolCache: PoolCache, nic: NicDemand, ip: Ip, isHeld = false): RequestedPool {
  const demand = nic.families.find(({ family }) => family === ip.family);
  if (demand === undefined) {
    const reason = `${nic.rule} names no ${familyName(ip.family)} pool`;
    return { kind: "none", reason, forLog: reason };
  }
  const mayHave = (pool: IpPool): boolean =>
    poolCache.contains(pool.name, ip, isHeld) && findWithholding(nic, pool, ip) === undefined;
  const pool = poolsOf(demand).find(mayHave);
  if (pool !== undefined) return { kind: "pool", pool };
  const shortReasonOf = (): string => `may not hand out ${formatIp(ip)}`;
  const reasonOf = (candidate: Candidate): string => {
    const excluded = poolCache.findExclusion(candidate.name, ip);
    const why = excluded ?? (candidate.pool && findWithholding(nic, candidate.pool, ip));
    return why === undefined || why === NOT_IN_RANGES ? shortReasonOf() : `${shortReasonOf()}: ${why}`;
  };
  const textFor = (reader: Reader): string =>
    describePassedOver(demand.candidates, reader, { reasonOf, shortReasonOf, separator: " " }).join("; ");
  return { kind: "none", reason: textFor("owner"), forLog: textFor("administrator") };
}

/**
 * Returns all requested addresses with their pools. Throws CniError 100 or 7 if no pool can hand one out,
 * PoolShortage if the pool has not been generated yet. `held`: addresses that the pod had before.
 */
export function assignRequested(
  poolCache: PoolCache,
  nic: NicDemand,
  requested: readonly RequestedIp[],
  held: readonly Ip[] = [],
): Proposal[] {
  const byFamily = new Map<Family, Ip>();
  return requested.map(({ ip, length, source }) => {
    const first = byFamily.get(ip.family);
    if (first !== undefined) {
      const text = `${formatIp(first)} and ${formatIp(ip)}: a NIC gets one ${familyName(ip.family)} address`;
      throw refuseRequested(ErrorCode.InvalidNetworkConfig, source, text);
    }
    byFamily.set(ip.family, ip);
    const demand = nic.families.find(({ family }) => family === ip.family);
    if (demand?.generated !== undefined && demand.candidates.length === 0)
      throw noPoolMatches({ nics: [nic], nic, demand });
    // The coordinator may accept now an address that it refused before, and there is no other address to try.
    const isHeld = held.some((each) => equalIp(each, ip));
    const found = findPoolOfRequested(poolCache, { ...nic, refused: [] }, ip, isHeld);
    if (found.kind === "none") {
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
