/**
 * Neighbour solicitations and advertisements of IPv6 in their frames: bytes ↔ values, and those that detection sends.
 *
 *      0          14           54     55     56         58                62       78
 *      ├ Ethernet ┼ IPv6 header ┼ type ┼ code ┼ checksum ┼ flags, reserved ┼ target ┼ options …
 *      (RFC 4861 §4.3, §4.4)
 */
import { type Ip, isMulticast } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { encodeMac } from "../mac-bytes.ts";
import { decodeIp, encodeIp } from "../netlink/ip-bytes.ts";
import { createFrame, ETH_P_IPV6, HEADER_BYTES, isFrameOf, readMac } from "./ethernet.ts";

const IPV6_BYTES = 40;
const FIXED_BYTES = 24;
const ICMP_AT = HEADER_BYTES + IPV6_BYTES;
export const TARGET_AT = ICMP_AT + 8;
const NEXT_HEADER_ICMPV6 = 58;
/** A router decrements it, so a packet with this limit comes from this segment. */
const HOP_LIMIT = 255;

export const ND_NEIGHBOR_SOLICIT = 135;
export const ND_NEIGHBOR_ADVERT = 136;
const OPTION_SOURCE_MAC = 1;
const OPTION_TARGET_MAC = 2;
/** RFC 3971 §5.3.2, used as RFC 7527 says. */
const OPTION_NONCE = 14;
const FLAG_ROUTER = 0x80;
const FLAG_SOLICITED = 0x40;
const FLAG_OVERRIDE = 0x20;

const UNSPECIFIED: Ip = { family: 6, value: 0n };
/** ff02::1 */
export const ALL_NODES: Ip = { family: 6, value: (0xff02n << 112n) | 1n };
/** ff02::1:ff00:0 */
const SOLICITED_NODE = (0xff02n << 112n) | 0x1_ff00_0000n;

interface NdpAddresses {
  readonly destinationMac: Mac;
  readonly sourceMac: Mac;
  readonly source: Ip;
  readonly destination: Ip;
  readonly target: Ip;
  /** The link-layer address option: of the source (solicitation) or the target (advertisement). */
  readonly linkLayer?: Mac | undefined;
}

export type NdpMessage =
  | (NdpAddresses & { readonly kind: "solicitation"; readonly nonce?: Uint8Array | undefined })
  | (NdpAddresses & {
      readonly kind: "advertisement";
      readonly router: boolean;
      readonly solicited: boolean;
      readonly override: boolean;
    });

/** ff02::1:ff and the last three octets (RFC 4291 §2.7.1) */
export function solicitedNode(ip: Ip): Ip {
  return { family: 6, value: SOLICITED_NODE | (ip.value & 0xff_ffffn) };
}

/** 33:33 and the last four octets (RFC 2464 §7). */
export function multicastMac(group: Ip): Mac {
  return readMac(Uint8Array.of(0x33, 0x33, ...encodeIp(group).subarray(12)), 0);
}

