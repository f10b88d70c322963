/**
 * One probe session on a link: waits for the carrier, sends frames on schedule, and listens until a packet decides the
 * outcome or the time is over. Its sockets and timers live as long as the call.
 * Effects: frames on the link; sockets, timers.
 */
import { EAGAIN, ENETDOWN, ENOBUFS, ENODEV } from "../kernel/errno.ts";
import { type LinkState, watchLink } from "../kernel/netlink/link-watch.ts";
import { NetnsError } from "../kernel/netns.ts";
import { type NeighbourPacket, openSegment, type Segment } from "../kernel/packet/segment.ts";
import { PacketError } from "../kernel/packet/socket.ts";
import { messageOf } from "../lib/describe.ts";
import type { Family, Ip } from "../net/ip.ts";
import { DetectionError, type DetectionReason } from "./detection-error.ts";
import type { ProbeLink, Schedule } from "./probe.ts";

/**
 * Time for which detection waits for a link's carrier before it fails: milliseconds. A new bond is slow.
 * @limit
 */
export const CARRIER_WAIT_MS = 10_000;

export interface ProbeFrame {
  readonly family: Family;
  readonly frame: Uint8Array;
}

interface ProbeSession<T> {
  readonly link: ProbeLink;
  /** Only packets about these addresses are received. */
  readonly addresses: readonly Ip[];
  /** Starts when the link has a carrier. */
  readonly schedule: Schedule;
  /** Whether a loss of the carrier makes the result unreliable and so ends the session with an error. */
  readonly needsCarrier: boolean;
  readonly signal: AbortSignal;
  /** Returns the frames to send; called for each time of the schedule. */
  frames(): readonly ProbeFrame[];
  /** Receives a packet. A value ends the session. */
  onPacket(packet: NeighbourPacket): T | undefined;
  /** Returns the result if no packet has decided it. */
  onTimeout(): T;
}

/** ENXIO: the socket's link was deleted. */
const ENXIO = 6;
const ABSENT: readonly number[] = [ENXIO, ENODEV, ENETDOWN];

function isAbsence(error: unknown): boolean {
  return error instanceof NetnsError || (error instanceof PacketError && ABSENT.includes(error.errno));
}

const UNUSABLE: Readonly<Record<Exclude<LinkState, "ready">, readonly [DetectionReason, string]>> = {
  absent: ["link", "it does not exist any more"],
  down: ["link", "it is down"],
  noArp: ["kind", "it has no ARP (NOARP), as ipvlan in the modes l3 and l3s"],
  noCarrier: ["link", "it has lost its carrier"],
};

/** The kind of a tap (drivers/net/tun.c): its carrier is the program that opens it, which a pod starts later. */
const TAP = "tun";

/** The outcome of a session. The first call of `resolve`, `fail` or `crash` decides it; later ones are ignored. */
interface Outcome<T> extends Disposable {
  readonly promise: Promise<T>;
  isOver(): boolean;
  resolve(value: T): void;
  fail(reason: DetectionReason, what: string, cause?: unknown): void;
  /** Fails with an error that a system call threw. */
  crash(error: unknown): void;
  /** Calls `work` and fails with its error. */
  guard(work: () => void): void;
}

/** Opens an outcome that fails when the signal aborts. */
function openOutcome<T>(link: ProbeLink, signal: AbortSignal): Outcome<T> {
  const deferred = Promise.withResolvers<T>();
  const { promise } = deferred;
  promise.catch(() => {}); // it may fail before it is awaited
  let over = false;
  const resolve = (value: T): void => {
    over = true;
    deferred.resolve(value);
  };
  const fail = (reason: DetectionReason, what: string, cause?: unknown): void => {
    over = true;
    deferred.reject(new DetectionError(reason, link.name, what, cause));
  };
  const crash = (error: unknown): void => fail(isAbsence(error) ? "link" : "kernel", messageOf(error), error);
  const abort = (): void => fail("aborted", "the request was aborted", signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  const guard = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      crash(error);
    }
  };
  const isOver = () => over;
  const dispose = () => signal.removeEventListener("abort", abort);
  return { promise, isOver, resolve, fail, crash, guard, [Symbol.dispose]: dispose };
}

interface CarrierWait {
  readonly link: ProbeLink;
  /** Whether losing the carrier after `start` is a failure. */
  readonly needsCarrier: boolean;
  /** Called once, possibly at once. */
  start(): void;
}

