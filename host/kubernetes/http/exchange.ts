/**
 * One request and the head of its answer, with credentials and headers, over connections that are kept.
 * Effects: TCP connections.
 */
import type { Dispatcher } from "undici";
import { untilAborted } from "../../lib/abort.ts";
import type { Access, Credentials } from "../credentials.ts";
import type { KubeCall } from "../kube-api.ts";
import { openTransport, type Transport } from "./transport.ts";

/**
 * How long the head of a watch's answer may take: milliseconds. A connection on which the server does not answer at all is closed after twice that
 * time, with all its watches.
 */
const WATCH_HEAD_MS = 5_000;

/** How long a watch may be silent: milliseconds. The server sends a bookmark about every minute. */
const WATCH_SILENCE_MS = 150_000;

export interface Answer {
  readonly status: number;
  /** The header as it came. */
  readonly retryAfter: string | undefined;
  /** Must be read or dumped; otherwise its connection is lost. */
  readonly body: Dispatcher.ResponseData["body"];
}

export interface ExchangeOptions {
  readonly credentials: Credentials;
  readonly userAgent: string;
}

type Request = Pick<KubeCall, "method" | "path" | "query" | "body" | "contentType" | "accept">;

/** How requests reach the API server, as a port. */
export type Exchanges = Pick<Exchange, "connections" | "send" | "close">;

export class Exchange {
  readonly #options: ExchangeOptions;
  #transport: Transport | undefined;
  /** Including earlier ones, which may still carry a watch. */
  readonly #transports = new Set<Transport>();
  #connections = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /** Connections opened so far. */
  get connections(): number {
    return this.#connections;
  }

  /**
   * Sends over the connections for calls or those for watches. After a 401 it reads the credentials again, and sends once more if they have changed.
   * Rejects with the failure, or with the signal's reason.
   */
  async send(over: "calls" | "watches", request: Request, signal: AbortSignal): Promise<Answer> {
    const { credentials } = this.#options;
    const access = await untilAborted(credentials.current(), signal);
    const answer = await this.#sendAs(access, over, request, signal);
    if (answer.status !== 401) return answer;
    const renewed = await untilAborted(credentials.refresh(access), signal);
    if (renewed === access) return answer;
    await answer.body.dump();
    return this.#sendAs(renewed, over, request, signal);
  }

  async #sendAs(access: Access, over: "calls" | "watches", request: Request, signal: AbortSignal): Promise<Answer> {
    const { origin, basePath } = access.endpoint;
    const { method, path, body, accept = "application/json" } = request;
    const { contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json" } = request;
    const { userAgent } = this.#options;
    const answer = await this.#transportTo(access)[over].request({
      origin,
      path: `${basePath}${path}${formatQuery(request.query)}`,
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
      headersTimeout: over === "calls" ? 0 : WATCH_HEAD_MS,
      bodyTimeout: over === "calls" ? 0 : WATCH_SILENCE_MS,
      signal,
    });
    const retryAfter = answer.headers["retry-after"];
    return {
      status: answer.statusCode,
      retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
      body: answer.body,
    };
  }

  /** A new endpoint gets new connections; the earlier ones close when their requests have ended. */
  #transportTo({ endpoint }: Access): Transport {
    if (this.#transport?.endpoint === endpoint) return this.#transport;
    const before = this.#transport;
    const transport = openTransport(endpoint, () => {
      this.#connections++;
    });
    this.#transport = transport;
    this.#transports.add(transport);
    before?.close().then(() => this.#transports.delete(before));
    return transport;
  }

  /** Closes all connections at once. */
  async close(): Promise<void> {
    await Promise.all([...this.#transports].map((transport) => transport.destroy()));
    this.#transports.clear();
  }
}

function formatQuery(query: KubeCall["query"]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters}`;
}
