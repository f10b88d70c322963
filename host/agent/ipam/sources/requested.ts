/** Addresses that the runtime, the pod or its IPAMClaim requests: honoured or refused, never replaced by others. */
import { ErrorCode } from "../../../cni/error.ts";
import type { NicDemand } from "../../../ipam/model.ts";
import { assignRequested, refuseRequested } from "../../../ipam/requested-ips.ts";
import { equalIp, formatIp } from "../../../net/ip.ts";
import type { Allocation } from "../../../registry/registry.ts";
import { describeWorkload, isSameMember } from "../../../resources/member.ts";
import { MIN_COOLING_MS } from "../../request/add-deadline.ts";
import { isRetained, type ReleasedAddresses } from "./released.ts";
import { type Search, workloadOf } from "./source.ts";

export class RequestedAddresses {
  readonly #search: Search;
  readonly #released: ReleasedAddresses;

  constructor(search: Search, released: ReleasedAddresses) {
    this.#search = search;
    this.#released = released;
  }

  /**
   * Assigns all of them to the NIC of the request. Throws CniError 100 or 7 when one cannot be had, PoolShortage when
   * its pool has yet to be generated.
   */
  assign(nic: NicDemand): void {
    const { poolCache, demand, assignments } = this.#search;
    assignments.assign(assignRequested(poolCache, nic, demand.requested));
  }

  /**
   * Another owner has an assigned address. Returns false if the pod does not request it, or need not have it; else
   * waits until it has cooled, and throws CniError 101 or 11 when it is not to be had.
   */
  async replace(holder: Allocation): Promise<boolean> {
    const { demand, assignments } = this.#search;
    const assigned = assignments.at(holder);
    const request = demand.requested.find(({ ip }) => equalIp(ip, holder.ip));
    if (assigned?.requested !== true || request === undefined) return false;
    const { source, isPreference = false } = request;
    // In quarantine for a lost node it is still the claim's.
    const isOwn =
      assigned.ifName === holder.ifName && isSameMember(workloadOf(demand, assigned.ifName), holder.workload);
    if (isPreference && !isOwn) return false;
    const address = formatIp(holder.ip);
    if (holder.state !== "Cooling") {
      const { text, forLog } = describeHolder(holder, demand.claimant.namespace);
      throw refuseRequested(ErrorCode.PoolExhausted, source, `${address}: ${text}`, `${address}: ${forLog}`);
    }
    await this.#released.waitFor(holder);
    if (this.#released.ageOf(holder) < MIN_COOLING_MS || (isRetained(holder) && !isOwn))
      throw refuseRequested(ErrorCode.TryAgainLater, source, `${address} was released only just now`);
    assignments.assign([{ ...assigned, replaces: holder.version }]);
    return true;
  }
}

/** The owner of an address that a pod of `namespace` requests; `text` does not name one in another namespace. */
function describeHolder(holder: Allocation, namespace: string): { readonly text: string; readonly forLog: string } {
  const { state, pod, containerId, ifName, quarantine, workload, version } = holder;
  if (state === "Quarantined") {
    const isCertain = quarantine === undefined || quarantine.mac !== undefined;
    const doubt = version < 0 ? "its node was lost" : "another machine may answer for it";
    const why = isCertain ? `${quarantine?.mac ?? "another machine"} answers for it` : doubt;
    const text = `it is quarantined, because ${why}`;
    return { text, forLog: text };
  }
  if (state === "Kept" && workload !== undefined) {
    const forLog = `it is retained for ${describeWorkload(workload)}`;
    if (workload.kind === "Node") return { text: "a Node has it", forLog };
    const isForeign = workload.namespace !== namespace;
    return { text: isForeign ? "it is retained for a workload of another namespace" : forLog, forLog };
  }
  const whose = pod === "" ? `container ${containerId}` : `pod ${holder.namespace}/${pod}`;
  const forLog = `it is ${state} to ${whose}, interface ${ifName}`;
  const isForeign = pod !== "" && holder.namespace !== namespace;
  return { text: isForeign ? `it is ${state} to a pod of another namespace` : forLog, forLog };
}
