/** Addresses that one NIC may not have, although its pool hands them out to others. */
import { equalIp, type Ip } from "../net/ip.ts";
import { firstIp } from "../net/prefix.ts";
import { rangeContains } from "../net/range.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { OccupiedIp } from "../resources/occupied-ips.ts";
import type { NicDemand } from "./model.ts";

/** The NIC's main plugin: its type, and its own keys. */
interface MainPlugin {
  readonly type: string;
  readonly raw: Readonly<Record<string, unknown>>;
}

/**
 * Returns whether the main plugin gives itself an address where the result names no gateway: `bridge` as gateway
 * takes the first one after the network's (`calcGatewayIP` of the reference plugin).
 */
export function takesFirstAddress({ type, raw }: MainPlugin): boolean {
  return type === "bridge" && (raw.isGateway === true || raw.isDefaultGateway === true);
}

/** Returns the addresses of the pool's ranges that the NIC may not have, with the reasons. */
export function withheldFrom(
  { takesFirst = false, cleanGateway, refused = [] }: NicDemand,
  { spec: { subnet, gateway, addressSpace, ranges } }: IpPool,
): readonly OccupiedIp[] {
  const isTaking = takesFirst && (cleanGateway || gateway === undefined);
  const first = { family: subnet.ip.family, value: firstIp(subnet).value + 1n };
  const all = [
    ...(isTaking ? [{ ip: first, why: "the main plugin bridge takes it, because it is told no gateway" }] : []),
    ...refused
      .filter(({ space }) => space === addressSpace)
      .map(({ ip, why }) => ({ ip, why: `the coordinator refused it for this pod: ${why}` })),
  ];
  return all.filter(({ ip }) => ranges.some((range) => rangeContains(range, ip)));
}

/** Returns why the NIC may not have the pool's address, a clause; undefined if it may. */
export function findWithholding(nic: NicDemand, pool: IpPool, ip: Ip): string | undefined {
  return withheldFrom(nic, pool).find((each) => equalIp(each.ip, ip))?.why;
}
