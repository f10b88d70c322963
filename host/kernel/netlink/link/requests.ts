/** Requests about links. Deleting a veth blocks its caller in the kernel for 11 to 19 ms: a worker thread does it. */
import { ENODEV, ENOENT } from "../../errno.ts";
import { attribute, decodeString, decodeUint8, encodeString, encodeUint32, readValue } from "../attribute.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import { type Conversation, Refusal, type Request } from "../conversation.ts";
import { NetlinkError, unlessRefused } from "../error.ts";
import { decodeLink, encodeLink, type LinkMessage } from "../families.ts";
import type { Message } from "../message.ts";
import {
  IF_OPER_UP,
  IFF_LOWER_UP,
  IFLA_ALT_IFNAME,
  IFLA_EXT_MASK,
  IFLA_GROUP,
  IFLA_IFNAME,
  IFLA_OPERSTATE,
  RTEXT_FILTER_SKIP_STATS,
  RTM_DELLINK,
  RTM_DELLINKPROP,
  RTM_GETLINK,
  RTM_NEWLINK,
  RTM_NEWLINKPROP,
} from "./constants.ts";
import { kindName, type LinkKind } from "./kind.ts";
import {
  encodeAltName,
  encodeKindChange,
  encodeLinkChange,
  encodeLinkSpec,
  LINK_AND_SETTINGS,
  LINK_ATTRIBUTES,
  type Link,
  type LinkChange,
  type LinkSpec,
  linkOf,
} from "./link.ts";

/** Longest value of IFLA_IFNAME (linux/if.h): bytes, with the final NUL. */
const IFNAMSIZ = 16;

const withoutStats = attribute(IFLA_EXT_MASK, encodeUint32(RTEXT_FILTER_SKIP_STATS));

function encodeLinkRequest(index: number, attributes = [withoutStats]): Uint8Array {
  return encodeLink({ index, attributes });
}

function encodeLinkByName(name: string): Uint8Array {
  return encodeLinkRequest(0, [attribute(IFLA_IFNAME, encodeString(name)), withoutStats]);
}

/** Returns the request for the link of that name; {@link linkNamed} reads the answer. */
export function linkRequest(name: string): Request {
  return { operation: () => `get link "${name}"`, type: RTM_GETLINK, payload: encodeLinkByName(name) };
}

/** Returns the answer's link of that name, with its settings. Ignores links found by alternative name. */
export function linkNamed(name: string, answer: readonly Message[]): LinkMessage | undefined {
  return answer
    .map((message) => decodeLink(message, LINK_AND_SETTINGS))
    .find((link) => readValue(link.attributes, IFLA_IFNAME, decodeString) === name);
}

/** Returns the link of that name; undefined if there is none. */
export function findLink(conversation: Conversation, name: string): LinkMessage | undefined {
  const answer = unlessRefused([ENODEV], () => conversation.request(linkRequest(name)));
  return answer && linkNamed(name, answer);
}

/** As {@link findLink}, decoded. Throws as {@link linkOf}. */
export function readLink(conversation: Conversation, name: string): Link | undefined {
  const message = findLink(conversation, name);
  return message && linkOf(message);
}

/**
 * Returns whether the link has carrier and yet discards all packets: a thread of the kernel activates it after its peer
 * has come up (net/core/link_watch.c). Newer kernels do so in this request (net/core/rtnetlink.c, rtnl_getlink).
 */
export function isInactive(conversation: Conversation, name: string): boolean {
  const { flags = 0, attributes = [] } = findLink(conversation, name) ?? {};
  return (flags & IFF_LOWER_UP) !== 0 && readValue(attributes, IFLA_OPERSTATE, decodeUint8) !== IF_OPER_UP;
}

/** Returns the name of the link with that name or alternative name; undefined if there is none. */
export function findLinkName(conversation: Conversation, name: string): string | undefined {
  const value = encodeString(name);
  // The kernel looks for either name in either attribute, and IFLA_IFNAME has room for 15 bytes.
  const type = value.length > IFNAMSIZ ? IFLA_ALT_IFNAME : IFLA_IFNAME;
  const payload = encodeLinkRequest(0, [attribute(type, value), withoutStats]);
  const request = { operation: () => `get link "${name}"`, type: RTM_GETLINK, payload };
  const [answer] = unlessRefused([ENODEV], () => conversation.request(request)) ?? [];
  return answer && readValue(decodeLink(answer, LINK_ATTRIBUTES).attributes, IFLA_IFNAME, decodeString);
}

/** Returns the existing ones of the links, by name or index, each once, with their settings. */
export function findLinks(conversation: Conversation, links: readonly (string | number)[]): LinkMessage[] {
  const outcomes = conversation.pipeline(
    links.map((link) => (typeof link === "string" ? linkRequest(link) : linkIndexRequest(link))),
  );
  return outcomes.flatMap((outcome, at) => {
    const wanted = links[at];
    if (outcome instanceof Refusal) {
      if (outcome.errno === ENODEV) return [];
      throw outcome.toError();
    }
    const found = outcome.map((message) => decodeLink(message, LINK_AND_SETTINGS));
    if (typeof wanted !== "string") return found;
    return found.filter((link) => readValue(link.attributes, IFLA_IFNAME, decodeString) === wanted);
  });
}

