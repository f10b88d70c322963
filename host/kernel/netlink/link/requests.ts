/**
 * Questions about links.
 * Effects: those of the conversation.
 */
import { ENODEV } from "../../errno.ts";
import { attribute, decodeString, encodeString, encodeUint32, findValue } from "../attribute.ts";
import type { Conversation } from "../conversation.ts";
import { NetlinkError } from "../error.ts";
import { IFLA_EXT_MASK, IFLA_IFNAME, RTEXT_FILTER_SKIP_STATS, RTM_GETLINK } from "./constants.ts";
import { decodeLink, encodeLink, type LinkMessage } from "./message.ts";

export function encodeLinkByName(name: string): Uint8Array {
  const attributes = [
    attribute(IFLA_IFNAME, encodeString(name)),
    attribute(IFLA_EXT_MASK, encodeUint32(RTEXT_FILTER_SKIP_STATS)),
  ];
  return encodeLink({ deviceType: 0, index: 0, flags: 0, change: 0, attributes });
}

/** The link of that name, undefined when there is none. The kernel finds alternative names too; those do not count. */
export function findLink(conversation: Conversation, name: string): LinkMessage | undefined {
  const operation = `get link "${name}"`;
  try {
    const answers = conversation.request({ operation, type: RTM_GETLINK, payload: encodeLinkByName(name) });
    return answers.map(decodeLink).find((link) => {
      const found = findValue(link.attributes, IFLA_IFNAME);
      return found !== undefined && decodeString(found) === name;
    });
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === ENODEV) return undefined;
    throw error;
  }
}
