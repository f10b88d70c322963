/** One request and the head of its answer, with credentials and headers. */
import type { Dispatcher } from "undici";
import { untilAborted } from "../../lib/abort.ts";
import type { Access, Credentials } from "../credentials.ts";
import type { KubeCall } from "../kube-api.ts";

/**
 * Longest time that the head of a watch's answer may take: milliseconds. A connection on which the server does not
 * answer at all is closed after twice that time, with all its watches.
 */
const WATCH_HEAD_MS = 5_000;

/** Time for which a watch may be silent: milliseconds. The server sends a bookmark about every minute. */
const WATCH_SILENCE_MS = 150_000;

export interface Answer {
  readonly status: number;
  /** The header as it came. */
  readonly retryAfter: string | undefined;
  /** Must be read or dumped; otherwise its connection is lost. */
  readonly body: Dispatcher.ResponseData["body"];
}

export interface Sender {
  /** Of no other sender: their connections are its own. */
  readonly credentials: Pick<Credentials, "endpoint" | "current" | "refresh">;
  readonly userAgent: string;
}

/** With `watch: true` in its query it goes over the connections for watches. */
export type Request = Pick<KubeCall, "method" | "path" | "query" | "body" | "contentType" | "accept">;

/** {@link send} of one sender. */
export type Send = (request: Request, signal: AbortSignal) => Promise<Answer>;

/**
 * After a 401 it reads the credentials again, and sends once more if they have changed. Rejects with the failure, or
 * with the signal's reason.
 */
export async function send({ credentials, userAgent }: Sender, request: Request, signal: AbortSignal): Promise<Answer> {
  const sent = { ...request, userAgent };
  const access = await untilAborted(credentials.current(), signal);
  const answer = await sendAs(access, sent, signal);
  if (answer.status !== 401) return answer;
  const renewed = await untilAborted(credentials.refresh(access), signal);
  if (renewed === access) return answer;
  await answer.body.dump();
  return sendAs(renewed, sent, signal);
}

async function sendAs(access: Access, request: Request & Pick<Sender, "userAgent">, signal: AbortSignal) {
  const { origin, basePath, calls, watches } = access.endpoint;
  const { method, path, query, body, accept = "application/json", userAgent } = request;
  const { contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json" } = request;
  const isWatch = query?.watch === true;
  const answer = await (isWatch ? watches : calls).request({
    origin,
    path: `${basePath}${path}${formatQuery(query)}`,
    method,
    headers: {
      ...access.headers,
      accept,
      "user-agent": userAgent,
      ...(body === undefined ? {} : { "content-type": contentType }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    // Otherwise a DELETE with a body, which has the preconditions, would close its connection.
    reset: false,
    // Calls have their deadline in the signal. For watches, these limits make undici ping a silent HTTP/2 connection.
    headersTimeout: isWatch ? WATCH_HEAD_MS : 0,
    bodyTimeout: isWatch ? WATCH_SILENCE_MS : 0,
    signal,
  });
  const [retryAfter] = [answer.headers["retry-after"]].flat();
  return { status: answer.statusCode, retryAfter, body: answer.body };
}

function formatQuery(query: KubeCall["query"]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters}`;
}
