/**
 * What people read about addresses that another machine answers for.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";

/** A machine that answers for so many addresses of one pool is taken for proxy ARP, and nothing is quarantined for it. @limit */
export const PROXY_ARP_ADDRESSES = 3;

/**
 * What became of an address that was in conflict: it is in quarantine, or free again because the machine answers for any, or another
 * attachment of the same pod has it by now, so that the conflict is with that.
 */
export type ConflictAction = "quarantined" | "proxyArp" | "superseded";

interface RefusedAddress {
  readonly ip: Ip;
  readonly pool: string;
  /** Undefined when its answer did not tell. */
  readonly mac: Mac | undefined;
  readonly ifName: string;
  /** What asked for just this address. */
  readonly source: string | undefined;
  readonly fate: ConflictAction;
}

/** Code 104, or 11 when the conflict is one of ours. */
export function addressConflicts({ ip, pool, mac, ifName, source, fate }: RefusedAddress): CniError {
  if (fate === "superseded") {
    const text = `Address ${formatIp(ip)} of pool "${pool}" has gone to another attachment of the same pod meanwhile; try again`;
    return new CniError(ErrorCode.TryAgainLater, text);
  }
  const where = `Address ${formatIp(ip)} of pool "${pool}" is in use by ${mac ?? "another machine"}`;
  const text = `${where} on the segment of interface "${ifName}"; ${describeOutcome(fate, source)}`;
  return new CniError(ErrorCode.AddressConflict, text);
}

function describeOutcome(fate: "quarantined" | "proxyArp", source: string | undefined): string {
  if (fate === "proxyArp") {
    return "ProxyArpSuspected: that machine answers for addresses of others, so none is quarantined; switch its proxy ARP off";
  }
  if (source !== undefined) return `it is quarantined; let ${source} ask for another address`;
  return "it is quarantined, and the next attempt gets another address";
}

/** A machine that seems to answer for whatever it is asked. */
export interface ProxyArp {
  readonly mac: Mac;
  readonly pool: string;
  /** It is this gateway of the pool; undefined: it has answered for several addresses. */
  readonly gateway: Ip | undefined;
}

/** The condition, as health and STATUS report it. */
export function describeProxyArp({ mac, pool, gateway }: ProxyArp): string {
  const who = gateway === undefined ? mac : `${mac}, the gateway ${formatIp(gateway)},`;
  return `ProxyArpSuspected: ${who} answers for addresses of pool "${pool}"; none is quarantined for it; switch its proxy ARP off`;
}
