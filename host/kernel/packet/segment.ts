/**
 * ARP and neighbour discovery on the segment of a link, over at most one packet socket per family, however many addresses.
 * Effects: those of the packet sockets.
 */
import { FAMILIES, type Family, type Ip } from "../../net/ip.ts";
import { loadNative, type Native } from "../native.ts";
import { type ArpPacket, decodeArp } from "./arp.ts";
import { ETH_P_ARP, ETH_P_IPV6 } from "./ethernet.ts";
import { arpFilter, ndpFilter } from "./filter.ts";
import { ALL_NODES, decodeNdp, multicastMac, type NdpMessage, solicitedNode } from "./ndp.ts";
import type { PacketError } from "./socket.ts";
import { openPacketSocket, type PacketOptions, type PacketSocket } from "./socket.ts";

/** Most frames that are read from one socket when it is drained. The kernel queues some hundred at most. */
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
  /** Index of the link in that namespace. */
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

/** Answers to a probe from `::` go to all nodes; probes of other machines go to the solicited-node group of the address. */
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
export function openSegment(
  options: SegmentOptions,
  listener: SegmentListener,
  native: Native = loadNative(),
): Segment {
  using opened = new DisposableStack();
  const sockets = new Map<Family, { socket: PacketSocket; deliver: (frame: Uint8Array) => void }>();
  for (const family of FAMILIES) {
    const addresses = options.addresses.filter((ip) => ip.family === family);
    if (addresses.length === 0) continue;
    const socket = opened.use(openPacketSocket(socketOptions(family, { ...options, addresses }), native));
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
