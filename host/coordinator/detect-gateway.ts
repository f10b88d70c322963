/**
 * Do the gateways of a link answer? Asks all of them at once, some times, and is done with each at its first answer.
 *
 * While an own address is in doubt, the question goes out as a probe (sender 0.0.0.0, `::`), which every owner must answer, too: asked
 * from the address, it would put a rival's traffic into the gateway's neighbour table.
 * A carrier that goes and comes back is borne: that is what the repetitions are for.
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
  /** Of the gateway's family: the address that asks. */
  readonly own: Ip;
}

export interface GatewayProbe {
  readonly link: ProbeLink;
  readonly targets: readonly GatewayTarget[];
  /** How often each is asked. */
  readonly retry: number;
  /** Between two questions. */
  readonly intervalMs: number;
  /** How long the last question waits for its answer. */
  readonly timeoutMs: number;
  /** Settles when no `own` is in doubt any more. Absent: none is. */
  readonly pendingConflict?: Promise<unknown> | undefined;
  /** Numbers in [0, 1), which spread the first question. */
  readonly random?: (() => number) | undefined;
  readonly signal: AbortSignal;
}

export interface GatewayAnswers {
  /** Those that did not answer; empty when all did. */
  readonly unreachable: readonly Ip[];
  /** By the gateway's address as text. */
  readonly macs: ReadonlyMap<string, Mac>;
}

function encodeRequest(mac: Mac, { gateway, own }: GatewayTarget, inDoubt: boolean): ProbeFrame {
  const { family } = gateway;
  if (family === 4) {
    return { family, frame: inDoubt ? encodeArpProbe(mac, gateway) : encodeArpRequest(mac, own, gateway) };
  }
  const probe = () => encodeNdpProbe(mac, gateway, randomBytes(NONCE_BYTES));
  return { family, frame: inDoubt ? probe() : encodeNdpSolicitation(mac, own, gateway) };
}

/**
 * Which gateways did not answer, and the MACs of those that did. The clock starts when the link has a carrier.
 * Rejects with DetectionError when the link is or goes down or away, or has no carrier in time; and when aborted.
 */
export async function detectGateways(question: GatewayProbe): Promise<GatewayAnswers> {
  const { link, targets, pendingConflict, random = Math.random, signal } = question;
  const macs = new Map<string, Mac>();
  const gateways = targets.map(({ gateway }) => gateway);
  const open = () => targets.filter(({ gateway }) => !macs.has(formatIp(gateway)));
  const answers = (): GatewayAnswers => ({ unreachable: open().map(({ gateway }) => gateway), macs });
  if (targets.length === 0) return answers();
  let doubted = pendingConflict !== undefined;
  const settle = () => {
    doubted = false;
  };
  pendingConflict?.then(settle, settle);
  const asked = { candidates: [], gateways, ownMacs: new Set([link.mac]), nonces: new Set<string>() };
  return await runProbeSession<GatewayAnswers>({
    link,
    addresses: gateways,
    schedule: requestSchedule(question, random),
    needsCarrier: false,
    signal,
    frames: () => open().map((target) => encodeRequest(link.mac, target, doubted)),
    onPacket: (packet) => {
      const verdict = classifyPacket(packet, asked);
      if (verdict?.kind === "gateway") macs.set(formatIp(verdict.gateway), verdict.mac);
      return open().length === 0 ? answers() : undefined;
    },
    onTimeout: answers,
  });
}
