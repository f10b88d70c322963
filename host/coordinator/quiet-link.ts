/**
 * A pod's link before anything is on it, made able to ask without a frame of the kernel's own: the early stage of detection.
 * Called by the IPAM plugin: main plugins (macvlan, ipvlan, vlan, bridge) make the link, down, before they ask for addresses.
 *
 *     as found                        while `work` runs               afterwards
 *     down                            up, with carrier                down, so that the main plugin's "up" makes the kernel announce;
 *                                                                     or up, when somebody else announces
 *     disable_ipv6 = x                disable_ipv6 = 1                disable_ipv6 = x
 *     accept_dad = 1                  accept_dad = 1                  accept_dad = 0 when work has succeeded
 *
 * With IPv6 on, a link that comes up joins groups, makes itself a link-local address, probes for it and looks for routers. With IPv6 off
 * and no address it says nothing. Packet sockets do not care: they ask for both families. `accept_dad` = 0 makes the kernel believe what
 * `work` found out, instead of probing for a second while the pod waits; the kernel heeds it unless `conf/all/accept_dad` is set.
 *
 * Switching off a macvlan holds its caller for 8 to 16 ms: the kernel waits until no processor looks at it any more, with its lock on all
 * links in hand. Pods that come at the same time would wait for each other, whichever thread asks. So it stays up where a coordinator
 * follows, which announces the address by itself.
 *
 * A link that is up already has said what it says. It stays up, and its IPv6 is left alone: taking it off would take the addresses that
 * are on it. Only `accept_dad` is set, for the addresses to come.
 * Effects: flags and sysctls of the link; sockets; those of `work`.
 */
import { ENOENT } from "../kernel/errno.ts";
import { type Conversation, createConversation } from "../kernel/netlink/conversation.ts";
import { kindName } from "../kernel/netlink/link/kind.ts";
import { type Link, linkOf } from "../kernel/netlink/link/link.ts";
import { findLink, setLink } from "../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../kernel/netlink/socket.ts";
import { readSysctl, SysctlError, writeSysctl } from "../kernel/sysctl.ts";
import { messageOf } from "../lib/describe.ts";
import { DetectionError } from "./detection-error.ts";
import type { ProbeLink } from "./probe.ts";
import { waitForCarrier } from "./probe-session.ts";

/** What `work` returns, or undefined where the kernel has no IPv6 and so no such setting. */
function unlessAbsent<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SysctlError && error.errno === ENOENT) return undefined;
    throw error;
  }
}

/** Failures of this file as the one error of detection. */
function attempt<T>(ifName: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new DetectionError("kernel", ifName, messageOf(error), error);
  }
}

function requireLink(conversation: Conversation, ifName: string): Link {
  const found = attempt(ifName, () => findLink(conversation, ifName));
  if (found === undefined) throw new DetectionError("link", ifName, "there is no such link");
  return linkOf(found);
}

/** What {@link raise} did: each of the two can be put back. */
interface Raised {
  lower(): void;
  restoreIpv6(): void;
}

/** Raises the link in silence. */
function raise(conversation: Conversation, { netnsPath, index, name }: ProbeLink): Raised {
  const key = `ipv6/conf/${name}/disable_ipv6`;
  const before = unlessAbsent(() => readSysctl(netnsPath, key));
  const setIpv6 = (value: string): void => {
    if (before !== undefined && before !== "1") writeSysctl(netnsPath, key, value);
  };
  setIpv6("1");
  const restoreIpv6 = (): void => setIpv6(before ?? "");
  try {
    setLink(conversation, index, { up: true });
  } catch (error) {
    restoreIpv6();
    throw error;
  }
  return { lower: () => setLink(conversation, index, { up: false }), restoreIpv6 };
}

/** linux/if_arp.h */
const ARPHRD_ETHER = 1;

function requireProbeLink(netnsPath: string, { index, name, mac, deviceType, kind }: Link): ProbeLink {
  if (mac === undefined || deviceType !== ARPHRD_ETHER)
    throw new DetectionError("link", name, "it is no Ethernet link");
  return { netnsPath, index, name, mac, kind: kind && kindName(kind) };
}

export interface QuietLinkOptions {
  readonly netnsPath: string;
  readonly ifName: string;
  /** Somebody announces the addresses: a link that was down may stay up. */
  readonly staysUp: boolean;
}

/**
 * Calls `work` with the link `ifName`, up and with a carrier, and returns what it returned. Throws what it threw; DetectionError when
 * there is no such link, when it has no carrier within CARRIER_WAIT_MS, when the kernel refuses, and when aborted before `work`.
 */
export async function withQuietLink<T>(
  { netnsPath, ifName, staysUp }: QuietLinkOptions,
  work: (link: ProbeLink) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  using socket = attempt(ifName, () => openRouteSocket(netnsPath));
  const conversation = createConversation(socket);
  const link = requireLink(conversation, ifName);
  const probeLink = requireProbeLink(netnsPath, link);
  const raised = link.up ? undefined : attempt(ifName, () => raise(conversation, probeLink));
  let result: T;
  try {
    await waitForCarrier(probeLink, signal);
    result = await work(probeLink);
  } catch (error) {
    putBack(raised);
    throw error;
  }
  attempt(ifName, () => {
    if (!staysUp) raised?.lower();
    unlessAbsent(() => writeSysctl(netnsPath, `ipv6/conf/${ifName}/accept_dad`, "0"));
    raised?.restoreIpv6();
  });
  return result;
}

/** After a failure, which is what the caller must hear of: the link may be gone by now. */
function putBack(raised: Raised | undefined): void {
  try {
    raised?.lower();
    raised?.restoreIpv6();
  } catch {
    // what cannot be put back is on a link of a pod that will not come to be
  }
}
