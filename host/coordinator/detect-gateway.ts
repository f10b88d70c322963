/**
 * Detects whether the gateways of a link answer: asks all of them at once, several times, and each until its first
 * answer.
 *
 * While an own address may be in conflict, gateways are asked by probes (sender 0.0.0.0, `::`), which every owner
 * answers as well: a request from the address would redirect a rival's traffic in the gateway's neighbour table. A
 * temporary loss of the carrier is tolerated, since the requests are repeated.
 * Effects: frames on the link; sockets, timers.
 */
import { randomBytes } from "node:crypto";
import { encodeArpProbe, encodeArpRequest } from "../kernel/packet/arp.ts";
import { encodeNdpProbe, encodeNdpSolicitation } from "../kernel/packet/ndp.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import { classifyPacket, type ProbeLink, requestSchedule } from "./probe.ts";
import { type ProbeFrame, runProbeSession } from "./probe-session.ts";

const NONCE_BYTES = 6;

export interface GatewayTarget {
  readonly gateway: Ip;
  /** Source address of the requests, of the gateway's family. */
  readonly own: Ip;
}

export interface GatewayProbe {
  readonly link: ProbeLink;
  readonly targets: readonly GatewayTarget[];
  readonly retry: number;
  /** Time between two requests: milliseconds. */
  readonly intervalMs: number;
  /** Time to wait for an answer after the last request: milliseconds. */
  readonly timeoutMs: number;
  /** Conflict detection of the `own` addresses, while it runs: gateways are asked by probes until it ends. */
  readonly pendingConflict?: Promise<unknown> | undefined;
  readonly signal: AbortSignal;
}

function encodeRequest(mac: Mac, { gateway, own }: GatewayTarget, asProbe: boolean): ProbeFrame {
  const { family } = gateway;
  if (family === 4) {
    return { family, frame: asProbe ? encodeArpProbe(mac, gateway) : encodeArpRequest(mac, own, gateway) };
  }
  const probe = () => encodeNdpProbe(mac, gateway, randomBytes(NONCE_BYTES));
  return { family, frame: asProbe ? probe() : encodeNdpSolicitation(mac, own, gateway) };
}

/**
 * Resolves with the gateways that did not answer. The time starts when the link has a carrier. Rejects with
 * DetectionError if the link is down or deleted, gets no carrier in time, or the signal aborts.
 */
export async function detectGateways(question: GatewayProbe): Promise<readonly Ip[]> {
  const { link, targets, pendingConflict, signal } = question;
  if (targets.length === 0) return [];
  const answered = new Set<string>();
  const gateways = targets.map(({ gateway }) => gateway);
  const open = () => targets.filter(({ gateway }) => !answered.has(formatIp(gateway)));
  let isPending = pendingConflict !== undefined;
  const finish = () => {
    isPending = false;
  };
  pendingConflict?.then(finish, finish);
  const context = { candidates: [], gateways, ownMacs: new Set([link.mac]), nonces: new Set<string>() };
  return await runProbeSession<readonly Ip[]>({
    link,
    addresses: gateways,
    schedule: requestSchedule(question, Math.random),
    needsCarrier: false,
    signal,
    frames: () => open().map((target) => encodeRequest(link.mac, target, isPending)),
    onPacket: (packet) => {
      const found = classifyPacket(packet, context);
      if (found?.kind === "gateway") answered.add(formatIp(found.gateway));
      return open().length === 0 ? [] : undefined;
    },
    onTimeout: () => open().map(({ gateway }) => gateway),
  });
}
