/**
 * Rivals that no kernel plays: on a packet socket of their own, in this process, they see the questions and answer as
 * they are told. Effects: a socket per family, until disposed of.
 */
import { ARP_REPLY, encodeArp } from "../../host/kernel/packet/arp.ts";
import { ALL_NODES, encodeNdp, multicastMac } from "../../host/kernel/packet/ndp.ts";
import { type NeighbourPacket, openSegment } from "../../host/kernel/packet/segment.ts";
import { formatIp, type Ip } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import { ip } from "../world/values.ts";
import type { Pod } from "./detection-lab.ts";

/** Target and sender of a question. */
export interface Received {
  readonly target: Ip;
  readonly from: Mac;
  /** Number of earlier such questions for this address. */
  readonly before: number;
  readonly packet: NeighbourPacket;
}

interface Rival extends Disposable {
  /** All that was heard, in order. */
  readonly received: readonly Received[];
  /** Nothing when it has left meanwhile. */
  send(family: 4 | 6, frame: Uint8Array): void;
}

/** The owner's answer to a question: a reply, or an advertisement to all nodes. `source`: of the frame. */
export function answer(
  from: Mac,
  to: Mac,
  target: Ip,
  { withOption = true, source = from }: { withOption?: boolean; source?: Mac } = {},
): Uint8Array {
  if (target.family === 4) {
    const addresses = { senderMac: from, senderIp: target, targetMac: to, targetIp: ip("0.0.0.0") };
    return encodeArp({ destination: to, source, operation: ARP_REPLY, ...addresses });
  }
  return encodeNdp({
    kind: "advertisement",
    destinationMac: multicastMac(ALL_NODES),
    sourceMac: source,
    source: target,
    destination: ALL_NODES,
    target,
    linkLayer: withOption ? from : undefined,
    router: false,
    solicited: false,
    override: true,
  });
}

/** Whether all are asked, and not this machine alone. */
export function isToAll({ packet }: Received): boolean {
  const destination = "operation" in packet ? packet.destination : packet.destinationMac;
  return (Number.parseInt(destination.slice(0, 2), 16) & 1) === 1;
}

/** Listens for questions about the addresses; `hear` is called with each. */
export function playRival(
  pod: Pod,
  addresses: readonly string[],
  hear: (received: Received, rival: Rival) => void,
): Rival {
  const received: Received[] = [];
  let isThere = true;
  const segment = openSegment(
    { netnsPath: pod.link.netnsPath, link: pod.link.index, addresses: addresses.map(ip) },
    {
      packet: (packet) => {
        const isArp = "operation" in packet;
        const target = isArp ? packet.targetIp : packet.target;
        const from = isArp ? packet.source : packet.sourceMac;
        const before = received.filter((other) => formatIp(other.target) === formatIp(target)).length;
        const question = { target, from, before, packet };
        received.push(question);
        hear(question, rival);
      },
      failure: () => {},
    },
  );
  const rival: Rival = {
    received,
    send: (family, frame) => isThere && segment.send(family, frame),
    [Symbol.dispose]() {
      isThere = false;
      segment[Symbol.dispose]();
    },
  };
  return rival;
}
