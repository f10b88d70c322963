/**
 * A link's segment: ARP and neighbour discovery through at most one packet socket per family, whatever the number of addresses.
 * What is asked and what an answer means is decided elsewhere.
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

/** Frames that are read out of one socket at once when all that has come must be seen. The kernel keeps some hundred at most. @limit */
export const MAX_FRAMES_PER_DRAIN = 4_096;

/** What is told of neighbours, decoded; what is malformed is nobody's word. */
export type NeighbourPacket = ArpPacket | NdpMessage;

export interface SegmentListener {
  packet(packet: NeighbourPacket): void;
  /** The link went down or away. */
  failure(error: PacketError): void;
}

export interface SegmentOptions {
  readonly netnsPath: string;
  /** Index of the link in that namespace. */
  readonly link: number;
  /** Packets about these are heard. One filter holds some four hundred. */
  readonly addresses: readonly Ip[];
}

export interface Segment extends Disposable {
  /** Throws PacketError. The family has an address among those that the segment was opened for. */
  send(family: Family, frame: Uint8Array): void;
  /** Tells the listener at once of all frames that have come, also those that the event loop has not got to. */
  drain(): void;
}

/** Answers to a question from `::` go to all nodes; probes of others to the group of the address. */
function socketOptions(family: Family, { netnsPath, link, addresses }: SegmentOptions): PacketOptions {
  if (family === 4) return { netnsPath, link, etherType: ETH_P_ARP, filter: arpFilter(addresses) };
  const groups = [ALL_NODES, ...addresses.map(solicitedNode)].map(multicastMac);
  return { netnsPath, link, etherType: ETH_P_IPV6, filter: ndpFilter(addresses), groups: [...new Set(groups)] };
}

function drainSocket(socket: PacketSocket, tell: (frame: Uint8Array) => void): void {
  for (let count = 0; count < MAX_FRAMES_PER_DRAIN; count++) {
    const frame = socket.receive();
    if (frame === undefined) return;
    tell(frame);
  }
}

/** Opens sockets for the families of the addresses and listens on them; without a listener they only send. Throws PacketError, or NetnsError. */
export function openSegment(
  options: SegmentOptions,
  listener?: SegmentListener,
  native: Native = loadNative(),
): Segment {
  using opened = new DisposableStack();
  const sockets = new Map<Family, { socket: PacketSocket; tell: (frame: Uint8Array) => void }>();
  for (const family of FAMILIES) {
    const addresses = options.addresses.filter((ip) => ip.family === family);
    if (addresses.length === 0) continue;
    const heard = listener === undefined ? [] : addresses;
    const socket = opened.use(openPacketSocket(socketOptions(family, { ...options, addresses: heard }), native));
    const decode = family === 4 ? decodeArp : decodeNdp;
    const tell = (frame: Uint8Array): void => {
      const packet = decode(frame);
      if (packet !== undefined) listener?.packet(packet);
    };
    if (listener) socket.listen({ frame: tell, failure: (error) => listener.failure(error) });
    sockets.set(family, { socket, tell });
  }
  const held = opened.move();
  return {
    send: (family, frame) => sockets.get(family)?.socket.send(frame),
    drain: () => {
      for (const { socket, tell } of sockets.values()) drainSocket(socket, tell);
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}
