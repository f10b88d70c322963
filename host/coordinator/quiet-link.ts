/**
 * Brings up a pod's link that has no addresses yet, so that detection can probe on it, without the kernel sending frames of its
 * own. The early stage of detection uses it: main plugins (macvlan, ipvlan, vlan, bridge) create the link, down, before they call
 * the IPAM plugin.
 *
 *     as found                        while `work` runs               afterwards
 *     down                            up, with carrier                down, so that the kernel announces when the main plugin brings
 *                                                                     it up; or up, if a coordinator announces
 *     disable_ipv6 = x                disable_ipv6 = 1                disable_ipv6 = x
 *     accept_dad = 1                  accept_dad = 1                  accept_dad = 0 if work has succeeded
 *
 * With IPv6 enabled, a link that comes up joins groups, assigns itself a link-local address, probes for it and solicits routers.
 * With IPv6 disabled and no address it is silent. Packet sockets are not affected and probe for both families. With `accept_dad`
 * = 0 the kernel relies on the result of `work` instead of probing for a second while the pod waits; this has no effect if
 * `conf/all/accept_dad` is set.
 *
 * Setting a macvlan down blocks its caller for 8 to 16 ms: the kernel waits until no CPU uses the link any more, holding the lock
 * on all links. Pods that start at the same time would wait for each other, whatever the thread. So the link stays up if a
 * coordinator follows, which announces the address itself.
 *
 * A link that is already up has sent its frames. It stays up, and its IPv6 stays enabled: disabling it would remove the addresses
 * on it. Only `accept_dad` is set, for addresses added later.
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

/** Returns the result of `work`; undefined if the kernel has no IPv6 and so no such setting. */
function unlessAbsent<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SysctlError && error.errno === ENOENT) return undefined;
    throw error;
  }
}

/** Calls `work`; its errors become DetectionError. */
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

/** Undoes the two changes of {@link raise}. */
interface Raised {
  lower(): void;
  restoreIpv6(): void;
}

/** Sets the link up without letting the kernel send. */
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
    throw new DetectionError("link", name, "it is not an Ethernet link");
  return { netnsPath, index, name, mac, kind: kind && kindName(kind) };
}

export interface QuietLinkOptions {
  readonly netnsPath: string;
  readonly ifName: string;
  /** A coordinator announces the addresses, so a link that was down may stay up. */
  readonly staysUp: boolean;
}

/**
 * Calls `work` with the link `ifName`, up and with a carrier, and returns its result. Throws what it throws; DetectionError if
 * there is no such link, it gets no carrier within CARRIER_WAIT_MS, the kernel refuses, or the signal aborts before `work`.
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
    restore(raised);
    throw error;
  }
  attempt(ifName, () => {
    if (!staysUp) raised?.lower();
    unlessAbsent(() => writeSysctl(netnsPath, `ipv6/conf/${ifName}/accept_dad`, "0"));
    raised?.restoreIpv6();
  });
  return result;
}

/**
 * Restores the link after a failure, whose error the caller must see; further errors are ignored, since the link may be deleted
 * by now.
 */
function restore(raised: Raised | undefined): void {
  try {
    raised?.lower();
    raised?.restoreIpv6();
  } catch {
    // the link belongs to a pod that will not start
  }
}
