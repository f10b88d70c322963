/** The product's objects for the search, and how their states are told apart. */
import {
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
  NO_NODE,
} from "../../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { ip } from "../../../world/values.ts";
import type { Call, Stored } from "./protocol.ts";

type Spec = IpAllocationSpec;

/** The name of the address's object. */
export const NAME = "10.0.0.1";
export const IP = ip(NAME);
export const SINCE = "2026-01-01T00:00:00Z";

export function objectOf({ uid, version, spec }: Stored<Spec>): IpAllocation {
  return {
    kind: "IPAllocation",
    name: NAME,
    uid: String(uid),
    resourceVersion: String(version),
    deleting: false,
    spec,
  };
}

/** Returns the record that the controller makes for an owner without a pod. */
export function keptSpec(workload: Workload | undefined): Spec {
  const place = { ip: IP, addressSpace: "", prefixLength: 24, pool: "blue", node: NO_NODE, since: SINCE };
  return { ...place, state: "Kept", holders: [], workload };
}

export function flag(isSet: boolean | undefined): string {
  return isSet === true ? "1" : "0";
}

export function keyOfWorkload(workload: Workload | undefined): string {
  return workload === undefined ? "-" : workload.member;
}

/** Of one address only the number 0 matters: there is no other to which it could be compared. */
export function rankOf(number: number | undefined): string {
  return flag((number ?? 1) > 0);
}

export function keyOfSpec({ state, node, holders, workload, number, quarantine }: Spec): string {
  const nameOf = (holder: Holder | undefined) => `${holder?.podUid}@${holder?.node}/${holder?.machine}`;
  const all = holders.map((holder) => `${nameOf(holder)} #${holder.claim}`).join();
  const why = quarantine === undefined ? "" : `${quarantine.reason} ${nameOf(quarantine.holder)}`;
  return `${state} ${node} ${all} ${rankOf(number)} ${keyOfWorkload(workload)} ${why}`;
}

export function keyOfCall(call: Call<Spec>): string {
  const before = "before" in call ? `#${call.before.uid} #${call.before.version}` : "";
  return `${call.kind} ${before} ${"spec" in call ? keyOfSpec(call.spec) : ""}`;
}
