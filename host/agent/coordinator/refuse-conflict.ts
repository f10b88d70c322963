/**
 * The refusal of an address that another machine answers for, found when it was on the NIC already.
 * Called by the plugin. An address of Berth's is quarantined; one of another IPAM is only told of.
 * Effects: those of the registry.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { Conflict, ProbeLink } from "../../coordinator/probe.ts";
import { addressConflicts } from "../../ipam/conflict.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import type { Attachment, Registry } from "../../registry/registry.ts";
import { findParentName } from "../detection/node-link.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";

export interface RefusalTools {
  readonly registry: Registry;
  readonly keeper: QuarantineProber;
}

/** CniError 104 that names the address, the MAC and, when it is one of Berth's, the pool. */
export async function refuseConflict(
  { registry, keeper }: RefusalTools,
  attachment: Attachment,
  { ip, mac }: Conflict,
  link: ProbeLink,
): Promise<CniError> {
  const { ifName } = attachment;
  const recorded = await registry.findAttachment(attachment);
  const allocation = recorded.find((each) => each.state === "Bound" && equalIp(each.ip, ip));
  if (allocation === undefined) {
    return new CniError(
      ErrorCode.AddressConflict,
      `Address ${formatIp(ip)} is in use by ${mac ?? "another machine"} on the segment of interface "${ifName}"; ` +
        "it is not one of Berth's, so its IPAM may hand it out again",
    );
  }
  const fate = await keeper.conflict({ allocation, mac, parent: findParentName(link.netnsPath, ifName) });
  // As after the early stage: were it the owner's until DEL, the next attempt would get the same again, as what cools is its owner's.
  if (fate === "proxyArp") await registry.undo([allocation]);
  return addressConflicts({ ip, pool: allocation.pool, mac, ifName, source: undefined, fate });
}
