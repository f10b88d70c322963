/**
 * The late stage of detection, on a NIC that already has its addresses, and the detection of its gateways
 * (docs/detection.md).
 * Effects: frames on the NIC; on a conflict the address is removed from the NIC and quarantined.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { detectConflict } from "../../coordinator/detect-conflict.ts";
import { detectGateways, type GatewayTarget } from "../../coordinator/detect-gateway.ts";
import { type Conflict, conflictTiming, type ProbeLink, requireShortDetection } from "../../coordinator/probe.ts";
import { addressConflicts } from "../../ipam/conflict.ts";
import { type Address, addressesIn } from "../../kernel/netlink/address/address.ts";
import { IFA_F_DADFAILED } from "../../kernel/netlink/address/constants.ts";
import { deleteAddress, findAddresses } from "../../kernel/netlink/address/requests.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { listLinks, readLink } from "../../kernel/netlink/link/requests.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Attachment, Registry } from "../../registry/registry.ts";
import type { AnsweredAttachments } from "../detection/answered-attachments.ts";
import { findAskingLink, findParentName } from "../detection/links.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";
import { addressesOf } from "./observe.ts";

export interface LateDetectionDeps {
  readonly registry: Pick<Registry, "findAttachment" | "undo">;
  readonly prober: Pick<QuarantineProber, "conflict">;
  /**
   * Berth's last answers for the NIC, addresses that the early stage has probed, and those that two pods share while
   * a machine migrates.
   */
  readonly answered: Pick<AnsweredAttachments, "has" | "isShared" | "takeAnswer" | "macOf">;
}

interface LateDetectionInput {
  readonly conf: CoordinatorConf;
  readonly prevResult: CniResult;
  readonly pod: OpenNamespace;
  readonly signal: AbortSignal;
}

function findProbeLink(pod: OpenNamespace, ifName: string): ProbeLink | undefined {
  const link = readLink(pod.route, ifName);
  if (link?.mac === undefined) return undefined;
  const { index, name, mac, kind } = link;
  return { netnsPath: pod.entrance, index, name, mac, kind: kind && kindName(kind) };
}

/**
 * Returns the MAC addresses of all links in the pod. By default Linux answers ARP for every address of a namespace on
 * each of its links (`arp_ignore` 0, networking/ip-sysctl.rst), so another NIC of the pod on the same segment answers
 * too.
 */
function macsInPod(pod: OpenNamespace): ReadonlySet<Mac> {
  const macs = listLinks(pod.route).map((message) => linkOf(message)?.mac);
  return new Set(macs.filter((mac) => mac !== undefined));
}

/** Returns those of `ips` that are on the link. */
function addressesOnNic(pod: OpenNamespace, link: ProbeLink, ips: readonly Ip[]): Address[] {
  const all = addressesIn(findAddresses(pod.route, link.index));
  return all.filter(({ prefix }) => ips.some((ip) => equalIp(ip, prefix.ip)));
}

/**
 * Returns an address for which the kernel's own duplicate address detection has failed (RFC 4862 §5.4.5): the other
 * owner may be silent by now. The kernel does not report its MAC.
 */
function findDadFailure(pod: OpenNamespace, link: ProbeLink, ips: readonly Ip[]): Conflict | undefined {
  const failed = addressesOnNic(pod, link, ips).find(({ flags }) => (flags & IFA_F_DADFAILED) !== 0);
  return failed && { ip: failed.prefix.ip, mac: undefined };
}

function targetsOf({ ips }: CniResult, addresses: readonly Ip[]): GatewayTarget[] {
  return ips.flatMap(({ address, gateway }) =>
    gateway !== undefined && addresses.some((ip) => equalIp(ip, address.ip)) ? [{ gateway, own: address.ip }] : [],
  );
}

