/**
 * Settings below /proc/sys/net that netlink tells, too: a message costs a tenth of opening a file, and of links there is one already.
 * Effects: those of the conversation.
 */
import type { Family } from "../../../net/ip.ts";
import type { SysctlKey } from "../../../plan/state.ts";
import type { Conversation } from "../conversation.ts";
import type { LinkMessage } from "../link/message.ts";
import { readLinkSetting } from "../link/setting.ts";
import { NETCONFA_IFINDEX_ALL, NETCONFA_IFINDEX_DEFAULT } from "./constants.ts";
import { type Netconf, netconfOf } from "./netconf.ts";
import { findNetconf } from "./requests.ts";

/** Where a setting stands among a link's own, and what it is called in messages about `all` and `default`. */
interface NetlinkSetting {
  readonly family: Family;
  /** IPV4_DEVCONF_* - 1 (linux/ip.h), DEVCONF_* (linux/ipv6.h). */
  readonly position: number;
  readonly field?: "forwarding" | "rpFilter";
}

const NETLINK_SETTINGS: ReadonlyMap<string, NetlinkSetting> = new Map<string, NetlinkSetting>([
  ["ipv4 forwarding", { family: 4, position: 0, field: "forwarding" }],
  ["ipv4 rp_filter", { family: 4, position: 7, field: "rpFilter" }],
  ["ipv6 forwarding", { family: 6, position: 0, field: "forwarding" }],
  ["ipv6 disable_ipv6", { family: 6, position: 26 }],
  ["ipv6 accept_dad", { family: 6, position: 27 }],
]);

const INDEXES: ReadonlyMap<string, number> = new Map([
  ["all", NETCONFA_IFINDEX_ALL],
  ["default", NETCONFA_IFINDEX_DEFAULT],
]);

/** The same value of the kernel has both names (net/ipv4/devinet.c). */
const IP_FORWARD = "ipv4/ip_forward";
const IP_FORWARD_OF_ALL = "ipv4/conf/all/forwarding";

/** What a key is about, when it is of a kind that netlink tells. */
function findSetting(key: SysctlKey): { readonly told: NetlinkSetting; readonly link: string } | undefined {
  const [family, conf, link, name, more] = (key === IP_FORWARD ? IP_FORWARD_OF_ALL : key).split("/");
  if (conf !== "conf" || link === undefined || more !== undefined) return undefined;
  const told = NETLINK_SETTINGS.get(`${family} ${name}`);
  return told && { told, link };
}

/**
 * Of `keys`, those that netlink answers, each as its file says it. What is missing is to be read from its file, whether it is there or not.
 * `linkOf` gives a link's message with IFLA_AF_SPEC.
 */
export function readSysctlsByNetlink(
  conversation: Conversation,
  keys: readonly SysctlKey[],
  linkOf: (name: string) => LinkMessage | undefined,
): Map<SysctlKey, string> {
  const netconfs = new Map<string, Netconf | undefined>();
  const ask = (family: Family, index: number): Netconf | undefined => {
    const about = `${family} ${index}`;
    if (netconfs.has(about)) return netconfs.get(about);
    const found = findNetconf(conversation, family, index);
    const netconf = found && netconfOf(found);
    netconfs.set(about, netconf);
    return netconf;
  };
  const answer = (key: SysctlKey): number | undefined => {
    const question = findSetting(key);
    if (question === undefined) return undefined;
    const { told, link } = question;
    const { family, position, field } = told;
    const index = INDEXES.get(link);
    if (index !== undefined) return field && ask(family, index)?.[field];
    const message = linkOf(link);
    return message && readLinkSetting(message, family, position);
  };
  const answers = keys.map((key) => [key, answer(key)] as const);
  return new Map(answers.flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as const])));
}
