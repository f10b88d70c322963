/**
 * One inquiry on a link: wait for the carrier, ask on schedule, listen meanwhile and after, and end with the first answer that ends it
 * or with silence. All its sockets and timers live as long as the call.
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

/** How long detection waits for a link's carrier before it says that it cannot judge: milliseconds. A new bond takes its time. @limit */
export const CARRIER_WAIT_MS = 10_000;

export interface ProbeFrame {
  readonly family: Family;
  readonly frame: Uint8Array;
}

export interface ProbeSession<T> {
  readonly link: ProbeLink;
  /** Packets about these are heard. */
  readonly addresses: readonly Ip[];
  /** From the carrier on. */
  readonly schedule: Schedule;
  /** Whether silence means nothing when the carrier was gone for a while. */
  readonly needsCarrier: boolean;
  readonly signal: AbortSignal;
  /** What to send; called once for each time of the schedule. */
  frames(): readonly ProbeFrame[];
  /** A value ends the inquiry. */
  onPacket(packet: NeighbourPacket): T | undefined;
  /** What it means that nothing has ended it. */
  onTimeout(): T;
}

/** ENXIO: the socket's link was deleted. */
const ENXIO = 6;
const ABSENT: readonly number[] = [ENXIO, ENODEV, ENETDOWN];

function isAbsence(error: unknown): boolean {
  return error instanceof NetnsError || (error instanceof PacketError && ABSENT.includes(error.errno));
}

const UNUSABLE: Readonly<Record<Exclude<LinkState, "ready">, string>> = {
  absent: "it is gone",
  down: "it is down",
  noArp: "it is of a kind that asks nobody for addresses (NOARP)",
  noCarrier: "it has lost its carrier",
};

/** One outcome that many sides may bring about; after the first, the others are nothing. */
interface Outcome<T> extends Disposable {
  readonly promise: Promise<T>;
  isOver(): boolean;
  resolve(value: T): void;
  fail(reason: DetectionReason, what: string, cause?: unknown): void;
  /** What a system call threw. */
  crash(error: unknown): void;
  /** Calls `work`; what it throws is the outcome. */
  guard(work: () => void): void;
}

/** An outcome that is a failure once the signal is aborted. */
function openOutcome<T>(link: ProbeLink, signal: AbortSignal): Outcome<T> {
  const settling = Promise.withResolvers<T>();
  const { promise } = settling;
  promise.catch(() => {}); // it may fail before anybody waits for it
  let over = false;
  const resolve = (value: T): void => {
    over = true;
    settling.resolve(value);
  };
  const fail = (reason: DetectionReason, what: string, cause?: unknown): void => {
    over = true;
    settling.reject(new DetectionError(reason, link.name, what, cause));
  };
  const crash = (error: unknown): void => fail(isAbsence(error) ? "link" : "kernel", messageOf(error), error);
  const abort = (): void => fail("aborted", "the request was given up", signal.reason);
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
  /** Whether a carrier that goes after `start` is a failure. */
  readonly needsCarrier: boolean;
  /** Called once, perhaps at once. */
  start(): void;
}

/** Watches the link until it is disposed of. Throws what system calls throw while it begins. */
function startAtCarrier<T>({ link, needsCarrier, start }: CarrierWait, ending: Outcome<T>): Disposable {
  using opened = new DisposableStack();
  let started = false;
  const follow = (state: LinkState): void => {
    if (state === "ready") {
      if (!started) start();
      started = true;
    } else if (state !== "noCarrier" || (started && needsCarrier)) {
      ending.fail("link", UNUSABLE[state]);
    }
  };
  const watch = opened.use(watchLink(link.netnsPath, link.index, { changed: follow, failure: ending.crash }));
  const patience = setTimeout(() => {
    if (!started) ending.fail("link", `it has had no carrier for ${CARRIER_WAIT_MS} ms`);
  }, CARRIER_WAIT_MS);
  opened.defer(() => clearTimeout(patience));
  follow(watch.read());
  return opened.move();
}

/** Resolves once frames can pass. Rejects like {@link runProbeSession}. */
export async function waitForCarrier(link: ProbeLink, signal: AbortSignal): Promise<void> {
  using ending = openOutcome<void>(link, signal);
  using opened = new DisposableStack();
  const start = () => ending.resolve();
  ending.guard(() => void opened.use(startAtCarrier({ link, needsCarrier: true, start }, ending)));
  await ending.promise;
}

/**
 * Calls the steps, each not before its time. One that comes late leaves at least half of the planned time until the next, so that it can
 * still be answered.
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
        timer = setTimeout(arrive, Math.ceil(dueMs - nowMs)); // a timer may be early by less than a millisecond
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

/** Whether it went out. A full queue is like a frame lost on the wire. */
function trySend(segment: Segment, { family, frame }: ProbeFrame): boolean {
  try {
    segment.send(family, frame);
    return true;
  } catch (error) {
    if (error instanceof PacketError && (error.errno === ENOBUFS || error.errno === EAGAIN)) return false;
    throw error;
  }
}

/** The steps of the schedule on an open segment: each asks, the last judges the silence. */
function runSchedule<T>(
  { schedule, frames, onTimeout }: ProbeSession<T>,
  segment: Segment,
  ending: Outcome<T>,
): Disposable {
  const { sendAtMs, endAtMs } = schedule;
  let sent = 0;
  const step = (index: number): void => {
    segment.drain(); // an answer that came in time counts, even when this program was late to read it
    if (ending.isOver()) return;
    if (index < sendAtMs.length) {
      sent += frames().filter((question) => trySend(segment, question)).length;
      return;
    }
    if (sent === 0) ending.fail("kernel", "no frame could be sent, the queue is full");
    else ending.resolve(onTimeout());
  };
  return runSteps([...sendAtMs, endAtMs], (index) => ending.guard(() => step(index)));
}

/**
 * Resolves with what ends it. Rejects with {@link DetectionError} when the link is or goes down or away, when it has no carrier within
 * CARRIER_WAIT_MS, when nothing could be sent, and when aborted.
 */
export async function runProbeSession<T>(inquiry: ProbeSession<T>): Promise<T> {
  const { link, addresses, needsCarrier, signal } = inquiry;
  using ending = openOutcome<T>(link, signal);
  using opened = new DisposableStack();
  ending.guard(() => {
    const listener = {
      packet: (packet: NeighbourPacket) => {
        const value = inquiry.onPacket(packet);
        if (value !== undefined) ending.resolve(value);
      },
      failure: ending.crash,
    };
    const segment = opened.use(openSegment({ netnsPath: link.netnsPath, link: link.index, addresses }, listener));
    const start = () => void opened.use(runSchedule(inquiry, segment, ending));
    opened.use(startAtCarrier({ link, needsCarrier, start }, ending));
  });
  return await ending.promise;
}
