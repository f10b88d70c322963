/**
 * CHECK of `berth`: the addresses are recorded, equal to prevResult with its gateways, and present on the link. Nothing is repaired.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { ClusterIpam } from "./cluster-ipam.ts";

interface CheckDeps {
  readonly registry: Registry;
  /** The current pools. */
  readonly inventory: { readonly snapshot: Pick<Snapshot, "pools"> };
  readonly cluster?: Pick<ClusterIpam, "findLoss"> | undefined;
}

/** Throws CniError 3, 7, 104 or 106 with the first difference. */
export async function checkAddresses(
  { registry, inventory, cluster }: CheckDeps,
  request: AttachRequest,
): Promise<void> {
  const { containerId, ifName } = request;
  const attachment = { containerId, ifName, network: request.netConf.name };
  const found = await registry.findAttachment(attachment);
  const held = found.filter(({ state }) => state === "Bound");
  if (held.length === 0) {
    throw new CniError(
      ErrorCode.UnknownContainer,
      `No address is recorded for interface "${ifName}" of container ${containerId}`,
    );
  }
  const loss = cluster?.findLoss(attachment);
  if (loss !== undefined) throw new CniError(ErrorCode.AddressConflict, loss);
  comparePrevResult(request, held);
  compareGateways(request, held, inventory.snapshot.pools);
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

/**
 * Where result and pool both have a gateway it is the same. A result may lack the pool's (`cleangateway`), and may have one where the pool has none:
 * some main plugins become the gateway themselves.
 */
function compareGateways({ netConf }: AttachRequest, held: readonly Allocation[], pools: Snapshot["pools"]): void {
  for (const { address, gateway } of netConf.prevResult?.ips ?? []) {
    const pool = held.find(({ ip }) => equalIp(ip, address.ip))?.pool;
    const wanted = pool === undefined ? undefined : pools.get(pool)?.spec.gateway;
    if (gateway === undefined || wanted === undefined || equalIp(gateway, wanted)) continue;
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `"prevResult" has gateway ${formatIp(gateway)} for ${formatIp(address.ip)}, pool "${pool}" has ${formatIp(wanted)}; a new pod gets the pool's`,
    );
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
