/**
 * Is an address free on a link's segment? Probes for all of them and both families at once, and listens until the window has passed, or until the last
 * probe of a pace has had its time.
 *
 * An answer that comes later is not heard: the time is what was configured as enough.
 * Effects: frames on the link; sockets, timers.
 */
import { randomBytes } from "node:crypto";
import { encodeArpProbe } from "../kernel/packet/arp.ts";
import { encodeNdpProbe } from "../kernel/packet/ndp.ts";
import type { Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import { type Conflict, type ConflictTiming, classifyPacket, conflictSchedule, type ProbeLink } from "./probe.ts";
import { type ProbeFrame, runProbeSession } from "./probe-session.ts";

/** Fills the option's eight bytes (RFC 3971 §5.3.2). */
const NONCE_BYTES = 6;

export type ConflictProbe = ConflictTiming & ConflictTarget;

interface ConflictTarget {
  readonly link: ProbeLink;
  readonly addresses: readonly Ip[];
  /** MACs that are ours, besides the link's: never a conflict. */
  readonly ownMacs?: ReadonlySet<Mac> | undefined;
  /** Numbers in [0, 1), which spread the probes. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/**
 * Resolves at the first conflict, or with undefined after silence. The time begins when the link has a carrier.
 * Rejects with DetectionError when the link cannot be judged: it is or goes down or away or loses its carrier; and when aborted.
 */
export async function detectConflict(question: ConflictProbe): Promise<Conflict | undefined> {
  const { link, addresses, ownMacs = [], random, signal } = question;
  if (addresses.length === 0) return undefined;
  const nonces = new Set<string>();
  const asked = { candidates: addresses, gateways: [], ownMacs: new Set([link.mac, ...ownMacs]), nonces };
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
      const verdict = classifyPacket(packet, asked);
      return verdict?.kind === "conflict" ? verdict.conflict : undefined;
    },
    onTimeout: () => undefined,
  });
}
