/** Readers of the kernel's messages, from bytes to values. */
import { addressOf } from "../../../host/kernel/netlink/address/address.ts";
import {
  decodeAddress,
  decodeLink,
  decodeNeighbourMessage,
  decodeNetconf,
  decodeRouteMessage,
  decodeRuleMessage,
} from "../../../host/kernel/netlink/families.ts";
import { linkOf } from "../../../host/kernel/netlink/link/link.ts";
import type { Message } from "../../../host/kernel/netlink/message.ts";
import { neighbourOf } from "../../../host/kernel/netlink/neighbour/neighbour.ts";
import { netconfOf } from "../../../host/kernel/netlink/netconf/netconf.ts";
import { NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE } from "../../../host/kernel/netlink/nftables/constants.ts";
import { decodeNft } from "../../../host/kernel/netlink/nftables/message.ts";
import * as nft from "../../../host/kernel/netlink/nftables/table.ts";
import { routeOf } from "../../../host/kernel/netlink/route/route.ts";
import { ruleOf } from "../../../host/kernel/netlink/rule/rule.ts";

/** By type of message; others have no decoder. */
export const readers = new Map<number, (message: Message) => unknown>([
  [16, (message) => linkOf(decodeLink(message))],
  [20, (message) => addressOf(decodeAddress(message))],
  [24, (message) => routeOf(decodeRouteMessage(message))],
  [28, (message) => neighbourOf(decodeNeighbourMessage(message))],
  [32, (message) => ruleOf(decodeRuleMessage(message))],
  [NFT_MSG_NEWCHAIN, (message) => nft.chainOf(decodeNft(message, NFT_MSG_NEWCHAIN))],
  [80, (message) => netconfOf(decodeNetconf(message))],
  [NFT_MSG_NEWRULE, (message) => nft.ruleOf(decodeNft(message, NFT_MSG_NEWRULE))],
]);
