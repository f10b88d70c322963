/**
 * Questions about addresses.
 * Effects: those of the conversation.
 */
import { ENODEV } from "../../errno.ts";
import { AF_UNSPEC } from "../constants.ts";
import type { Conversation } from "../conversation.ts";
import { NetlinkError } from "../error.ts";
import { RTM_GETADDR } from "./constants.ts";
import { type AddressMessage, decodeAddress, encodeAddress } from "./message.ts";

export function encodeAddressesOf(linkIndex: number): Uint8Array {
  const index = linkIndex;
  return encodeAddress({ family: AF_UNSPEC, prefixLength: 0, flags: 0, scope: 0, index, attributes: [] });
}

/** The addresses of all families on the link, in the kernel's order; undefined when the link is gone. */
export function findAddresses(conversation: Conversation, linkIndex: number): AddressMessage[] | undefined {
  const operation = `list the addresses of link ${linkIndex}`;
  try {
    const answers = conversation.dump({ operation, type: RTM_GETADDR, payload: encodeAddressesOf(linkIndex) });
    return answers.map(decodeAddress).filter(({ index }) => index === linkIndex);
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === ENODEV) return undefined;
    throw error;
  }
}
