/**
 * Sysctls that the kernel also reports by netlink: a message costs a tenth of opening a file, and the messages about
 * links are read anyway.
 */
import type { Family } from "../../../net/ip.ts";
import type { SysctlKey } from "../../../plan/state.ts";
import { ENODEV, EOPNOTSUPP } from "../../errno.ts";
import { attribute, encodeUint32 } from "../attribute.ts";
import type { Conversation } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import type { LinkMessage } from "../families.ts";
import { decodeNetconf, encodeNetconf, type NetconfMessage } from "../families.ts";
import { encodeFamily } from "../ip-bytes.ts";
import { readLinkSetting } from "../link/setting.ts";
import { NETCONFA_IFINDEX, NETCONFA_IFINDEX_ALL, NETCONFA_IFINDEX_DEFAULT, RTM_GETNETCONF } from "./constants.ts";
import { type Netconf, netconfOf } from "./netconf.ts";

/** Position of a setting in the array of a link's settings, and its field in messages about `all` and `default`. */
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

/** Both names stand for the same value (net/ipv4/devinet.c). */
const IP_FORWARD = "ipv4/ip_forward";
const IP_FORWARD_OF_ALL = "ipv4/conf/all/forwarding";

/** Returns the key's setting and link; undefined if netlink does not report it. */
function findSetting(key: SysctlKey): { readonly setting: NetlinkSetting; readonly link: string } | undefined {
  const [family, conf, link, name, more] = (key === IP_FORWARD ? IP_FORWARD_OF_ALL : key).split("/");
  if (conf !== "conf" || link === undefined || more !== undefined) return undefined;
  const setting = NETLINK_SETTINGS.get(`${family} ${name}`);
  return setting && { setting, link };
}

/**
 * Returns the values of those keys that netlink reports, each in the form of its file. The others must be read from
 * their files, which may not exist. `linkOf` returns the message of a link with IFLA_AF_SPEC.
 */
export function readSysctlsByNetlink(
  conversation: Conversation,
  keys: readonly SysctlKey[],
  linkOf: (name: string) => LinkMessage | undefined,
): Map<SysctlKey, string> {
  const netconfs = new Map<string, Netconf | undefined>();
  const ask = (family: Family, index: number): Netconf | undefined => {
    const about = `${family} ${index}`;
    return netconfs.getOrInsertComputed(about, () => {
      const found = findNetconf(conversation, family, index);
      return found && netconfOf(found);
    });
  };
  const answer = (key: SysctlKey): number | undefined => {
    const found = findSetting(key);
    if (found === undefined) return undefined;
    const { setting, link } = found;
    const { family, position, field } = setting;
    const index = INDEXES.get(link);
    if (index !== undefined) return field && ask(family, index)?.[field];
    const message = linkOf(link);
    return message && readLinkSetting(message, family, position);
  };
  const answers = keys.map((key) => [key, answer(key)] as const);
  return new Map(answers.flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as const])));
}

/** Returns the settings of a link, or of NETCONFA_IFINDEX_*. Undefined without such a link, or without the protocol. */
function findNetconf(conversation: Conversation, family: Family, index: number): NetconfMessage | undefined {
  const attributes = [attribute(NETCONFA_IFINDEX, encodeUint32(index))];
  const payload = encodeNetconf({ family: encodeFamily(family), attributes });
  const operation = `get the settings of IPv${family} for index ${index}`;
  const ask = () => conversation.request({ operation, type: RTM_GETNETCONF, payload });
  return unlessRefused([ENODEV, EOPNOTSUPP], ask)?.map(decodeNetconf)[0];
}
