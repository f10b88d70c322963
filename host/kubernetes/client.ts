/**
 * The API server over the network: calls, which are queued and retried, and watches.
 * Effects: TCP connections and timers, none before the first call.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "undici";
import { errnoOf } from "../lib/describe.ts";
import {
  apiErrorOf,
  decodeEvent,
  decodeObject,
  isBlank,
  isSuccess,
  Lines,
  MalformedError,
  readRefusal,
} from "./http/answers.ts";
import { closeEndpoint, MAX_ANSWER_BYTES } from "./http/endpoint.ts";
import { type Send, type Sender, send } from "./http/request.ts";
import {
  BACKGROUND_ATTEMPT_MS,
  type Deadline,
  describeFailure,
  type Failure,
  LARGE_EVENT_PAUSE,
  Lanes,
  MAX_ATTEMPT_MS,
  mayPass,
  nextAttemptMs,
  openDeadline,
  POD_ATTEMPT_MS,
  parseRetryAfter,
  pause,
  pauseMs,
} from "./http/retry.ts";
import { ApiError, ApiUnavailable, type KubeApi, type KubeCall, type KubeObject, type KubeWatch } from "./kube-api.ts";

/** Time for which a read is retried if its caller sets no limit: milliseconds. */
const READ_PATIENCE_MS = 15_000;

/**
 * The same of a write, which an admission webhook may keep for 30 seconds: milliseconds. After attempts of 10 and 20
 * seconds there is time for a whole one.
 */
const WRITE_PATIENCE_MS = 70_000;

/**
 * Time for which writes count as slow after one that exceeded a first attempt's time: milliseconds. All attempts may
 * then take as long as they need.
 */
const SLOW_WRITES_MS = 60_000;

/**
 * Shortest event after which a watch pauses: bytes. Decoding one of a megabyte takes some ten milliseconds, and so
 * does collecting the garbage.
 */
export const LARGE_EVENT = 65_536;

interface KubeClientOptions extends Sender {
  /** Returns a number in [0, 1) that spreads the pauses. */
  readonly random: () => number;
  /** Default: over the network. */
  readonly send?: Send;
}

export interface KubeStats {
  /** Calls that ended with ApiUnavailable since the client was opened. */
  readonly unavailable: number;
  /** Connections opened. */
  readonly connections: number;
  /** At this moment. */
  readonly calling: number;
  readonly waiting: number;
  readonly watching: number;
}

/** Requests of one method with one end. */
export interface ApiRequestCount {
  /** `GET`, …; `WATCH` for watches. */
  readonly verb: string;
  /** HTTP status; "error" if there was no answer. */
  readonly code: number | "error";
  readonly count: number;
}

export function openKubeClient(options: KubeClientOptions): KubeClient {
  return new KubeClient(options);
}

/** The end of an unsuccessful attempt: the facts that decide about a retry, and the error. */
class AttemptFailed extends Error {
  override readonly name = "AttemptFailed";
  readonly failure: Failure;

  constructor(failure: Failure, cause: unknown) {
    super("An attempt failed", { cause });
    this.failure = failure;
  }
}

/** Shared by the attempts of one call. */
interface CallContext {
  readonly operation: string;
  readonly patience: Deadline;
  /** Longest time of the first attempt: milliseconds. */
  readonly attemptMs: number;
  readonly isOnce: boolean;
}

