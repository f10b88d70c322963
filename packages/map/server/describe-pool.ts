import { rangeOfPrefix } from "../../../host/net/range.ts";
import { edgesOf } from "../../../host/resources/fields/address-spec.ts";
import { describePoolOwner } from "../../../host/resources/fields/subnet-pool.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { routersOf } from "../../../host/resources/ip-pool-shape.ts";
import type { OccupiedIp } from "../../../host/resources/occupied-ips.ts";
import type { MapPool } from "./map-source.ts";

/** Returns the pool as the map shows it. Addresses that are never handed out count as excluded. */
export function mapPoolOf(
  { name, spec, source }: IpPool,
  conditions: MapPool["conditions"],
  exceptions: readonly OccupiedIp[],
): MapPool {
  const { subnet, addressSpace, ranges, excluded, gateway, generated } = spec;
  const others = exceptions.map(({ ip }) => ip);
  const single = [...edgesOf(subnet, rangeOfPrefix(subnet)), ...routersOf(spec), ...others];
  return {
    name,
    subnet,
    addressSpace,
    ranges,
    excluded: [...excluded, ...single.map((ip) => ({ first: ip, last: ip }))],
    gateway,
    elsewhere: source?.report?.others,
    exceptions,
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
