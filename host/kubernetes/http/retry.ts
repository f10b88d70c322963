/**
 * When a call is sent, and sent again: how many are under way at once, how long they may take, which failures are
 * transient, and how long to wait before the next attempt.
 * Effects: timers of `openDeadline` and `pause`.
 */
import { untilAborted } from "../../lib/abort.ts";
import type { Lane } from "../kube-api.ts";

/** Most connections for calls; watches have their own. Eight bring as much as a server of two processors creates. */
export const MAX_CONNECTIONS = 8;

/** Most calls for pods under way at once. One fewer than there are connections, so that other calls always progress. */
export const MAX_POD_CALLS = 7;

/** Most other calls under way at once. Half of the connections stay free for pods. */
export const MAX_BACKGROUND_CALLS = 4;

/** Longest first attempt of a call for a starting pod, and so the cost of a dead connection: milliseconds. */
export const POD_ATTEMPT_MS = 5_000;

/**
 * Longest time that the first attempt of a call in the background may take: milliseconds. A page of 500 objects from a
 * busy server takes longer than one object.
 */
export const BACKGROUND_ATTEMPT_MS = 10_000;

/**
 * Longest time that any attempt of a call may take, unless the call says otherwise: milliseconds. The API server waits
 * for an admission webhook for up to 30 seconds.
 */
export const MAX_ATTEMPT_MS = 35_000;

/** The first pause after a failure: milliseconds. Each pause is random, up to a limit that doubles. */
const BACK_OFF_FIRST_MS = 100;

/** Largest limit of a pause: milliseconds. After an outage, every call has been retried within this time. */
const BACK_OFF_MAX_MS = 1_500;

/** Longest wait that the server may request with `Retry-After`: milliseconds. */
const RETRY_AFTER_MAX_MS = 5_000;

export type Failure =
  /** An answer other than 2xx. `retryAfter` is the header as received. */
  | { readonly kind: "answer"; readonly status: number; readonly retryAfter?: string | undefined }
  /** No complete answer. `code` is the error's, such as `ECONNREFUSED`; "" if it has none. */
  | { readonly kind: "no answer"; readonly code: string };

/** Wrong certificates and malformed requests do not improve with time. */
const LASTING =
  /^(?:CERT_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|HPE_|UND_ERR_INVALID_ARG|UND_ERR_RES_EXCEEDED_MAX_SIZE|ERR_INVALID_)/;

/** Returns whether another attempt may succeed, whatever the method: see `KubeApi.call` about creating. */
export function mayPass(failure: Failure): boolean {
  if (failure.kind === "no answer") return !LASTING.test(failure.code);
  const { status } = failure;
  // 408 and 504: the server's own deadline. 501 and 505 concern the call itself.
  return status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/**
 * Returns the longest time of the attempt after one of at most `attemptMs`, which had no answer. If that was cut off,
 * its connection was dead or the server slow: the next one takes longer, and as long as it needs if the server has
 * answered other calls meanwhile (`isServerAlive`).
 */
export function nextAttemptMs(attemptMs: number, code: string, isServerAlive: boolean): number {
  if (code !== DEADLINE) return attemptMs;
  return isServerAlive ? Math.max(attemptMs, MAX_ATTEMPT_MS) : lengthen(attemptMs);
}

/** Returns the longest time of an attempt after so many that had no answer, the first of `attemptMs`. */
export function lengthen(attemptMs: number, times = 1): number {
  return Math.max(attemptMs, Math.min(MAX_ATTEMPT_MS, attemptMs * 2 ** times));
}

/**
 * Parses `Retry-After` (RFC 9110 §10.2.3): seconds or a date. Returns milliseconds, from 0 to `maxMs`; undefined for
 * anything else.
 */
export function parseRetryAfter(
  header: string | undefined,
  nowMs: number,
  maxMs = RETRY_AFTER_MAX_MS,
): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const waitMs = /^[0-9]{1,9}$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs;
  if (Number.isNaN(waitMs)) return undefined;
  return Math.min(Math.max(waitMs, 0), maxMs);
}

/** `Wed, 21 Oct 2026 07:28:00 GMT`; Date.parse accepts many other texts. */
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
}

/**
 * Pause after a large event or object, in multiples of the time that it took. A tenant with large objects
 * leaves two thirds of the event loop to the ADDs of others.
 */
export const LARGE_EVENT_PAUSE = 2;

/**
 * Returns the pause after failed attempt number `attempt`, counted from 0: a random part (`random` is in [0, 1)) of a
 * limit that doubles ("full jitter"), after the server's requested pause. Callers that failed together do not retry
 * together.
 */
export function pauseMs(attempt: number, random: number, retryAfterMs = 0): number {
  return retryAfterMs + Math.floor(random * Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS * 2 ** Math.min(attempt, 16)));
}

/** Returns the message with the error behind it, since `fetch failed` alone explains nothing. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  const behind = inner instanceof Error && inner.message !== "" ? inner.message : undefined;
  if (error.message === "") return behind ?? error.name;
  return behind === undefined || error.message.includes(behind) ? error.message : `${error.message} (${behind})`;
}

export interface Deadline {
  readonly signal: AbortSignal;
  /** Removes the timeout; the parents stay. */
  end(): void;
}

/** Code of the error when the time is up. */
const DEADLINE = "DEADLINE";

/** The reason of {@link Deadline.signal} after the timeout. */
class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  readonly code = DEADLINE;
}

/** Aborts with a parent's reason if that aborts first, or already has. */
export function openDeadline(timeoutMs: number, parents: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const error = () => new DeadlineError(`There was no answer within ${timeoutMs} ms`);
  const timer = setTimeout(() => controller.abort(error()), Math.max(timeoutMs, 0));
  return { signal: AbortSignal.any([...parents, controller.signal]), end: () => clearTimeout(timer) };
}

/** Resolves after the time; rejects with the signal's reason. */
export async function pause(timeoutMs: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  await untilAborted(promise, signal).finally(() => clearTimeout(timer));
}

const LIMITS: Readonly<Record<Lane, number>> = { pod: MAX_POD_CALLS, background: MAX_BACKGROUND_CALLS };
/** The order in which waiting calls are let through. */
const ORDER: readonly Lane[] = ["pod", "background"];

/** Limits how many calls are under way at once: calls for pods go first, and each lane in the order of arrival. */
export class Lanes {
  readonly #underWay: Record<Lane, number> = { pod: 0, background: 0 };
  /** Sets keep the order of arrival, and removal is cheap. */
  readonly #waiting: Readonly<Record<Lane, Set<() => void>>> = { pod: new Set(), background: new Set() };

  get underWay(): number {
    return this.#underWay.pod + this.#underWay.background;
  }

  get waiting(): number {
    return this.#waiting.pod.size + this.#waiting.background.size;
  }

  /** Resolves when the caller may send, and must {@link leave} afterwards; rejects with the signal's reason. */
  enter(lane: Lane, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#hasRoom(lane)) {
      this.#underWay[lane]++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting[lane].delete(go);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting[lane].add(go);
    });
  }

  leave(lane: Lane): void {
    this.#underWay[lane]--;
    for (const next of ORDER) {
      for (const go of this.#waiting[next]) {
        if (!this.#hasRoom(next)) break;
        this.#waiting[next].delete(go);
        this.#underWay[next]++;
        go();
      }
    }
  }

  #hasRoom(lane: Lane): boolean {
    return this.underWay < MAX_CONNECTIONS && this.#underWay[lane] < LIMITS[lane];
  }
}
