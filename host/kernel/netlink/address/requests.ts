import { formatIp, type Ip } from "../../../net/ip.ts";
import { formatPrefix } from "../../../net/prefix.ts";
import { EADDRNOTAVAIL, ENODEV, EOPNOTSUPP } from "../../errno.ts";
import { attribute } from "../attribute.ts";
import { AF_INET6, AF_UNSPEC, NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import { type Conversation, Refusal, type Request } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import { type AddressMessage, decodeAddress, encodeAddress } from "../families.ts";
import { encodeIp } from "../ip-bytes.ts";
import { type Address, encodeAddressValue } from "./address.ts";
import { IFA_ADDRESS, RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR } from "./constants.ts";

function encodeAddressesOf(linkIndex: number): Uint8Array {
  return encodeAddress({ family: AF_UNSPEC, index: linkIndex, attributes: [] });
}

/** Returns the addresses of all families on the link, in the kernel's order; undefined if there is no such link. */
export function findAddresses(conversation: Conversation, linkIndex: number): AddressMessage[] | undefined {
  const operation = `list the addresses of link ${linkIndex}`;
  const payload = encodeAddressesOf(linkIndex);
  const answers = unlessRefused([ENODEV], () => conversation.dump({ operation, type: RTM_GETADDR, payload }));
  return answers?.map(decodeAddress).filter(({ index }) => index === linkIndex);
}

/** Returns the addresses of all links of the namespace. */
export function listAddresses(conversation: Conversation): AddressMessage[] {
  const payload = encodeAddressesOf(0);
  return conversation.dump({ operation: "list addresses", type: RTM_GETADDR, payload }).map(decodeAddress);
}

/** Returns whether any link has one of these IPv6 addresses, also while the kernel probes it. */
export function hasAnyAddress(conversation: Conversation, ips: readonly Ip[]): boolean {
  const requests = ips.map((ip): Request => {
    const payload = encodeAddress({ family: AF_INET6, attributes: [attribute(IFA_ADDRESS, encodeIp(ip))] });
    return { operation: () => `get address ${formatIp(ip)}`, type: RTM_GETADDR, payload };
  });
  return conversation.pipeline(requests).some((outcome) => {
    if (!(outcome instanceof Refusal)) return true;
    // The second, of a kernel without IPv6
    if (outcome.errno === EADDRNOTAVAIL || outcome.errno === EOPNOTSUPP) return false;
    throw outcome.toError();
  });
}

function words({ prefix, link }: Address): string {
  return `address ${formatPrefix(prefix)} on link ${link}`;
}

/** Returns the request to add the address. The kernel refuses with EEXIST if the link already has it. */
export function newAddress(address: Address): Request {
  const operation = () => `add ${words(address)}`;
  return { operation, type: RTM_NEWADDR, flags: NLM_F_CREATE | NLM_F_EXCL, payload: encodeAddressValue(address) };
}

/** Returns whether the address existed. */
export function deleteAddress(conversation: Conversation, address: Address): boolean {
  const operation = `delete ${words(address)}`;
  const payload = encodeAddressValue({ ...address, flags: 0 });
  const refusals = [EADDRNOTAVAIL, ENODEV];
  return unlessRefused(refusals, () => conversation.request({ operation, type: RTM_DELADDR, payload })) !== undefined;
}