/** Computes the checksum over the pseudo header and the message (RFC 4443 §2.3); 0 if it contains a correct one. */
function checksumOf(packet: Uint8Array): number {
  const length = packet.length - IPV6_BYTES;
  let sum = length + NEXT_HEADER_ICMPV6;
  for (let at = 8; at < packet.length; at += 2) sum += ((packet[at] ?? 0) << 8) | (packet[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** Returns the body of each option by type; undefined for a false length (RFC 4861 §4.6: units of 8 bytes, never 0). */
function decodeOptions(bytes: Uint8Array): Map<number, Uint8Array> | undefined {
  const options = new Map<number, Uint8Array>();
  for (let at = 0; at < bytes.length; ) {
    const length = (bytes[at + 1] ?? 0) * 8;
    if (length === 0 || at + length > bytes.length) return undefined;
    options.set(bytes[at] ?? 0, bytes.subarray(at + 2, at + length));
    at += length;
  }
  return options;
}

/**
 * Returns the IPv6 packet without Ethernet's padding; undefined unless its headers are those of a solicitation or
 * advertisement and its checksum is correct.
 */
function findPacket(frame: Uint8Array): Uint8Array | undefined {
  if (!isFrameOf(frame, ETH_P_IPV6, ICMP_AT + FIXED_BYTES)) return undefined;
  const packet = frame.subarray(HEADER_BYTES);
  const length = ((packet[4] ?? 0) << 8) | (packet[5] ?? 0);
  if (length < FIXED_BYTES || IPV6_BYTES + length > packet.length) return undefined;
  const valid = (packet[0] ?? 0) >> 4 === 6 && packet[6] === NEXT_HEADER_ICMPV6 && packet[7] === HOP_LIMIT;
  const whole = packet.subarray(0, IPV6_BYTES + length);
  return valid && packet[IPV6_BYTES + 1] === 0 && checksumOf(whole) === 0 ? whole : undefined;
}

/** RFC 4861 §7.1.1: a solicitation from `::` goes only to the solicited-node group, without a source address option. */
function isProper({ source, destination, target, linkLayer }: NdpAddresses): boolean {
  if (source.value !== 0n) return true;
  return destination.value === solicitedNode(target).value && linkLayer === undefined;
}

/** Returns undefined for packets that RFC 4861 §7.1 discards, and others. Never throws: any machine may send any. */
export function decodeNdp(frame: Uint8Array): NdpMessage | undefined {
  const packet = findPacket(frame);
  const options = packet && decodeOptions(packet.subarray(IPV6_BYTES + FIXED_BYTES));
  if (packet === undefined || options === undefined) return undefined;
  const type = packet[IPV6_BYTES];
  const option = options.get(type === ND_NEIGHBOR_SOLICIT ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC);
  const addresses: NdpAddresses = {
    destinationMac: readMac(frame, 0),
    sourceMac: readMac(frame, 6),
    source: decodeIp(packet.subarray(8, 24)),
    destination: decodeIp(packet.subarray(24, 40)),
    target: decodeIp(packet.subarray(48, 64)),
    linkLayer: option && readMac(option, 0),
  };
  if (isMulticast(addresses.target)) return undefined; // a multicast group is not an address of a machine
  if (type === ND_NEIGHBOR_SOLICIT) {
    const nonce = options.get(OPTION_NONCE)?.slice();
    return isProper(addresses) ? { kind: "solicitation", ...addresses, nonce } : undefined;
  }
  if (type !== ND_NEIGHBOR_ADVERT) return undefined;
  const flags = packet[44] ?? 0;
  const has = (flag: number) => (flags & flag) !== 0;
  const states = { router: has(FLAG_ROUTER), solicited: has(FLAG_SOLICITED), override: has(FLAG_OVERRIDE) };
  return { kind: "advertisement", ...addresses, ...states };
}

function encodeOption(type: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array((2 + body.length + 7) & ~7);
  bytes.set([type, bytes.length / 8]);
  bytes.set(body, 2);
  return bytes;
}

function encodeOptions(message: NdpMessage): Uint8Array[] {
  const { linkLayer } = message;
  const solicits = message.kind === "solicitation";
  const options = linkLayer
    ? [encodeOption(solicits ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC, encodeMac(linkLayer))]
    : [];
  if (solicits && message.nonce) options.push(encodeOption(OPTION_NONCE, message.nonce));
  return options;
}

export function encodeNdp(message: NdpMessage): Uint8Array {
  const options = encodeOptions(message);
  const length = options.reduce((total, option) => total + option.length, FIXED_BYTES);
  const frame = createFrame(message.destinationMac, message.sourceMac, ETH_P_IPV6, IPV6_BYTES + length);
  const packet = frame.subarray(HEADER_BYTES);
  packet.set([0x60, 0, 0, 0, length >> 8, length & 0xff, NEXT_HEADER_ICMPV6, HOP_LIMIT]);
  packet.set(encodeIp(message.source), 8);
  packet.set(encodeIp(message.destination), 24);
  if (message.kind === "solicitation") packet[IPV6_BYTES] = ND_NEIGHBOR_SOLICIT;
  else {
    const { router, solicited, override } = message;
    packet[IPV6_BYTES] = ND_NEIGHBOR_ADVERT;
    packet[44] = (router ? FLAG_ROUTER : 0) | (solicited ? FLAG_SOLICITED : 0) | (override ? FLAG_OVERRIDE : 0);
  }
  packet.set(encodeIp(message.target), 48);
  let at = IPV6_BYTES + FIXED_BYTES;
  for (const option of options) {
    packet.set(option, at);
    at += option.length;
  }
  const checksum = checksumOf(packet);
  packet.set([checksum >> 8, checksum & 0xff], 42);
  return frame;
}

/** Encodes a solicitation to the target's solicited-node group. */
function solicit(
  mac: Mac,
  source: Ip,
  target: Ip,
  { machine, ...more }: { linkLayer?: Mac; nonce?: Uint8Array; machine?: Mac | undefined },
): Uint8Array {
  const destination = solicitedNode(target);
  const destinationMac = machine ?? multicastMac(destination);
  return encodeNdp({ kind: "solicitation", destinationMac, sourceMac: mac, source, destination, target, ...more });
}

/**
 * A probe for the address from `::` (RFC 4862 §5.4.2). The nonce (six bytes) identifies our own frame when it is echoed
 * (RFC 7527). `machine`: the only receiver of the frame (RFC 6085); default: the group.
 */
export function encodeNdpProbe(mac: Mac, candidate: Ip, nonce: Uint8Array, machine?: Mac): Uint8Array {
  return solicit(mac, UNSPECIFIED, candidate, { nonce, machine });
}

/** An ordinary solicitation for `target`, sent from the address `own`. */
export function encodeNdpSolicitation(mac: Mac, own: Ip, target: Ip): Uint8Array {
  return solicit(mac, own, target, { linkLayer: mac });
}

/** Announces the address to all nodes: unsolicited, override (RFC 4861 §7.2.6). */
export function encodeNdpAnnouncement(mac: Mac, own: Ip): Uint8Array {
  const addresses = { source: own, destination: ALL_NODES, target: own, linkLayer: mac };
  const macs = { destinationMac: multicastMac(ALL_NODES), sourceMac: mac };
  const states = { router: false, solicited: false, override: true };
  return encodeNdp({ kind: "advertisement", ...macs, ...addresses, ...states });
}
