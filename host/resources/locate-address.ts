/** Which pools have an address in their subnet, and whether they may allocate it. */
import { equalIp, type Ip } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import { rangeContains, rangeOfPrefix } from "../net/range.ts";
import { isSpecial } from "../net/special.ts";
import type { IpPool } from "./ip-pool.ts";
import { edgesOf } from "./ip-pool-shape.ts";
import type { ReservedIp } from "./reserved-ip.ts";

export interface AddressPlace {
  readonly pool: string;
  readonly addressSpace: string;
  readonly subnet: string;
  /** Why the pool never allocates the address: a clause. Absent: it may. */
  readonly excluded?: string;
}

/** Returns a place for each pool whose subnet has the address, in the order given. */
export function locateAddress(ip: Ip, pools: Iterable<IpPool>, reserved: readonly ReservedIp[]): AddressPlace[] {
  return [...pools]
    .filter(({ spec }) => rangeContains(rangeOfPrefix(spec.subnet), ip))
    .map((pool) => {
      const { name, spec } = pool;
      const excluded = exclusionOf(ip, pool, reserved);
      const place = { pool: name, addressSpace: spec.addressSpace, subnet: formatPrefix(spec.subnet) };
      return excluded === undefined ? place : { ...place, excluded };
    });
}

/** The same addresses are masked as by ip-pool-shape.ts. */
function exclusionOf(ip: Ip, { spec }: IpPool, reserved: readonly ReservedIp[]): string | undefined {
  const { subnet, gateway, ranges, excluded, addressSpace } = spec;
  if (gateway !== undefined && equalIp(gateway, ip)) return "it is the gateway";
  const [network, broadcast] = edgesOf(subnet, rangeOfPrefix(subnet));
  if (network !== undefined && equalIp(network, ip)) return "it is the network address of the subnet";
  if (broadcast !== undefined && equalIp(broadcast, ip)) return "it is the broadcast address of the subnet";
  if (isSpecial(ip)) return "no pod can have it: it is not a unicast address of a machine";
  if (excluded.some((range) => rangeContains(range, ip))) return "spec.excludeIPs has it";
  const by = reserved.find(
    (each) => each.spec.addressSpace === addressSpace && each.spec.ranges.some((range) => rangeContains(range, ip)),
  );
  if (by !== undefined) return `ReservedIP "${by.name}" has it`;
  return ranges.some((range) => rangeContains(range, ip)) ? undefined : "spec.ips does not have it";
}
