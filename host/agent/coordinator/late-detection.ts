/**
 * The late stage of detection, on a NIC that has its addresses already, and the gateways' (docs/detection.md).
 * Effects: frames on the NIC; on a conflict the address leaves the NIC and is quarantined.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { type ConflictQuestion, detectConflict } from "../../coordinator/detect-conflict.ts";
import { detectGateways, type GatewayAnswers, type GatewayTarget } from "../../coordinator/detect-gateway.ts";
import { type Conflict, conflictTiming, type ProbeLink, requireShort } from "../../coordinator/probe.ts";
import { type Address, addressOf } from "../../kernel/netlink/address/address.ts";
import { IFA_F_DADFAILED } from "../../kernel/netlink/address/constants.ts";
import { deleteAddress, findAddresses } from "../../kernel/netlink/address/requests.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { findLink, listLinks } from "../../kernel/netlink/link/requests.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { findAskingLink } from "../detection/node-link.ts";
import { addressesOf } from "./gather.ts";

export interface LateTools {
  readonly conf: CoordinatorConf;
  readonly log: Log;
  /** Addresses of this attachment that were found to be free before they were on the NIC. */
  readonly isVerified: (ip: Ip) => boolean;
  /** Another pod has the address, too, as a machine migrates: nothing is asked from or about it. Absent: none ever has. */
  readonly isShared?: ((ip: Ip) => boolean) | undefined;
  /** Quarantines the address if it is Berth's; the refusal that says so. */
  readonly refuseConflict: (conflict: Conflict, link: ProbeLink) => Promise<CniError>;
}

export interface OnNic {
  readonly prevResult: CniResult;
  readonly pod: OpenNamespace;
  readonly signal: AbortSignal;
}

export function findProbeLink(pod: OpenNamespace, ifName: string): ProbeLink | undefined {
  const message = findLink(pod.route, ifName);
  const link = message && linkOf(message);
  if (link?.mac === undefined) return undefined;
  const { index, name, mac, kind } = link;
  return { netnsPath: pod.entrance, index, name, mac, kind: kind && kindName(kind) };
}

/**
 * MAC addresses of all links in the pod. Linux answers ARP for any address of a namespace on each of its links (`arp_ignore` 0,
 * networking/ip-sysctl.rst), so another NIC of the pod on the same segment answers, too.
 */
function macsInPod(pod: OpenNamespace): ReadonlySet<Mac> {
  const macs = listLinks(pod.route).map((message) => linkOf(message)?.mac);
  return new Set(macs.filter((mac) => mac !== undefined));
}

/** Of the link, those among `ips`. */
function addressesOnNic(pod: OpenNamespace, link: ProbeLink, ips: readonly Ip[]): Address[] {
  const all = findAddresses(pod.route, link.index)?.map(addressOf) ?? [];
  return all.filter((each) => each !== undefined).filter(({ prefix }) => ips.some((ip) => equalIp(ip, prefix.ip)));
}

/** It would go on poisoning the neighbours' tables until DEL. */
function removeAddress(pod: OpenNamespace, link: ProbeLink, ip: Ip): void {
  for (const address of addressesOnNic(pod, link, [ip])) deleteAddress(pod.route, address);
}

/** The kernel may have asked by itself, and heard somebody who is silent now (RFC 4862 §5.4.5). It does not tell whom. */
function findDadFailure(pod: OpenNamespace, link: ProbeLink, ips: readonly Ip[]): Conflict | undefined {
  const failed = addressesOnNic(pod, link, ips).find(({ flags }) => (flags & IFA_F_DADFAILED) !== 0);
  return failed && { ip: failed.prefix.ip, mac: undefined };
}

function targetsOf({ ips }: CniResult, addresses: readonly Ip[]): GatewayTarget[] {
  return ips.flatMap(({ address, gateway }) =>
    gateway !== undefined && addresses.some((ip) => equalIp(ip, address.ip)) ? [{ gateway, own: address.ip }] : [],
  );
}

function refuseGateways(
  unreachable: readonly Ip[],
  ifName: string,
  { retry, timeoutMs }: CoordinatorConf["detectOptions"],
): CniError {
  const many = unreachable.length > 1;
  return new CniError(
    ErrorCode.GatewayUnreachable,
    `Gateway${many ? "s" : ""} ${unreachable.map(formatIp).join(", ")} of interface "${ifName}" did not answer ` +
      `${retry} request${retry > 1 ? "s" : ""} within ${timeoutMs} ms each; see that the segment (VLAN, switch port) is the right one, ` +
      "or set detectGateway to false",
  );
}

const NOT_ASKED: GatewayAnswers = { unreachable: [], macs: new Map() };

/** What is known already, or what the segment says. */
async function askForConflict(known: Conflict | undefined, question: ConflictQuestion): Promise<Conflict | undefined> {
  return known ?? (await detectConflict(question));
}

/** Throws CniError 104 for an address that somebody else has, 105 for a gateway that does not answer. */
export async function detectOnNic(
  tools: LateTools,
  request: AttachRequest,
  { prevResult, pod, signal }: OnNic,
): Promise<void> {
  const { conf } = tools;
  const { ifName } = request;
  const addresses = addressesOf(prevResult, ifName).filter((ip) => tools.isShared?.(ip) !== true);
  const link = findProbeLink(pod, ifName);
  if (link === undefined || addresses.length === 0) return;
  const doubtful = conf.detectIPConflict ? addresses.filter((ip) => !tools.isVerified(ip)) : [];
  const { retry, intervalMs, timeoutMs } = conf.detectOptions;
  const timing = conflictTiming(conf.detectOptions);
  if (doubtful.length > 0) requireShort(timing);
  if (conf.detectGateway) requireShort({ retry, intervalMs, timeoutMs });
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const asking = doubtful.length === 0 ? link : findAskingLink(link);
  const kernelKnows = () => (conf.detectIPConflict ? findDadFailure(pod, link, addresses) : undefined);
  const ownMacs = doubtful.length === 0 ? undefined : macsInPod(pod);
  const question = {
    link: asking,
    addresses: doubtful,
    ownMacs,
    ...timing,
    random: Math.random,
    signal: both,
  };
  const conflict = askForConflict(kernelKnows(), question);
  const askGateways = (): Promise<GatewayAnswers> =>
    detectGateways({
      link,
      targets: conf.detectGateway ? targetsOf(prevResult, addresses) : [],
      retry,
      intervalMs,
      timeoutMs,
      ...(doubtful.length === 0 ? {} : { inDoubt: conflict }),
      signal: both,
    });
  // Where answers to 0.0.0.0 do not arrive, gateways are asked from the address, and so when it is out of doubt.
  const gateways = asking === link ? askGateways() : conflict.then((found) => (found ? NOT_ASKED : askGateways()));
  gateways.catch(() => {}); // it is awaited below, unless there is a conflict
  try {
    const found = (await conflict) ?? kernelKnows();
    if (found !== undefined) {
      removeAddress(pod, link, found.ip);
      throw await tools.refuseConflict(found, link);
    }
    const { unreachable } = await gateways;
    if (unreachable.length > 0) throw refuseGateways(unreachable, ifName, conf.detectOptions);
  } finally {
    stop.abort();
  }
}
