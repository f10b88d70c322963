import { formatIp, type Ip } from "../../../net/ip.ts";
import { EAFNOSUPPORT, ENODEV, ENOENT } from "../../errno.ts";
import { attribute, encodeUint32, optional, present } from "../attribute.ts";
import { AF_UNSPEC, NLM_F_CREATE, NLM_F_REPLACE } from "../constants.ts";
import type { Conversation, Request } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import { decodeNeighbourMessage, encodeNeighbourMessage, type NeighbourMessage } from "../families.ts";
import { encodeFamily, encodeIp } from "../ip-bytes.ts";
import { NDA_DST, NDA_IFINDEX, NTF_PROXY, RTM_DELNEIGH, RTM_GETNEIGH, RTM_NEWNEIGH } from "./constants.ts";
import { encodeNeighbour, formatNeighbour, type Neighbour } from "./neighbour.ts";

/** Returns the neighbours of one link, or of all; none if the link is gone. */
export function listNeighbours(conversation: Conversation, linkIndex?: number): NeighbourMessage[] {
  const operation = linkIndex === undefined ? "list neighbours" : `list neighbours on link ${linkIndex}`;
  const attributes = present([optional(NDA_IFINDEX, linkIndex, encodeUint32)]);
  const payload = encodeNeighbourMessage({ family: AF_UNSPEC, attributes });
  const answers = unlessRefused([ENODEV], () => conversation.dump({ operation, type: RTM_GETNEIGH, payload })) ?? [];
  const messages = answers.map(decodeNeighbourMessage);
  return messages.filter(({ index }) => linkIndex === undefined || index === linkIndex);
}

/** Returns the entry of that address on the link; undefined without the entry, the link, or IPv6 in the kernel. */
export function findNeighbour(conversation: Conversation, linkIndex: number, ip: Ip): NeighbourMessage | undefined {
  const operation = `get neighbour ${formatIp(ip)} on link ${linkIndex}`;
  const attributes = [attribute(NDA_DST, encodeIp(ip))];
  const payload = encodeNeighbourMessage({ family: encodeFamily(ip.family), index: linkIndex, attributes });
  const answers = unlessRefused([ENOENT, ENODEV, EAFNOSUPPORT], () =>
    conversation.request({ operation, type: RTM_GETNEIGH, payload }),
  );
  return answers?.map(decodeNeighbourMessage)[0];
}

/**
 * Returns the request to create or replace the entry: the kernel makes one for each address to which a packet is sent,
 * even if no machine answers.
 */
export function newNeighbour(neighbour: Neighbour): Request {
  const operation = () => `add neighbour ${formatNeighbour(neighbour)}`;
  return { operation, type: RTM_NEWNEIGH, flags: NLM_F_CREATE | NLM_F_REPLACE, payload: encodeNeighbour(neighbour) };
}

/** Throws NetlinkError; see {@link newNeighbour}. */
export function putNeighbour(conversation: Conversation, neighbour: Neighbour): void {
  conversation.request(newNeighbour(neighbour));
}

/** Returns whether the entry existed. Its MAC and state are not compared. */
export function deleteNeighbour(conversation: Conversation, { ip, link, state, flags }: Neighbour): boolean {
  const neighbour = { ip, link, state, flags: flags & NTF_PROXY };
  const operation = `delete neighbour ${formatNeighbour(neighbour)}`;
  const payload = encodeNeighbour(neighbour);
  const refusals = [ENOENT, ENODEV];
  return unlessRefused(refusals, () => conversation.request({ operation, type: RTM_DELNEIGH, payload })) !== undefined;
}