export class KubeClient implements KubeApi {
  readonly #options: KubeClientOptions;
  readonly #send: Send;
  readonly #lanes = new Lanes();
  readonly #closing = new AbortController();
  readonly #counts = { unavailable: 0, watching: 0 };
  readonly #requests = new RequestCounts();
  /** Calls that were answered, with whatever status. */
  #answers = 0;
  /** Until when writes are known to be slow, by the monotonic clock: milliseconds. */
  #slowUntilMs = 0;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#send = options.send ?? ((request, signal) => send(options, request, signal));
  }

  get stats(): KubeStats {
    const { connections } = this.#options.credentials.endpoint?.opened ?? { connections: 0 };
    return { ...this.#counts, connections, calling: this.#lanes.underWay, waiting: this.#lanes.waiting };
  }

  get requests(): readonly ApiRequestCount[] {
    return this.#requests.all;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    const { method, path, lane, signal } = call;
    const { patienceMs = method === "GET" ? READ_PATIENCE_MS : WRITE_PATIENCE_MS } = call;
    const { attemptMs: wantedMs = lane === "pod" ? POD_ATTEMPT_MS : BACKGROUND_ATTEMPT_MS } = call;
    const isSlow = method !== "GET" && performance.now() < this.#slowUntilMs;
    const attemptMs = isSlow ? Math.max(wantedMs, MAX_ATTEMPT_MS) : wantedMs;
    const isOnce = patienceMs === 0;
    const parents = [...(signal === undefined ? [] : [signal]), this.#closing.signal];
    const patience = openDeadline(isOnce ? attemptMs : patienceMs, parents);
    try {
      return await this.#try(call, { operation: `${method} ${path}`, patience, attemptMs, isOnce });
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ApiUnavailable) this.#counts.unavailable++;
      throw error;
    } finally {
      patience.end();
    }
  }

  /** Retries until there is a final answer or the patience is over. */
  async #try(call: KubeCall, course: CallContext): Promise<KubeObject> {
    const { operation, patience, isOnce } = course;
    let { attemptMs } = course;
    let last: unknown;
    let answer: ApiError | undefined;
    for (let attempt = 0; ; attempt++) {
      const answersBefore = this.#answers;
      try {
        return await this.#attempt(call, course, attemptMs);
      } catch (error) {
        if (!(error instanceof AttemptFailed)) throw unavailable(operation, attempt, last ?? error, answer);
        const { failure } = error;
        last = error.cause;
        if (last instanceof ApiError) answer = last;
        if (failure.kind === "no answer")
          attemptMs = nextAttemptMs(attemptMs, failure.code, this.#answers > answersBefore);
        if (!mayPass(failure) && last instanceof ApiError) throw last;
        // A 5xx may be a proxy's, or say that etcd has not answered in time.
        if (failure.kind === "no answer" || failure.status !== 429) call.onUnanswered?.();
        if (last instanceof ApiError && call.isFinal?.(last) === true) throw last;
        if (!mayPass(failure) || isOnce) throw unavailable(operation, attempt + 1, last, answer);
        const retryAfterMs = failure.kind === "answer" ? parseRetryAfter(failure.retryAfter, Date.now()) : undefined;
        await pause(pauseMs(attempt, this.#options.random(), retryAfterMs), patience.signal).catch(() => {
          throw unavailable(operation, attempt + 1, last, answer);
        });
      }
    }
  }

  /** Rejects with AttemptFailed, or with the patience's reason. */
  async #attempt(call: KubeCall, course: CallContext, attemptMs: number): Promise<KubeObject> {
    const { operation, patience } = course;
    const { lane = "background" } = call;
    await this.#lanes.enter(lane, patience.signal);
    const limit = openDeadline(attemptMs, [patience.signal]);
    const startedMs = performance.now();
    let code: ApiRequestCount["code"] = "error";
    try {
      const { status, retryAfter, body } = await this.#send(call, limit.signal);
      const bytes = Buffer.from(await body.arrayBuffer());
      code = status;
      this.#answers++;
      if (call.method !== "GET" && performance.now() - startedMs > POD_ATTEMPT_MS)
        this.#slowUntilMs = performance.now() + SLOW_WRITES_MS;
      call.onBytes?.(bytes.length);
      if (bytes.length > (call.maxBytes ?? MAX_ANSWER_BYTES)) throw new errors.ResponseExceededMaxSizeError();
      const text = bytes.toString("utf8");
      if (isSuccess(status)) return decodeObject(text);
      throw new AttemptFailed({ kind: "answer", status, retryAfter }, apiErrorOf(operation, status, text));
    } catch (error) {
      if (error instanceof AttemptFailed) throw error;
      const cause = limit.signal.aborted ? limit.signal.reason : error;
      throw new AttemptFailed({ kind: "no answer", code: errnoOf(cause) ?? "" }, cause);
    } finally {
      limit.end();
      if (code !== "error" || call.signal?.aborted !== true) this.#requests.add(call.method, code);
      this.#lanes.leave(lane);
    }
  }

  async watch(watch: KubeWatch): Promise<void> {
    this.#counts.watching++;
    let isOpen = false;
    const onOpen = (): void => {
      isOpen = true;
      this.#requests.add("WATCH", 200);
      watch.onOpen?.();
    };
    try {
      await runWatch(this.#send, { ...watch, onOpen }, this.#closing.signal);
    } catch (error) {
      if (!isOpen && !watch.signal.aborted) {
        this.#requests.add("WATCH", error instanceof ApiError ? error.status : "error");
      }
      throw error;
    } finally {
      this.#counts.watching--;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("The client was closed"));
    await closeEndpoint(this.#options.credentials.endpoint);
  }
}

/** Behaves as `KubeApi.watch`; `closing` ends it like a broken connection. */
async function runWatch(send: Send, watch: KubeWatch, closing: AbortSignal): Promise<void> {
  const operation = `WATCH ${watch.path}`;
  const lines = new Lines();
  try {
    // Errors of `onEvent` are the caller's and pass unchanged. Leaving the loop ends the stream.
    for await (const piece of receive(send, watch, closing)) {
      watch.onBytes?.(piece.length);
      for (const line of lines.push(piece)) {
        const startedMs = performance.now();
        const event = decodeEvent(operation, line.toString("utf8"));
        // An earlier event of the same piece may have aborted the watch.
        watch.signal.throwIfAborted();
        watch.onEvent(event);
        if (line.length >= LARGE_EVENT) await sleep(LARGE_EVENT_PAUSE * (performance.now() - startedMs));
      }
    }
    if (!isBlank(lines.rest())) throw new MalformedError("ended in the middle of an event");
  } catch (error) {
    throw error instanceof MalformedError ? new ApiUnavailable(operation, `${operation}: ${error.message}`) : error;
  }
}

/** Opens the watch. Returns the bytes that it receives. */
async function* receive(send: Send, watch: KubeWatch, closing: AbortSignal): AsyncGenerator<Buffer> {
  const { path, accept, signal } = watch;
  const operation = `WATCH ${path}`;
  const life = openDeadline(BACKGROUND_ATTEMPT_MS, [signal, closing]);
  try {
    const query = { ...watch.query, watch: true };
    const { status, body } = await send({ method: "GET", path, query, accept }, life.signal);
    if (!isSuccess(status)) throw apiErrorOf(operation, status, await readRefusal(body));
    // The head must arrive in time; the rest may take hours.
    life.end();
    watch.onOpen?.();
    yield* body;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError) throw error;
    throw new ApiUnavailable(operation, `${operation} broke: ${describeFailure(error)}`, { cause: error });
  } finally {
    life.end();
  }
}

/** As many entries as there are pairs of method and status. */
class RequestCounts {
  readonly #counts = new Map<string, Map<ApiRequestCount["code"], number>>();

  get all(): readonly ApiRequestCount[] {
    return [...this.#counts].flatMap(([verb, codes]) => [...codes].map(([code, count]) => ({ verb, code, count })));
  }

  add(verb: string, code: ApiRequestCount["code"]): void {
    const codes = this.#counts.getOrInsertComputed(verb, () => new Map());
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
}

/** `answer`: the server's last one, which says more than that the last attempt had none. */
function unavailable(operation: string, attempts: number, cause: unknown, answer?: ApiError): ApiUnavailable {
  const tried = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  const before = answer === undefined || answer === cause ? "" : `; before that, ${answer.message}`;
  const message = `${operation} failed after ${tried}: ${describeFailure(cause)}${before}`;
  return new ApiUnavailable(operation, message, { cause });
}
