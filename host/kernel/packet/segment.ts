/**
 * ARP and neighbour discovery on a link's segment, over at most one packet socket per family for all addresses.
 * Effects: those of the packet sockets.
 */
import { FAMILIES, type Family, type Ip } from "../../net/ip.ts";
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
import { type ArpPacket, decodeArp } from "./arp.ts";
import { ETH_P_ARP, ETH_P_IPV6, HEADER_BYTES } from "./ethernet.ts";
import {
  ALL_NODES,
  decodeNdp,
  multicastMac,
  ND_NEIGHBOR_ADVERT,
  ND_NEIGHBOR_SOLICIT,
  type NdpMessage,
  solicitedNode,
  TARGET_AT,
} from "./ndp.ts";
import { openPacketSocket, type PacketError, type PacketOptions, type PacketSocket } from "./socket.ts";

/** Most frames that a drain reads from one socket. The kernel queues some hundred at most. */
const MAX_FRAMES_PER_DRAIN = 4_096;

/** A decoded ARP or NDP packet; malformed frames are dropped. */
export type NeighbourPacket = ArpPacket | NdpMessage;

interface SegmentListener {
  packet(packet: NeighbourPacket): void;
  /** The link went down, or was deleted. */
  failure(error: PacketError): void;
}

interface SegmentOptions {
  readonly netnsPath: string;
  readonly link: number;
  /** Packets about these addresses are received. One filter holds some four hundred. */
  readonly addresses: readonly Ip[];
}

export interface Segment extends Disposable {
  /** Sends a frame. The segment must have been opened for an address of the family. Throws PacketError. */
  send(family: Family, frame: Uint8Array): void;
  /** Passes all queued frames to the listener now, before the event loop gets to them. */
  drain(): void;
}

/** All nodes get answers to a probe from `::`; the address's solicited-node group gets probes of other machines. */
function socketOptions(family: Family, { netnsPath, link, addresses }: SegmentOptions): PacketOptions {
  if (family === 4) return { netnsPath, link, etherType: ETH_P_ARP, filter: arpFilter(addresses) };
  const groups = [ALL_NODES, ...addresses.map(solicitedNode)].map(multicastMac);
  return { netnsPath, link, etherType: ETH_P_IPV6, filter: ndpFilter(addresses), groups: [...new Set(groups)] };
}

function drainSocket(socket: PacketSocket, deliver: (frame: Uint8Array) => void): void {
  for (let count = 0; count < MAX_FRAMES_PER_DRAIN; count++) {
    const frame = socket.receive();
    if (frame === undefined) return;
    deliver(frame);
  }
}

/** Opens sockets for the families of the addresses and listens on them. Throws PacketError, or NetnsError. */
export function openSegment(options: SegmentOptions, listener: SegmentListener): Segment {
  using opened = new DisposableStack();
  const sockets = new Map<Family, { socket: PacketSocket; deliver: (frame: Uint8Array) => void }>();
  for (const family of FAMILIES) {
    const addresses = options.addresses.filter((ip) => ip.family === family);
    if (addresses.length === 0) continue;
    const socket = opened.use(openPacketSocket(socketOptions(family, { ...options, addresses })));
    const decode = family === 4 ? decodeArp : decodeNdp;
    const deliver = (frame: Uint8Array): void => {
      const packet = decode(frame);
      if (packet !== undefined) listener.packet(packet);
    };
    socket.listen({ frame: deliver, failure: (error) => listener.failure(error) });
    sockets.set(family, { socket, deliver });
  }
  const held = opened.move();
  return {
    send: (family, frame) => sockets.get(family)?.socket.send(frame),
    drain: () => {
      for (const { socket, deliver } of sockets.values()) drainSocket(socket, deliver);
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}

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
 * Rejects frames that the kernel's own ARP would ignore: those of a VLAN that is not configured, which arrive without
 * their tag, and those to other MACs that a promiscuous link lets in. Addresses of another VLAN are different
 * addresses.
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
