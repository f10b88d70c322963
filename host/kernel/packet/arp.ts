/**
 * ARP over Ethernet for IPv4: frames ↔ values, and the three requests that detection sends.
 *
 *      0              2          4      5      6         8            14          18           24          28
 *      ├ hardware = 1 ┼ protocol ┼ hlen ┼ plen ┼ operation ┼ sender MAC ┼ sender IP ┼ target MAC ┼ target IP ┤
 *      (RFC 826)
 */
import type { Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { encodeMac } from "../mac-bytes.ts";
import { decodeIp, encodeIp } from "../netlink/ip-bytes.ts";
import { BROADCAST_MAC, createFrame, ETH_P_ARP, HEADER_BYTES, isFrameOf, readMac } from "./ethernet.ts";

const ARP_BYTES = 28;
const KIND = Uint8Array.of(0, 1, 0x08, 0x00, 6, 4);
const NO_MAC = "00:00:00:00:00:00" as Mac;
const NO_IP: Ip = { family: 4, value: 0n };

const ARP_REQUEST = 1;
export const ARP_REPLY = 2;

export interface ArpPacket {
  readonly destination: Mac;
  readonly source: Mac;
  /** ARP_REQUEST, ARP_REPLY */
  readonly operation: number;
  readonly senderMac: Mac;
  readonly senderIp: Ip;
  readonly targetMac: Mac;
  readonly targetIp: Ip;
}

/** Returns undefined for other frames than ARP for IPv4 over Ethernet. Never throws: any machine may send any. */
export function decodeArp(frame: Uint8Array): ArpPacket | undefined {
  if (!isFrameOf(frame, ETH_P_ARP, HEADER_BYTES + ARP_BYTES)) return undefined;
  const arp = frame.subarray(HEADER_BYTES, HEADER_BYTES + ARP_BYTES);
  if (KIND.some((byte, index) => arp[index] !== byte)) return undefined;
  return {
    destination: readMac(frame, 0),
    source: readMac(frame, 6),
    operation: ((arp[6] ?? 0) << 8) | (arp[7] ?? 0),
    senderMac: readMac(arp, 8),
    senderIp: decodeIp(arp.subarray(14, 18)),
    targetMac: readMac(arp, 18),
    targetIp: decodeIp(arp.subarray(24, 28)),
  };
}

export function encodeArp({ destination, source, operation, ...packet }: ArpPacket): Uint8Array {
  const frame = createFrame(destination, source, ETH_P_ARP, ARP_BYTES);
  const arp = frame.subarray(HEADER_BYTES);
  arp.set(KIND);
  arp.set([operation >> 8, operation & 0xff], 6);
  arp.set(encodeMac(packet.senderMac), 8);
  arp.set(encodeIp(packet.senderIp), 14);
  arp.set(encodeMac(packet.targetMac), 18);
  arp.set(encodeIp(packet.targetIp), 24);
  return frame;
}

function encodeRequest(mac: Mac, senderIp: Ip, targetIp: Ip, destination: Mac = BROADCAST_MAC): Uint8Array {
  const addresses = { senderMac: mac, senderIp, targetMac: NO_MAC, targetIp };
  return encodeArp({ destination, source: mac, operation: ARP_REQUEST, ...addresses });
}

/**
 * An ARP probe (RFC 5227 §2.1.1): asks for the address without claiming it, with sender 0.0.0.0. `machine`: the only
 * one that is asked; default: all.
 */
export function encodeArpProbe(mac: Mac, candidate: Ip, machine?: Mac): Uint8Array {
  return encodeRequest(mac, NO_IP, candidate, machine);
}

/** An ARP announcement (RFC 5227 §2.3): a request with the address as sender and target. */
export function encodeArpAnnouncement(mac: Mac, own: Ip): Uint8Array {
  return encodeRequest(mac, own, own);
}

/** An ordinary ARP request for `target`, sent from the address `own`. */
export function encodeArpRequest(mac: Mac, own: Ip, target: Ip): Uint8Array {
  return encodeRequest(mac, own, target);
}
