/**
 * One watch from its request to its end.
 * Effects: a request on the exchange.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pruneJson } from "../../lib/prune-json.ts";
import { BACKGROUND_ATTEMPT_MS } from "../client.ts";
import { ApiError, ApiUnavailable, type KubeWatch } from "../kube-api.ts";
import { openDeadline } from "./deadline.ts";
import type { Answer, Exchanges } from "./exchange.ts";
import { isBlank, Lines } from "./lines.ts";
import { describeFailure } from "./retry.ts";
import { apiErrorOf, decodeEvent, isSuccess, MalformedError } from "./status.ts";

/**
 * Shortest event of which only what is read is decoded, and after which a watch pauses: bytes. Decoding one of a megabyte takes milliseconds, and so does
 * collecting the garbage.
 */
export const LARGE_EVENT = 65_536;

/**
 * How long a watch pauses after a large event, in multiples of the time that the event took. A tenant with large objects leaves two thirds of the
 * event loop to the ADDs of others.
 */
export const LARGE_EVENT_PAUSE = 2;

/** Behaves as `KubeApi.watch`; `closing` ends it like a broken connection. */
export async function runWatch(exchange: Exchanges, watch: KubeWatch, closing: AbortSignal): Promise<void> {
  const operation = `WATCH ${watch.path}`;
  const life = openDeadline(BACKGROUND_ATTEMPT_MS, [watch.signal, closing]);
  try {
    const answer = await openWatch(exchange, watch, { operation, signal: life.signal });
    // The head must arrive in time; the rest may take hours.
    life.lift();
    watch.onOpen?.();
    await readEvents(answer, watch, operation);
  } finally {
    life.end();
  }
}

interface Place {
  readonly operation: string;
  readonly signal: AbortSignal;
}

async function openWatch(exchange: Exchanges, watch: KubeWatch, { operation, signal }: Place): Promise<Answer> {
  const query = { ...watch.query, watch: true };
  try {
    const { path, accept } = watch;
    const answer = await exchange.send("watches", { method: "GET", path, query, accept }, signal);
    if (!isSuccess(answer.status)) throw apiErrorOf(operation, answer.status, await answer.body.text());
    return answer;
  } catch (error) {
    throw failureOf(error, watch, operation);
  }
}

/** Errors of `onEvent` are the caller's and pass unchanged. Leaving the loop ends the stream. */
async function readEvents({ body }: Answer, watch: KubeWatch, operation: string): Promise<void> {
  const lines = new Lines();
  const pieces = piecesOf(body, watch, operation);
  for await (const piece of pieces) {
    watch.onBytes?.(piece.length);
    for (const line of linesOf(lines, piece, operation)) {
      const startedMs = performance.now();
      const event = eventOf(line, watch.reads, operation);
      // An earlier event of the same piece may have aborted the watch.
      watch.signal.throwIfAborted();
      watch.onEvent(event);
      if (line.length >= LARGE_EVENT) await sleep(LARGE_EVENT_PAUSE * (performance.now() - startedMs));
    }
  }
  if (!isBlank(lines.rest())) throw malformed(operation, "ended in the middle of an event");
}

async function* piecesOf(body: AsyncIterable<Buffer>, watch: KubeWatch, operation: string): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    throw failureOf(error, watch, operation);
  }
}

function linesOf(lines: Lines, piece: Buffer, operation: string): Buffer[] {
  try {
    return lines.push(piece);
  } catch (error) {
    throw malformed(operation, describeFailure(error));
  }
}

function eventOf(line: Buffer, reads: KubeWatch["reads"], operation: string) {
  const isPruned = reads !== undefined && line.length >= LARGE_EVENT;
  const pruned = isPruned ? pruneJson(line, { members: { type: "all", object: reads } }) : undefined;
  try {
    return decodeEvent(operation, (pruned ?? line).toString("utf8"));
  } catch (error) {
    throw error instanceof MalformedError ? malformed(operation, error.message) : error;
  }
}

function malformed(operation: string, what: string): ApiUnavailable {
  return new ApiUnavailable(operation, `${operation}: ${what}`);
}

function failureOf(error: unknown, watch: KubeWatch, operation: string): unknown {
  if (watch.signal.aborted) return watch.signal.reason;
  if (error instanceof ApiError) return error;
  return new ApiUnavailable(operation, `${operation} broke: ${describeFailure(error)}`, { cause: error });
}
