/** Classic BPF programs that select the frames a packet socket receives; all others are dropped in the kernel. */
import type { Ip } from "../../net/ip.ts";
import {
  ACCEPT,
  assembleFilter,
  type Instruction,
  JUMP_EQUAL,
  LOAD_BYTE,
  LOAD_HALF,
  LOAD_WORD,
  REJECT,
  requireValue,
} from "../bpf.ts";
import { viewOf } from "../netlink/attribute.ts";
import { encodeIp } from "../netlink/ip-bytes.ts";
import { ETH_P_ARP, ETH_P_IPV6, HEADER_BYTES } from "./ethernet.ts";
import { ND_NEIGHBOR_ADVERT, ND_NEIGHBOR_SOLICIT, TARGET_AT } from "./ndp.ts";

/** Offset of the frame's packet type, which the kernel provides (linux/filter.h: SKF_AD_OFF + SKF_AD_PKTTYPE). */
const PACKET_TYPE_AT = 0xffff_f004;
/** linux/if_packet.h */
const PACKET_OTHERHOST = 3;

const ARP_SENDER_AT = HEADER_BYTES + 14;
const ARP_TARGET_AT = HEADER_BYTES + 24;
const NEXT_HEADER_AT = HEADER_BYTES + 6;
const ICMP_TYPE_AT = HEADER_BYTES + 40;
const NEXT_HEADER_ICMPV6 = 58;

/**
 * Rejects frames that the kernel's own ARP would ignore: those of a VLAN that is not configured, which arrive without their tag,
 * and those to other MACs that a promiscuous link lets in. Addresses of another VLAN are different addresses.
 */
const FOR_US: readonly Instruction[] = [
  [LOAD_BYTE, 0, 0, PACKET_TYPE_AT],
  [JUMP_EQUAL, 0, 1, PACKET_OTHERHOST],
  REJECT,
];

/** Accepts the frame if the address at the offset is `ip`; otherwise continues. */
function acceptAddress(offset: number, ip: Ip): Instruction[] {
  const words = viewOf(encodeIp(ip));
  const count = words.byteLength / 4;
  const tests = Array.from({ length: count }, (_, index): Instruction[] => [
    [LOAD_WORD, 0, 0, offset + 4 * index],
    [JUMP_EQUAL, 0, 2 * (count - 1 - index) + 1, words.getUint32(4 * index)],
  ]);
  return [...tests.flat(), ACCEPT];
}

/** Selects ARP whose sender or target is one of the addresses, whatever the operation. */
export function arpFilter(addresses: readonly Ip[]): Uint8Array {
  const tests = addresses.flatMap((ip) => [...acceptAddress(ARP_SENDER_AT, ip), ...acceptAddress(ARP_TARGET_AT, ip)]);
  return assembleFilter([...FOR_US, ...requireValue([LOAD_HALF, 0, 0, 12], [ETH_P_ARP]), ...tests, REJECT]);
}

/** Selects neighbour solicitations and advertisements whose target is one of the addresses. */
export function ndpFilter(addresses: readonly Ip[]): Uint8Array {
  return assembleFilter([
    ...FOR_US,
    ...requireValue([LOAD_HALF, 0, 0, 12], [ETH_P_IPV6]),
    ...requireValue([LOAD_BYTE, 0, 0, NEXT_HEADER_AT], [NEXT_HEADER_ICMPV6]),
    ...requireValue([LOAD_BYTE, 0, 0, ICMP_TYPE_AT], [ND_NEIGHBOR_SOLICIT, ND_NEIGHBOR_ADVERT]),
    ...addresses.flatMap((ip) => acceptAddress(TARGET_AT, ip)),
    REJECT,
  ]);
}
