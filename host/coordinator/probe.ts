/**
 * The packets of detection and their times, and the interpretation of answers; without sockets, clock or randomness.
 *
 * | Packet                                            | IPv4 (RFC 5227 §2.1.1)      | IPv6 (RFC 4862 §5.4, RFC 7527)  |
 * |---------------------------------------------------|-----------------------------|---------------------------------|
 * | another machine has the candidate                 | sender is it, any operation | advertisement for it            |
 * | another machine probes for it                     | request for it from 0.0.0.0 | solicitation for it from `::`   |
 * | our frame, echoed by a bridge, a bond or macvlan  | sender MAC is ours          | MAC is ours, or the nonce       |
 *
 * Links of kind ipvlan share their parent's MAC: a neighbour on the same parent looks like an echo here, and
 * conflicts with it are left to the registry. The kernel passes an ipvlan link only unicast ARP for one of its own
 * addresses, so the answer to a probe from 0.0.0.0 arrives at the parent: such a pod is probed on the parent link
 * (host/agent/detection/links.ts).
 *
 * A switch that prunes multicast (MLD snooping) may withhold others' solicitations from us, since we join groups
 * without a report, which would be one more frame. Answers of owners go to all nodes and are never pruned.
 */
import { ConfigError } from "../config/config-error.ts";
import type { DetectOptions } from "../config/coordinator-settings.ts";
import { formatDuration } from "../config/fields/duration.ts";
import type { NeighbourPacket } from "../kernel/packet/segment.ts";
import { equalIp, type Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";

/** Number of probes for one address, spread over the window of conflict detection (RFC 5227: PROBE_NUM). */
export const PROBE_COUNT = 3;

/** Latest random start of the first probe or request, which spreads those of simultaneous pods: milliseconds. */
export const FIRST_PROBE_JITTER_MS = 2;

/**
 * Longest detection, of a conflict or of a gateway, that may be configured: milliseconds. Twice this time and
 * CARRIER_WAIT_MS must be below the shim's limit of an ADD, ADD_LIMIT_MS: on an ipvlan, gateways are asked after the
 * address. @limit
 */
export const MAX_DETECTION_MS = 35_000;

/** A link in a pod, or a parent link on the node. */
export interface ProbeLink {
  readonly netnsPath: string;
  readonly index: number;
  readonly name: string;
  readonly mac: Mac;
  /** The kernel's name of the kind; undefined if it was not read, and for physical devices. */
  readonly kind?: string | undefined;
}

/** `mac` is undefined if the rival's MAC is not known. */
export interface Conflict {
  readonly ip: Ip;
  readonly mac: Mac | undefined;
}

export interface ProbeContext {
  /** Addresses that no other machine should have. */
  readonly candidates: readonly Ip[];
  /** Addresses that a machine should answer for. */
  readonly gateways: readonly Ip[];
  readonly ownMacs: ReadonlySet<Mac>;
  /** Nonces of our solicitations, in hexadecimal. */
  readonly nonces: ReadonlySet<string>;
}

export type PacketClass =
  | { readonly kind: "ours" }
  | { readonly kind: "conflict"; readonly conflict: Conflict }
  | { readonly kind: "gateway"; readonly gateway: Ip };

/** A packet's claim: the machine `from` has the address `has`, or probes for `wants`. */
interface Claim {
  readonly from: Mac;
  readonly has?: Ip;
  readonly wants?: Ip;
  readonly nonce?: string | undefined;
}

const ARP_REQUEST = 1;
const ARP_REPLY = 2;

function claimOf(packet: NeighbourPacket): Claim | undefined {
  if (!("kind" in packet)) {
    const { operation, senderMac: from, senderIp, targetIp } = packet;
    if (operation !== ARP_REQUEST && operation !== ARP_REPLY) return undefined;
    if (senderIp.value !== 0n) return { from, has: senderIp };
    return operation === ARP_REQUEST ? { from, wants: targetIp } : undefined;
  }
  const { source, target, sourceMac, linkLayer } = packet;
  if (packet.kind === "advertisement") return { from: linkLayer ?? sourceMac, has: target };
  return source.value === 0n ? { from: sourceMac, wants: target, nonce: packet.nonce?.toHex() } : undefined;
}

function find(list: readonly Ip[], ip: Ip | undefined): Ip | undefined {
  return ip && list.find((other) => equalIp(other, ip));
}

/** Returns the meaning of a packet; undefined for an ordinary request, or an address that is not probed. */
export function classifyPacket(packet: NeighbourPacket, context: ProbeContext): PacketClass | undefined {
  const claim = claimOf(packet);
  if (claim === undefined) return undefined;
  const { from: mac, has, wants, nonce } = claim;
  const candidate = find(context.candidates, has ?? wants);
  const gateway = find(context.gateways, has);
  if (candidate === undefined && gateway === undefined) return undefined;
  const isOurs = context.ownMacs.has(mac) || (nonce !== undefined && context.nonces.has(nonce));
  if (isOurs) return { kind: "ours" };
  if (candidate !== undefined) return { kind: "conflict", conflict: { ip: candidate, mac } };
  return gateway && { kind: "gateway", gateway };
}

/** When to send, in milliseconds from the start, ascending; and when the session ends. */
export interface Schedule {
  readonly sendAtMs: readonly number[];
  readonly endAtMs: number;
}

/**
 * Returns the schedule of probes over a window: the first within FIRST_PROBE_JITTER_MS, so that a conflict is found
 * early, in whole milliseconds, since a timer rounds up; the others each at a random moment around its share of the
 * window, ± a quarter of it; then at least a quarter of the window to listen. `random` returns numbers in [0, 1).
 *
 *     window   ├─────────────────────────────────────────────────────────────────────────┤
 *     probes   1            ╰─────── 2 ───────╯       ╰─────── 3 ───────╯       listening
 */
function probeSchedule(windowMs: number, random: () => number): Schedule {
  const share = windowMs / PROBE_COUNT;
  const jitterMs = Math.min(FIRST_PROBE_JITTER_MS, Math.floor(share / 2));
  const sendAtMs = Array.from({ length: PROBE_COUNT }, (_, index) =>
    index === 0 ? Math.floor(random() * (jitterMs + 1)) : share * (index - 0.25 + random() * 0.5),
  );
  return { sendAtMs, endAtMs: windowMs };
}

/** Requests at regular intervals. */
interface RequestPace {
  readonly retry: number;
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** When to probe for a conflict: spread over a window, or at a pace. */
export type ConflictTiming = { readonly windowMs: number } | (RequestPace & { readonly windowMs?: undefined });

/** Returns the timing of the settings: the pace if there is no window. */
export function conflictTiming({ windowMs, retry, intervalMs, timeoutMs }: DetectOptions): ConflictTiming {
  return windowMs === undefined ? { retry, intervalMs, timeoutMs } : { windowMs };
}

export function conflictSchedule(timing: ConflictTiming, random: () => number): Schedule {
  return timing.windowMs === undefined ? requestSchedule(timing, random) : probeSchedule(timing.windowMs, random);
}

/**
 * Throws ConfigError for a detection that takes too long: the runtime would abort every ADD before its end. Called when
 * the settings are used, because each may come from another source.
 */
export function requireShortDetection(timing: ConflictTiming): void {
  const { totalMs, got } = timing.windowMs === undefined ? describePace(timing) : describeWindow(timing.windowMs);
  if (totalMs <= MAX_DETECTION_MS) return;
  const wanted = `at most ${formatDuration(MAX_DETECTION_MS)} in all`;
  throw new ConfigError("coordinator configuration", [{ path: "detectOptions", got, wanted }]);
}

function describeWindow(windowMs: number): { totalMs: number; got: string } {
  return { totalMs: windowMs, got: `a window of ${formatDuration(windowMs)}` };
}

function describePace({ retry, intervalMs, timeoutMs }: RequestPace): { totalMs: number; got: string } {
  const totalMs = (retry - 1) * intervalMs + timeoutMs;
  const [interval, timeout, all] = [intervalMs, timeoutMs, totalMs].map(formatDuration);
  return { totalMs, got: `${retry} requests, ${interval} apart, and ${timeout} for the last answer: ${all}` };
}

/** Returns a schedule of `retry` requests `intervalMs` apart, the last of which has `timeoutMs` to be answered. */
export function requestSchedule({ retry, intervalMs, timeoutMs }: RequestPace, random: () => number): Schedule {
  const first = random() * FIRST_PROBE_JITTER_MS;
  const sendAtMs = Array.from({ length: retry }, (_, index) => first + index * intervalMs);
  return { sendAtMs, endAtMs: first + (retry - 1) * intervalMs + timeoutMs };
}
