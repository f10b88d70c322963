import type { Family } from "../../../net/ip.ts";
import { ENODEV, EOPNOTSUPP } from "../../errno.ts";
import { attribute, encodeUint32 } from "../attribute.ts";
import type { Conversation } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import { encodeFamily } from "../ip-bytes.ts";
import { NETCONFA_IFINDEX, RTM_GETNETCONF } from "./constants.ts";
import { decodeNetconf, encodeNetconf, type NetconfMessage } from "./message.ts";

/**
 * Returns the settings of a link, or of NETCONFA_IFINDEX_*. Undefined if there is no such link, or the kernel lacks the protocol.
 */
export function findNetconf(conversation: Conversation, family: Family, index: number): NetconfMessage | undefined {
  const attributes = [attribute(NETCONFA_IFINDEX, encodeUint32(index))];
  const payload = encodeNetconf({ family: encodeFamily(family), attributes });
  const operation = `get the settings of IPv${family} for index ${index}`;
  const ask = () => conversation.request({ operation, type: RTM_GETNETCONF, payload });
  return unlessRefused([ENODEV, EOPNOTSUPP], ask)?.map(decodeNetconf)[0];
}
