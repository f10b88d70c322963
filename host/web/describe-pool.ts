import { rangeOfPrefix } from "../net/range.ts";
import { describePoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { edgesOf, isInside } from "../resources/ip-pool-shape.ts";
import type { MapPool } from "./map-source.ts";

/** Returns the pool as the map shows it. Its own addresses that are never handed out count as excluded: gateway, network and broadcast address. */
export function mapPoolOf({ name, spec }: IpPool, conditions: MapPool["conditions"]): MapPool {
  const { subnet, addressSpace, ranges, excluded, gateway, generated } = spec;
  const single = [...edgesOf(subnet, rangeOfPrefix(subnet)), ...(isInside(gateway, subnet) ? [gateway] : [])];
  return {
    name,
    subnet,
    addressSpace,
    ranges,
    excluded: [...excluded, ...single.map((ip) => ({ first: ip, last: ip }))],
    gateway,
    isDefault: spec.default,
    isDisabled: spec.disable,
    generated: generated && {
      subnet: generated.subnet,
      owner: describePoolOwner(generated.application),
      namespace: generated.application.namespace,
    },
    conditions,
  };
}
