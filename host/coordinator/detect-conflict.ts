/**
 * Detects whether addresses are in use on a link's segment: probes for all of them and both families at once, and
 * listens until the window has passed, or until the last of the paced probes has timed out. Later answers are missed:
 * the configured time is taken as sufficient.
 *
 * A switch of a fabric answers questions to all in place of the owner, for hours also when the owner is gone (ARP and
 * ND suppression, RFC 9161). So the machine that an answer names is asked itself, on the same schedule, and while it is
 * silent the answer counts as none. It is not used up by that: all are asked once more, for another machine.
 * Effects: frames on the link; sockets, timers.
 */
import { randomBytes } from "node:crypto";
import { ARP_REPLY, encodeArpProbe } from "../kernel/packet/arp.ts";
import { encodeNdpProbe } from "../kernel/packet/ndp.ts";
import { formatIp, type Ip } from "../net/ip.ts";
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

/** Machines by the address for which they answered. */
type Machines = Map<string, Mac>;

/**
 * Resolves with the first conflict, or with undefined if no other machine answers. The time starts when the link has
 * a carrier; it doubles when a machine is asked itself. Rejects with DetectionError if the link is down or deleted,
 * loses its carrier, or the signal aborts: the result would be unreliable.
 */
export async function detectConflict(question: ConflictProbe): Promise<Conflict | undefined> {
  if (question.addresses.length === 0) return undefined;
  const [doubted, silent]: [Machines, Machines] = [new Map(), new Map()];
  for (;;) {
    const found = await probeAll(question, doubted, silent);
    if (found === undefined) {
      if (doubted.size === 0) return undefined;
      for (const [ip, mac] of doubted) silent.set(ip, mac);
      doubted.clear();
      continue;
    }
    const { conflict, isAnswer } = found;
    const ip = formatIp(conflict.ip);
    // Two machines that answer for one address are a conflict, whichever of them lives.
    if (!isAnswer || conflict.mac === undefined || doubted.has(ip) || silent.has(ip)) return conflict;
    doubted.set(ip, conflict.mac);
  }
}

interface Found {
  readonly conflict: Conflict;
  /** Not a machine that speaks by itself. */
  readonly isAnswer: boolean;
}

/**
 * One schedule: asks doubted machines directly for their addresses, and all machines for the others. Answers of silent
 * machines count as none.
 */
async function probeAll(question: ConflictProbe, doubted: Machines, silent: Machines): Promise<Found | undefined> {
  const { link, addresses, ownMacs = [], random, signal } = question;
  const nonces = new Set<string>();
  const context = { candidates: addresses, gateways: [], ownMacs: new Set([link.mac, ...ownMacs]), nonces };
  const probe = (ip: Ip): ProbeFrame => {
    const machine = doubted.get(formatIp(ip));
    if (ip.family === 4) return { family: 4, frame: encodeArpProbe(link.mac, ip, machine) };
    const nonce = randomBytes(NONCE_BYTES);
    nonces.add(nonce.toString("hex"));
    return { family: 6, frame: encodeNdpProbe(link.mac, ip, nonce, machine) };
  };
  return await runProbeSession<Found | undefined>({
    link,
    addresses,
    schedule: conflictSchedule(question, random),
    needsCarrier: true,
    signal,
    frames: () => addresses.map(probe),
    onPacket: (packet) => {
      const found = classifyPacket(packet, context);
      if (found?.kind !== "conflict") return undefined;
      const { conflict } = found;
      const isAnswer = "kind" in packet ? packet.kind === "advertisement" : packet.operation === ARP_REPLY;
      return isAnswer && silent.get(formatIp(conflict.ip)) === conflict.mac ? undefined : { conflict, isAnswer };
    },
    onTimeout: () => undefined,
  });
}
