/**
 * Brings up a pod's link that has no addresses yet, so that detection can probe on it, without the kernel sending
 * frames of its own. The early stage of detection uses it: main plugins (macvlan, ipvlan, vlan, bridge) create the
 * link, down, before they call the IPAM plugin.
 *
 *     as found                        while `work` runs               afterwards
 *     down                            up, with carrier                down, so that the kernel announces when the main
 *                                                                     plugin brings it up; or up, if a coordinator
 *                                                                     announces
 *     disable_ipv6 = x                disable_ipv6 = 1                disable_ipv6 = x
 *     accept_dad = 1                  accept_dad = 1                  accept_dad = 0 if work has succeeded
 *
 * With IPv6 enabled, a link that comes up joins groups, assigns itself a link-local address, probes for it and solicits
 * routers. With IPv6 disabled and no address it is silent. Packet sockets are not affected and probe for both families.
 * With `accept_dad` = 0 the kernel relies on the result of `work` instead of probing for a second while the pod waits;
 * this has no effect if `conf/all/accept_dad` is set.
 *
 * Setting a macvlan down blocks its caller for 8 to 16 ms: the kernel waits until no CPU uses the link any more,
 * holding the lock on all links. Pods that start at the same time would wait for each other, whatever the thread. So
 * the link stays up if a coordinator follows, which announces the address itself.
 *
 * A link that is already up has sent its frames. It stays up, and its IPv6 stays enabled: disabling it would remove the
 * addresses on it. Only `accept_dad` is set, for addresses added later.
 * Effects: flags and sysctls of the link; sockets; those of `work`.
 */
import { type Conversation, createConversation } from "../kernel/netlink/conversation.ts";
import type { LinkMessage } from "../kernel/netlink/families.ts";
import { kindName } from "../kernel/netlink/link/kind.ts";
import { type Link, linkOf } from "../kernel/netlink/link/link.ts";
import { findLink, readLink, setLink } from "../kernel/netlink/link/requests.ts";
import { readSysctlsByNetlink } from "../kernel/netlink/netconf/read-sysctls.ts";
import { openRouteSocket } from "../kernel/netlink/socket.ts";
import { writeSysctls } from "../kernel/sysctl.ts";
import { messageOf } from "../lib/describe.ts";
import { DetectionError } from "./detection-error.ts";
import type { ProbeLink } from "./probe.ts";
import { waitForCarrier } from "./probe-session.ts";

/** Calls `work`; its errors become DetectionError. */
function attempt<T>(ifName: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new DetectionError("kernel", ifName, messageOf(error), error);
  }
}

function requireLink(conversation: Conversation, ifName: string): LinkMessage {
  const found = attempt(ifName, () => findLink(conversation, ifName));
  if (found === undefined) throw new DetectionError("link", ifName, "there is no such link");
  return found;
}

/** Settings of the link and their values; none of IPv6 if the kernel does not have it. */
type Settings = ReadonlyMap<string, string>;

const settingKey = (ifName: string, setting: "disable_ipv6" | "accept_dad"): string => `ipv6/conf/${ifName}/${setting}`;

function readSettings(conversation: Conversation, link: LinkMessage, ifName: string): Settings {
  const keys = [settingKey(ifName, "disable_ipv6"), settingKey(ifName, "accept_dad")];
  return readSysctlsByNetlink(conversation, keys, () => link);
}

interface Raised {
  lower(): void;
  /** `disable_ipv6` as it was; empty if it was not changed. */
  readonly ipv6: Settings;
}

/** Sets the link up without letting the kernel send. */
function raise(conversation: Conversation, { netnsPath, index, name }: ProbeLink, before: Settings): Raised {
  const ipv6 = new Map([...before].filter(([key, value]) => key === settingKey(name, "disable_ipv6") && value !== "1"));
  writeSysctls(netnsPath, new Map([...ipv6.keys()].map((key) => [key, "1"])));
  try {
    setLink(conversation, index, { up: true });
  } catch (error) {
    writeSysctls(netnsPath, ipv6);
    throw error;
  }
  return { lower: () => setLink(conversation, index, { up: false }), ipv6 };
}

/** Returns whether frames can pass through a link that was set up just now: most have their carrier at once. */
function hasCarrier(conversation: Conversation, { name }: ProbeLink): boolean {
  return attempt(name, () => readLink(conversation, name))?.carrier === true;
}

/** linux/if_arp.h */
const ARPHRD_ETHER = 1;

function requireProbeLink(netnsPath: string, { index, name, mac, deviceType, kind }: Link): ProbeLink {
  if (mac === undefined || deviceType !== ARPHRD_ETHER)
    throw new DetectionError("kind", name, "it is not an Ethernet link");
  return { netnsPath, index, name, mac, kind: kind && kindName(kind) };
}

export interface QuietLinkOptions {
  readonly netnsPath: string;
  readonly ifName: string;
  /** A coordinator announces the addresses, so a link that was down may stay up. */
  readonly staysUp: boolean;
}

/**
 * Calls `work` with the link `ifName`, up and with a carrier, and returns its result. Throws its errors;
 * DetectionError if there is no such link, it gets no carrier within CARRIER_WAIT_MS, the kernel refuses, or the
 * signal aborts before `work`.
 */
export async function withQuietLink<T>(
  { netnsPath, ifName, staysUp }: QuietLinkOptions,
  work: (link: ProbeLink) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  using socket = attempt(ifName, () => openRouteSocket(netnsPath));
  const conversation = createConversation(socket);
  const message = requireLink(conversation, ifName);
  const link = linkOf(message);
  const probeLink = requireProbeLink(netnsPath, link);
  const before = attempt(ifName, () => readSettings(conversation, message, ifName));
  const raised = link.up ? undefined : attempt(ifName, () => raise(conversation, probeLink, before));
  let result: T;
  try {
    const isReady = raised === undefined ? link.carrier : hasCarrier(conversation, probeLink);
    if (signal.aborted || !isReady) await waitForCarrier(probeLink, signal);
    result = await work(probeLink);
  } catch (error) {
    restore(raised, netnsPath);
    throw error;
  }
  attempt(ifName, () => {
    if (!staysUp) raised?.lower();
    const key = settingKey(ifName, "accept_dad");
    writeSysctls(netnsPath, new Map([...(before.has(key) ? [[key, "0"] as const] : []), ...(raised?.ipv6 ?? [])]));
  });
  return result;
}

/** Restores the link after a failure, which the caller reports; ignores further errors, as the link may be deleted. */
function restore(raised: Raised | undefined, netnsPath: string): void {
  if (raised === undefined) return;
  try {
    raised.lower();
    writeSysctls(netnsPath, raised.ipv6);
  } catch {
    // the link belongs to a pod that will not start
  }
}
