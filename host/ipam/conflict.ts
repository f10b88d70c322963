/** Errors and conditions about addresses that another machine answers for. */
import { CniError, ErrorCode } from "../cni/error.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";

/** Number of a pool's addresses for which one machine answers that makes it a proxy-ARP suspect. */
export const PROXY_ARP_ADDRESSES = 3;

/**
 * The outcome for an address in conflict: it was quarantined; freed, because the machine answers for every address;
 * or it belongs to another attachment of the same pod by now, with which it conflicts.
 */
export type ConflictAction = "quarantined" | "proxyArp" | "superseded";

interface RefusedAddress {
  readonly ip: Ip;
  readonly pool: string;
  /** MAC address of the other machine; undefined if its answer did not contain it. */
  readonly mac: Mac | undefined;
  readonly ifName: string;
  /** The place where this address was requested by name; undefined if it was not requested. */
  readonly source: string | undefined;
  readonly action: ConflictAction;
}

/** Returns code 104; code 11 if the conflict is with another attachment of the same pod. */
export function addressConflicts({ ip, pool, mac, ifName, source, action }: RefusedAddress): CniError {
  if (action === "superseded") {
    const text = `Address ${formatIp(ip)} of pool "${pool}" has gone to another attachment of the same pod meanwhile; try again`;
    return new CniError(ErrorCode.TryAgainLater, text);
  }
  const where = `Address ${formatIp(ip)} of pool "${pool}" is in use by ${mac ?? "another machine"}`;
  const text = `${where} on the segment of interface "${ifName}"; ${describeOutcome(action, source)}`;
  return new CniError(ErrorCode.AddressConflict, text);
}

function describeOutcome(action: "quarantined" | "proxyArp", source: string | undefined): string {
  if (action === "proxyArp") {
    return "ProxyArpSuspected: that machine answers for addresses of others, so none is quarantined; switch its proxy ARP off";
  }
  if (source !== undefined) return `it is quarantined; let ${source} ask for another address`;
  return "it is quarantined until that machine is silent; the next attempt gets another address if the pool has one";
}

/** A machine that seems to answer for every address. */
export interface ProxyArp {
  readonly mac: Mac;
  readonly pool: string;
  /** Set if the machine is this gateway of the pool; undefined if it answered for several addresses. */
  readonly gateway: Ip | undefined;
}

/** Returns the condition, as health and STATUS report it. */
export function describeProxyArp({ mac, pool, gateway }: ProxyArp): string {
  const machine = gateway === undefined ? mac : `${mac}, the gateway ${formatIp(gateway)},`;
  return `ProxyArpSuspected: ${machine} answers for addresses of pool "${pool}"; none is quarantined for it; switch its proxy ARP off`;
}