function unreachableGateways(
  unreachable: readonly Ip[],
  ifName: string,
  { retry, timeoutMs }: CoordinatorConf["detectOptions"],
): CniError {
  const many = unreachable.length > 1;
  return new CniError(
    ErrorCode.GatewayUnreachable,
    `Gateway${many ? "s" : ""} ${unreachable.map(formatIp).join(", ")} of interface "${ifName}" did not answer ` +
      `${retry} request${retry > 1 ? "s" : ""} within ${timeoutMs} ms each; check that the segment (VLAN, switch port) is the right one, ` +
      "or set detectGateway to false",
  );
}

/**
 * Quarantines the address if Berth allocated it, and returns the error 104 that names the address, the MAC and the
 * pool. Rejects if the registry fails.
 */
async function addressConflict(
  { registry, prober }: LateDetectionDeps,
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
      `Address ${formatIp(ip)} is already in use by ${mac ?? "another machine"} on the segment of interface "${ifName}"; ` +
        "Berth did not allocate it, so the IPAM plugin that did may allocate it again",
    );
  }
  const action = await prober.conflict({ allocation, mac, parent: findParentName(link.netnsPath, ifName) });
  // As after the early stage: an address that cools belongs to its owner, so the next attempt would get the same one
  // again.
  if (action === "proxyArp") await registry.undo([allocation]);
  return addressConflicts({ ip, pool: allocation.pool, mac, ifName, source: undefined, action });
}

/** Throws CniError 104 for an address that another machine has, 105 for a gateway that does not answer. */
export async function detectOnNic(
  deps: LateDetectionDeps,
  request: AttachRequest,
  { conf, prevResult, pod, signal }: LateDetectionInput,
): Promise<void> {
  const { ifName } = request;
  const addresses = addressesOf(prevResult, ifName).filter((ip) => !deps.answered.isShared(request, ip));
  const link = findProbeLink(pod, ifName);
  if (link === undefined || addresses.length === 0) return;
  const unverified = conf.detectIPConflict ? addresses.filter((ip) => !deps.answered.has(request, ip)) : [];
  const { retry, intervalMs, timeoutMs } = conf.detectOptions;
  const timing = conflictTiming(conf.detectOptions);
  if (unverified.length > 0) requireShortDetection(timing);
  if (conf.detectGateway) requireShortDetection({ retry, intervalMs, timeoutMs });
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const probeLink = unverified.length === 0 ? link : findAskingLink(link);
  const findKnown = () => (conf.detectIPConflict ? findDadFailure(pod, link, addresses) : undefined);
  const known = findKnown();
  const conflict: Promise<Conflict | undefined> = known
    ? Promise.resolve(known)
    : detectConflict({
        link: probeLink,
        addresses: unverified,
        ownMacs: unverified.length === 0 ? undefined : macsInPod(pod),
        ...timing,
        random: Math.random,
        signal: either,
      });
  const probeGateways = (): Promise<readonly Ip[]> =>
    detectGateways({
      link,
      targets: conf.detectGateway ? targetsOf(prevResult, addresses) : [],
      retry,
      intervalMs,
      timeoutMs,
      ...(unverified.length === 0 ? {} : { pendingConflict: conflict }),
      signal: either,
    });
  // Answers to 0.0.0.0 do not reach an ipvlan, so its gateways are asked from its address, and only once that is
  // known to be free.
  const gateways = probeLink === link ? probeGateways() : conflict.then((found) => (found ? [] : probeGateways()));
  gateways.catch(() => {}); // awaited below unless there is a conflict
  try {
    const found = (await conflict) ?? findKnown();
    if (found !== undefined) {
      // At once: it would pollute neighbour tables until the DEL.
      for (const address of addressesOnNic(pod, link, [found.ip])) deleteAddress(pod.route, address);
      throw await addressConflict(deps, request, found, link);
    }
    const unreachable = await gateways;
    if (unreachable.length > 0) throw unreachableGateways(unreachable, ifName, conf.detectOptions);
  } finally {
    stop.abort();
  }
}
