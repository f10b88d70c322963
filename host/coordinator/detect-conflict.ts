/**
 * Detects whether addresses are in use on a link's segment: probes for all of them and both families at once, and
 * listens until the window has passed, or until the last of the paced probes has timed out. Later answers are missed:
 * the configured time is taken as sufficient.
 * Effects: frames on the link; sockets, timers.
 */
import { randomBytes } from "node:crypto";
import { encodeArpProbe } from "../kernel/packet/arp.ts";
import { encodeNdpProbe } from "../kernel/packet/ndp.ts";
import type { Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import { type Conflict, type ConflictTiming, classifyPacket, conflictSchedule, type ProbeLink } from "./probe.ts";
import { type ProbeFrame, runProbeSession } from "./probe-session.ts";

/** With its header, the option takes eight bytes (RFC 3971 §5.3.2). */
const NONCE_BYTES = 6;

export type ConflictProbe = ConflictTiming & ConflictTarget;

interface ConflictTarget {
  readonly link: ProbeLink;
  readonly addresses: readonly Ip[];
  /** Our own MACs besides the link's; they never conflict. */
  readonly ownMacs?: ReadonlySet<Mac> | undefined;
  /** Returns numbers in [0, 1) that spread the probes. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the first conflict, or with undefined if no other machine answers. The time starts when the link has
 * a carrier. Rejects with DetectionError if the link is down or deleted, loses its carrier, or the signal aborts: the
 * result would be unreliable.
 */
export async function detectConflict(question: ConflictProbe): Promise<Conflict | undefined> {
  const { link, addresses, ownMacs = [], random, signal } = question;
  if (addresses.length === 0) return undefined;
  const nonces = new Set<string>();
  const context = { candidates: addresses, gateways: [], ownMacs: new Set([link.mac, ...ownMacs]), nonces };
  const probe = (ip: Ip): ProbeFrame => {
    if (ip.family === 4) return { family: 4, frame: encodeArpProbe(link.mac, ip) };
    const nonce = randomBytes(NONCE_BYTES);
    nonces.add(nonce.toString("hex"));
    return { family: 6, frame: encodeNdpProbe(link.mac, ip, nonce) };
  };
  return await runProbeSession<Conflict | undefined>({
    link,
    addresses,
    schedule: conflictSchedule(question, random),
    needsCarrier: true,
    signal,
    frames: () => addresses.map(probe),
    onPacket: (packet) => {
      const found = classifyPacket(packet, context);
      return found?.kind === "conflict" ? found.conflict : undefined;
    },
    onTimeout: () => undefined,
  });
}
