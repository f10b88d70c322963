/** Whatever bytes come instead of what the kernel told: they are read, or refused with NetlinkError. */
import { expect, it } from "vitest";
import { addressOf } from "../../../host/kernel/netlink/address/address.ts";
import { decodeAddress } from "../../../host/kernel/netlink/address/message.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { linkOf } from "../../../host/kernel/netlink/link/link.ts";
import { decodeLink } from "../../../host/kernel/netlink/link/message.ts";
import type { Message } from "../../../host/kernel/netlink/message.ts";
import { decodeNeighbourMessage } from "../../../host/kernel/netlink/neighbour/message.ts";
import { neighbourOf } from "../../../host/kernel/netlink/neighbour/neighbour.ts";
import { decodeNetconf } from "../../../host/kernel/netlink/netconf/message.ts";
import { netconfOf } from "../../../host/kernel/netlink/netconf/netconf.ts";
import {
  NFT_MSG_NEWCHAIN,
  NFT_MSG_NEWRULE,
  NFT_MSG_NEWSETELEM,
} from "../../../host/kernel/netlink/nftables/constants.ts";
import { decodeNft } from "../../../host/kernel/netlink/nftables/message.ts";
import * as nft from "../../../host/kernel/netlink/nftables/table.ts";
import { decodeRouteMessage } from "../../../host/kernel/netlink/route/message.ts";
import { routeOf } from "../../../host/kernel/netlink/route/route.ts";
import { decodeRuleMessage } from "../../../host/kernel/netlink/rule/message.ts";
import { ruleOf } from "../../../host/kernel/netlink/rule/rule.ts";
import { type Family, messageOf, readRecorded } from "./recorded.ts";

/** By type of message; others have no decoder. */
const readers = new Map<number, (message: Message) => unknown>([
  [16, (message) => linkOf(decodeLink(message))],
  [20, (message) => addressOf(decodeAddress(message))],
  [24, (message) => routeOf(decodeRouteMessage(message))],
  [28, (message) => neighbourOf(decodeNeighbourMessage(message))],
  [32, (message) => ruleOf(decodeRuleMessage(message))],
  [NFT_MSG_NEWCHAIN, (message) => nft.chainOf(decodeNft(message, NFT_MSG_NEWCHAIN))],
  [80, (message) => netconfOf(decodeNetconf(message))],
  [NFT_MSG_NEWRULE, (message) => nft.ruleOf(decodeNft(message, NFT_MSG_NEWRULE))],
  [NFT_MSG_NEWSETELEM, (message) => nft.elementsOf(decodeNft(message, NFT_MSG_NEWSETELEM))],
]);

const families: Family[] = ["link", "kinds", "address", "route", "rule", "neighbour", "netconf", "nftables"];

/** Every cut, and every byte changed to what lengths and types lie with. */
function* changed(payload: Uint8Array): Generator<Uint8Array> {
  for (let length = 0; length < payload.length; length++) yield payload.slice(0, length);
  for (let at = 0; at < payload.length; at++) {
    for (const value of [0, 1, 3, 8, 0x7f, 0xff]) yield payload.with(at, value);
  }
}

it.each(families)("%s messages", (family) => {
  const messages = readRecorded(family)
    .flatMap(({ received }) => received)
    .map(messageOf)
    .filter(({ type }) => readers.has(type));
  // one of each length: the recorded ones are much alike
  const different = [...new Map(messages.map((one) => [`${one.type} ${one.payload.length}`, one])).values()];
  expect(different.length).toBeGreaterThan(0);
  let refused = 0;
  for (const message of different) {
    const read = readers.get(message.type) ?? expect.unreachable();
    read(message);
    for (const payload of changed(message.payload)) {
      try {
        read({ ...message, payload });
      } catch (error) {
        if (!(error instanceof NetlinkError)) throw error;
        refused++;
      }
    }
  }
  expect(refused).toBeGreaterThan(20);
});
