/**
 * Between what was picked and what the registry speaks of.
 * Called by claim-addresses.ts.
 * Effects: none.
 */
import type { Picked } from "../../ipam/pick.ts";
import { equalIp } from "../../net/ip.ts";
import type { Allocation, Proposal } from "../../registry/registry.ts";

export function proposalOf({ ifName, pool, ip, replaces, asked }: Picked): Proposal {
  return {
    space: pool.spec.addressSpace,
    ip,
    prefixLength: pool.spec.subnet.length,
    pool: pool.name,
    ifName,
    ...(replaces === undefined ? {} : { replaces }),
    ...(asked === undefined ? {} : { asked }),
  };
}

export function isAt({ pool, ip }: Picked, place: Pick<Allocation, "space" | "ip">): boolean {
  return pool.spec.addressSpace === place.space && equalIp(ip, place.ip);
}

/** Who has an address that somebody asks for. */
export function describeHolder({ state, namespace, pod, containerId, ifName, quarantine }: Allocation): string {
  if (state === "Quarantined")
    return `it is quarantined, because ${quarantine?.mac ?? "another machine"} answers for it`;
  const who = pod === "" ? `container ${containerId}` : `pod ${namespace}/${pod}`;
  return `it is ${state} to ${who}, interface ${ifName}`;
}