function linkIndexRequest(index: number): Request {
  return { operation: `get link ${index}`, type: RTM_GETLINK, payload: encodeLinkRequest(index) };
}

/** Returns the link with that index; undefined if there is none. Throws as {@link linkOf}. */
export function readLinkByIndex(conversation: Conversation, index: number): Link | undefined {
  const answer = unlessRefused([ENODEV], () => conversation.request(linkIndexRequest(index)));
  return answer?.map((message) => linkOf(decodeLink(message, LINK_ATTRIBUTES)))[0];
}

/** Returns all links of the namespace, each with only the attributes `wanted`. */
export function listLinks(conversation: Conversation, wanted = LINK_ATTRIBUTES): LinkMessage[] {
  const messages = conversation.dump({ operation: "list links", type: RTM_GETLINK, payload: encodeLinkRequest(0) });
  return messages.map((message) => decodeLink(message, wanted));
}

/** Returns the request to create the link. The kernel refuses with EEXIST if there already is one of that name. */
export function newLink(demand: LinkSpec): Request {
  const operation = `create link "${demand.name}" of kind ${kindName(demand.kind)}`;
  return { operation, type: RTM_NEWLINK, flags: NLM_F_CREATE | NLM_F_EXCL, payload: encodeLinkSpec(demand) };
}

/** Throws NetlinkError; see {@link newLink}. */
export function createLink(conversation: Conversation, demand: LinkSpec): void {
  conversation.request(newLink(demand));
}

/** Formats the change in the words of `ip link set`: `up mtu 1400`. */
function formatChange(change: LinkChange): string {
  const { name, mac, mtu, up, master, alias, group, netnsFd, rpFilter, addressGeneration } = change;
  const words = [
    up !== undefined && (up ? "up" : "down"),
    mac !== undefined && `address ${mac}`,
    mtu !== undefined && `mtu ${mtu}`,
    master !== undefined && (master === 0 ? "nomaster" : `master ${master}`),
    name !== undefined && `name ${name}`,
    alias !== undefined && `alias ${JSON.stringify(alias)}`,
    group !== undefined && `group ${group}`,
    netnsFd !== undefined && "netns",
    rpFilter !== undefined && `rp_filter ${rpFilter}`,
    addressGeneration !== undefined && `addr_gen_mode ${addressGeneration}`,
  ];
  return words.filter((word) => word !== false).join(" ");
}

/** Returns the request that sets the fields of `change` and nothing else. */
export function linkChange(index: number, change: LinkChange): Request {
  const operation = () => `set link ${index} ${formatChange(change)}`;
  return { operation, type: RTM_NEWLINK, payload: encodeLinkChange(index, change) };
}

/** Sends a {@link linkChange}. This conversation cannot reach a link that has moved to another namespace. */
export function setLink(conversation: Conversation, index: number, change: LinkChange): void {
  conversation.request(linkChange(index, change));
}

/** Changes settings of the kind: options of a bond, the mode of a macvlan. */
export function setLinkKind(conversation: Conversation, index: number, kind: LinkKind): void {
  const operation = `set link ${index} type ${kindName(kind)}`;
  conversation.request({ operation, type: RTM_NEWLINK, payload: encodeKindChange(index, kind) });
}

/** Gives the link a further name, which it keeps in all namespaces. Throws NetlinkError (EEXIST) if it is taken. */
export function addAltName(conversation: Conversation, index: number, name: string): void {
  const operation = `add alternative name "${name}" to link ${index}`;
  conversation.request({ operation, type: RTM_NEWLINKPROP, payload: encodeAltName(index, name) });
}

/** Succeeds if the link does not have the name. */
export function deleteAltName(conversation: Conversation, index: number, name: string): void {
  const operation = `delete alternative name "${name}" of link ${index}`;
  const request = { operation, type: RTM_DELLINKPROP, payload: encodeAltName(index, name) };
  unlessRefused([ENOENT], () => conversation.request(request));
}

/** Returns whether the link existed. Deleting one end of a veth deletes both. */
export function deleteLink(conversation: Conversation, index: number): boolean {
  const request = { operation: `delete link ${index}`, type: RTM_DELLINK, payload: encodeLink({ index }) };
  return unlessRefused([ENODEV], () => conversation.request(request)) !== undefined;
}

function groupDeletion(group: number): Request {
  const payload = encodeLink({ index: 0, attributes: [attribute(IFLA_GROUP, encodeUint32(group))] });
  return { operation: `delete links of group ${group}`, type: RTM_DELLINK, payload };
}

/** As {@link deleteLinkGroup}, while a thread of the pool waits. A group without links is no error. */
export async function deleteGroupAside(conversation: Conversation, group: number): Promise<void> {
  try {
    await conversation.requestAside(groupDeletion(group));
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.errno !== ENODEV) throw error;
  }
}

/**
 * Deletes all links of the group in one step, so that they share the kernel's waits. Returns whether there were any.
 * Throws NetlinkError (EOPNOTSUPP), and deletes none, if the group has a link that cannot be deleted, such as a
 * physical device.
 */
export function deleteLinkGroup(conversation: Conversation, group: number): boolean {
  return unlessRefused([ENODEV], () => conversation.request(groupDeletion(group))) !== undefined;
}
