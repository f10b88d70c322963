/**
 * CHECK of `berth`: recorded, equal to prevResult, present on the link. It never heals.
 * Called by plugin.ts.
 * Effects: reads the registry and the pod's link.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import type { Allocation, Attachment, Registry } from "../../registry/registry.ts";

export interface CheckTools {
  readonly registry: Registry;
  /** Why an address of the attachment is somebody else's in the API server (allocation rule 5); undefined when none is. Absent: no API server. */
  readonly findLoss?: ((attachment: Attachment) => string | undefined) | undefined;
}

export async function checkAddresses({ registry, findLoss }: CheckTools, request: AttachRequest): Promise<void> {
  const { containerId, ifName } = request;
  const found = await registry.findAttachment({ containerId, ifName });
  const held = found.filter(({ state }) => state === "Bound");
  if (held.length === 0) {
    throw new CniError(
      ErrorCode.UnknownContainer,
      `No address is recorded for interface "${ifName}" of container ${containerId}`,
    );
  }
  const loss = findLoss?.({ containerId, ifName });
  if (loss !== undefined) throw new CniError(ErrorCode.AddressConflict, loss);
  comparePrevResult(request, held);
  compareLink(request, held);
}

function comparePrevResult({ netConf, ifName }: AttachRequest, held: readonly Allocation[]): void {
  const { prevResult } = netConf;
  if (prevResult === undefined) {
    throw new CniError(ErrorCode.InvalidNetworkConfig, 'CHECK needs "prevResult", found nothing');
  }
  const given = prevResult.ips.map(({ address }) => address.ip);
  const lost = held.find(({ ip }) => !given.some((other) => equalIp(other, ip)));
  if (lost !== undefined) {
    const text = `"prevResult" lacks ${formatIp(lost.ip)}, which is recorded for interface "${ifName}"`;
    throw new CniError(ErrorCode.InvalidNetworkConfig, text);
  }
  const ours = (ip: Allocation["ip"]): boolean =>
    held.some((each) => prefixContains({ ip: each.ip, length: each.prefixLength }, ip));
  const foreign = given.find((ip) => ours(ip) && !held.some((each) => equalIp(each.ip, ip)));
  if (foreign !== undefined) {
    const text = `"prevResult" has ${formatIp(foreign)}, recorded for interface "${ifName}" is ${held.map(({ ip }) => formatIp(ip)).join(", ")}`;
    throw new CniError(ErrorCode.InvalidNetworkConfig, text);
  }
}

function compareLink({ netns, ifName }: AttachRequest, held: readonly Allocation[]): void {
  const link = observeLink(netns, ifName);
  if (link === undefined) {
    throw new CniError(ErrorCode.InterfaceRefused, `Interface "${ifName}" is missing in ${netns}`);
  }
  const missing = held.find(({ ip }) => !link.addresses.some((address) => equalIp(address.ip, ip)));
  if (missing !== undefined) {
    const text = `Interface "${ifName}" in ${netns} lacks its address ${formatIp(missing.ip)}/${missing.prefixLength}`;
    throw new CniError(ErrorCode.InterfaceRefused, text);
  }
}