/** Watches the link until disposed of. Throws errors of system calls while it starts. */
function startAtCarrier<T>({ link, needsCarrier, start }: CarrierWait, outcome: Outcome<T>): Disposable {
  using opened = new DisposableStack();
  let started = false;
  const follow = (state: LinkState): void => {
    if (state === "ready") {
      if (!started) start();
      started = true;
    } else if (state === "noCarrier" && !started && link.kind === TAP) {
      outcome.fail("kind", "it is a tap, which has no carrier until a program opens it");
    } else if (state !== "noCarrier" || (started && needsCarrier)) {
      outcome.fail(...UNUSABLE[state]);
    }
  };
  const watch = opened.use(watchLink(link.netnsPath, link.index, { changed: follow, failure: outcome.crash }));
  const patience = setTimeout(() => {
    if (!started) outcome.fail("link", `it has had no carrier for ${CARRIER_WAIT_MS} ms`);
  }, CARRIER_WAIT_MS);
  opened.defer(() => clearTimeout(patience));
  follow(watch.read());
  return opened.move();
}

/** Resolves when the link has a carrier. Rejects as {@link runProbeSession} does. */
export async function waitForCarrier(link: ProbeLink, signal: AbortSignal): Promise<void> {
  using outcome = openOutcome<void>(link, signal);
  using opened = new DisposableStack();
  const start = () => outcome.resolve();
  outcome.guard(() => void opened.use(startAtCarrier({ link, needsCarrier: true, start }, outcome)));
  await outcome.promise;
}

/**
 * Calls the steps, none before its time. After a late step, at least half of the planned interval passes before the
 * next, so that its frames can still be answered.
 */
function runSteps(timesMs: readonly number[], step: (index: number) => void): Disposable {
  let timer: NodeJS.Timeout | undefined;
  const startMs = performance.now();
  const next = (index: number, earliestMs: number): void => {
    const timeMs = timesMs[index];
    if (timeMs === undefined) return;
    const dueMs = Math.max(startMs + timeMs, earliestMs);
    const arrive = (): void => {
      const nowMs = performance.now();
      if (nowMs < dueMs) {
        timer = setTimeout(arrive, Math.ceil(dueMs - nowMs)); // a timer may fire early by less than a millisecond
        return;
      }
      step(index);
      next(index + 1, nowMs + ((timesMs[index + 1] ?? timeMs) - timeMs) / 2);
    };
    arrive();
  };
  next(0, startMs);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Returns whether the frame was sent. A full queue is treated like a frame lost on the wire. */
function trySend(segment: Segment, { family, frame }: ProbeFrame): boolean {
  try {
    segment.send(family, frame);
    return true;
  } catch (error) {
    if (error instanceof PacketError && (error.errno === ENOBUFS || error.errno === EAGAIN)) return false;
    throw error;
  }
}

/** Runs the schedule on an open segment: each step sends frames, and the last one ends the session. */
function runSchedule<T>(
  { schedule, frames, onTimeout }: ProbeSession<T>,
  segment: Segment,
  outcome: Outcome<T>,
): Disposable {
  const { sendAtMs, endAtMs } = schedule;
  let sent = 0;
  const step = (index: number): void => {
    segment.drain(); // an answer that arrived in time counts even if this process reads it late
    if (outcome.isOver()) return;
    if (index < sendAtMs.length) {
      sent += frames().filter((question) => trySend(segment, question)).length;
      return;
    }
    if (sent === 0) outcome.fail("kernel", "no frame could be sent because the queue is full");
    else outcome.resolve(onTimeout());
  };
  return runSteps([...sendAtMs, endAtMs], (index) => outcome.guard(() => step(index)));
}

/**
 * Resolves with the value that ends the session. Rejects with {@link DetectionError} if the link is down or deleted,
 * gets no carrier within CARRIER_WAIT_MS, nothing could be sent, or the signal aborts.
 */
export async function runProbeSession<T>(session: ProbeSession<T>): Promise<T> {
  const { link, addresses, needsCarrier, signal } = session;
  using outcome = openOutcome<T>(link, signal);
  using opened = new DisposableStack();
  outcome.guard(() => {
    const listener = {
      packet: (packet: NeighbourPacket) => {
        const value = session.onPacket(packet);
        if (value !== undefined) outcome.resolve(value);
      },
      failure: outcome.crash,
    };
    const segment = opened.use(openSegment({ netnsPath: link.netnsPath, link: link.index, addresses }, listener));
    const start = () => void opened.use(runSchedule(session, segment, outcome));
    opened.use(startAtCarrier({ link, needsCarrier, start }, outcome));
  });
  return await outcome.promise;
}
