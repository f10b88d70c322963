/**
 * Frames as tests see them: sender, receiver, protocol. It knows only the protocols that tests ask for: a datagram
 * behind an extension header is "other".
 */
import { decodeIp } from "../../host/kernel/netlink/ip-bytes.ts";
import { formatIp } from "../../host/net/ip.ts";

export interface Frame {
  /** As the link's namespace sees it. */
  readonly direction: "in" | "out";
  /** Ethernet addresses, `02:00:00:00:00:01`. */
  readonly sourceMac: string;
  readonly targetMac: string;
  readonly protocol: "arp" | "icmp" | "icmp6" | "tcp" | "udp" | "other";
  /** Addresses; of ARP those that it asks for. Empty when the frame has none. */
  readonly from: string;
  readonly to: string;
  /** 0 unless TCP or UDP. */
  readonly fromPort: number;
  readonly toPort: number;
  /** Flags of TCP, out of `S`, `F`, `R`, `A` in this order; empty otherwise. */
  readonly flags: string;
  /** Type of ICMP and ICMPv6; for ARP, 1 is a request and 2 a reply; -1 otherwise. */
  readonly type: number;
}

const PROTOCOLS: Readonly<Record<number, Frame["protocol"]>> = { 1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6" };
const TCP_FLAGS = [
  [0x02, "S"],
  [0x01, "F"],
  [0x04, "R"],
  [0x10, "A"],
] as const;

function formatMac(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

function address(bytes: Uint8Array, start: number, length: number): string {
  const part = bytes.subarray(start, start + length);
  return part.length === length ? formatIp(decodeIp(part)) : "";
}

/** Decodes a frame: parts that are cut or unknown are empty, 0 or -1; nothing throws. */
export function decodeFrame(bytes: Uint8Array, direction: Frame["direction"]): Frame {
  const macs = { sourceMac: formatMac(bytes.subarray(6, 12)), targetMac: formatMac(bytes.subarray(0, 6)) };
  const none = { protocol: "other", from: "", to: "", fromPort: 0, toPort: 0, flags: "", type: -1 } as const;
  return { direction, ...macs, ...none, ...decodePayload(at(bytes, 12, 2), bytes.subarray(14)) };
}

function decodePayload(etherType: number, bytes: Uint8Array): Partial<Frame> {
  if (etherType === 0x0806)
    return { protocol: "arp", from: address(bytes, 14, 4), to: address(bytes, 24, 4), type: at(bytes, 6, 2) };
  if (etherType === 0x0800) {
    const ends = { from: address(bytes, 12, 4), to: address(bytes, 16, 4) };
    return { ...ends, ...decodeTransport(at(bytes, 9, 1), bytes.subarray((at(bytes, 0, 1) & 15) * 4)) };
  }
  if (etherType === 0x86dd) {
    const ends = { from: address(bytes, 8, 16), to: address(bytes, 24, 16) };
    return { ...ends, ...decodeTransport(at(bytes, 6, 1), bytes.subarray(40)) };
  }
  return {};
}

function decodeTransport(number: number, bytes: Uint8Array): Partial<Frame> {
  const protocol = PROTOCOLS[number] ?? "other";
  if (protocol === "icmp" || protocol === "icmp6") return { protocol, type: at(bytes, 0, 1) };
  if (protocol === "other") return { protocol };
  const ports = { fromPort: at(bytes, 0, 2), toPort: at(bytes, 2, 2) };
  return { protocol, ...ports, flags: protocol === "tcp" ? formatFlags(at(bytes, 13, 1)) : "" };
}

function formatFlags(bits: number): string {
  return TCP_FLAGS.map(([bit, letter]) => ((bits & bit) === 0 ? "" : letter)).join("");
}

/** One or two bytes in network byte order; missing ones are 0. */
function at(bytes: Uint8Array, start: number, length: 1 | 2): number {
  const first = bytes[start] ?? 0;
  return length === 1 ? first : first * 256 + (bytes[start + 1] ?? 0);
}

/** One line for an error message: `in 10.60.0.50:80 > 10.80.0.2:4711 tcp SA`. */
export function formatFrame(frame: Frame): string {
  const ports = frame.protocol === "tcp" || frame.protocol === "udp";
  const from = ports ? `${frame.from}:${frame.fromPort}` : frame.from || frame.sourceMac;
  const to = ports ? `${frame.to}:${frame.toPort}` : frame.to || frame.targetMac;
  const kind = frame.type < 0 ? frame.flags : `type ${frame.type}`;
  return `${frame.direction} ${from} > ${to} ${frame.protocol} ${kind}`.trim();
}
