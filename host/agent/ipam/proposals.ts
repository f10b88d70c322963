/**
 * Between what was picked and what the registry speaks of, and what keeps the addresses of each NIC.
 */
import type { Picked } from "../../ipam/pick.ts";
import { equalIp } from "../../net/ip.ts";
import type { Allocation, Claim, Proposal } from "../../registry/registry.ts";
import { memberKey, type Workload } from "../../resources/ip-allocation.ts";

/** What keeps addresses that are wanted. */
export interface Keepers {
  readonly claimant: Pick<Claim, "workload">;
  /** Of single NICs, in place of the claimant's. */
  readonly workloads?: ReadonlyMap<string, Workload> | undefined;
}

export function workloadOf({ claimant, workloads }: Keepers, ifName: string): Workload | undefined {
  return workloads?.get(ifName) ?? claimant.workload;
}

/** Where the search for a NIC's addresses starts; a workload of the NIC's own has a place of its own (allocation rule 8). */
export function seedTextOf({ workloads }: Keepers, ifName: string, seedText: string): string {
  const own = workloads?.get(ifName);
  return `${own === undefined ? seedText : memberKey(own)}/${ifName}`;
}

export function proposalOf(
  { ifName, pool, ip, replaces, requested, needsProbe }: Picked,
  { workloads }: Keepers,
): Proposal {
  const workload = workloads?.get(ifName);
  return {
    ...(workload === undefined ? {} : { workload }),
    space: pool.spec.addressSpace,
    ip,
    prefixLength: pool.spec.subnet.length,
    pool: pool.name,
    ifName,
    ...(replaces === undefined ? {} : { replaces }),
    ...(requested === undefined ? {} : { requested }),
    ...(needsProbe === true ? { needsProbe } : {}),
  };
}

export function isAt({ pool, ip }: Picked, place: Pick<Allocation, "space" | "ip">): boolean {
  return pool.spec.addressSpace === place.space && equalIp(ip, place.ip);
}

/** Who has an address that a pod of `namespace` asks for; a holder in another namespace has no name for its owner. */
export function describeHolder(
  holder: Allocation,
  namespace: string,
): { readonly text: string; readonly forLog: string } {
  const { state, pod, containerId, ifName, quarantine } = holder;
  if (state === "Quarantined") {
    const text = `it is quarantined, because ${quarantine?.mac ?? "another machine"} answers for it`;
    return { text, forLog: text };
  }
  const whose = pod === "" ? `container ${containerId}` : `pod ${holder.namespace}/${pod}`;
  const forLog = `it is ${state} to ${whose}, interface ${ifName}`;
  const isForeign = pod !== "" && holder.namespace !== namespace;
  return { text: isForeign ? `it is ${state} to a pod of another namespace` : forLog, forLog };
}
