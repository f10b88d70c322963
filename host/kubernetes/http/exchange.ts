/**
 * One request and the head of its answer, with credentials and headers, over connections that are kept: a limited
 * number for calls, and others for watches, which share one if the server speaks HTTP/2.
 *
 * Calls use HTTP/1.1. An aborted call closes its connection, so a dead connection is never used again; HTTP/2 brings
 * no more calls per second and would keep it. Watches only listen, so one connection for all saves resources of the
 * server.
 *
 * Effects: TCP connections.
 */
import { Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import { untilAborted } from "../../lib/abort.ts";
import type { Access, Credentials, Endpoint } from "../credentials.ts";
import type { KubeCall } from "../kube-api.ts";
import { MAX_CONNECTIONS } from "./retry.ts";

/** Longest time that opening a connection to the API server may take: milliseconds. */
const CONNECT_MS = 3_000;

/** Time for which an idle connection stays open: milliseconds. Shorter than the server's 90 seconds. */
const IDLE_CONNECTION_MS = 45_000;

/** Time for which a connection may be silent before the kernel sends a keepalive probe: milliseconds. */
const PEER_SILENCE_MS = 10_000;

/** Time between two keepalive probes: milliseconds. */
const PEER_QUESTION_MS = 3_000;

/** Number of unanswered keepalive probes that close a connection. */
const PEER_QUESTIONS = 3;

/** Largest answer that is read: bytes. A larger page of a list is read in smaller pages. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

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

export interface ExchangeOptions {
  readonly credentials: Pick<Credentials, "current" | "refresh">;
  readonly userAgent: string;
}

type Request = Pick<KubeCall, "method" | "path" | "query" | "body" | "contentType" | "accept">;

/** The way of requests to the API server, as a port. */
export type Exchanges = Pick<Exchange, "connections" | "send" | "close">;

export class Exchange {
  readonly #options: ExchangeOptions;
  #transport: Transport | undefined;
  /** Including earlier ones, which may still carry a watch. */
  readonly #transports = new Set<Transport>();
  /** Connections opened so far. */
  connections = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /**
   * Sends over the connections for calls or those for watches. After a 401 it reads the credentials again, and sends
   * once more if they have changed. Rejects with the failure, or with the signal's reason.
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
      this.connections++;
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

interface Transport {
  readonly endpoint: Endpoint;
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** Closes when the requests under way have ended; resolves then. */
  close(): Promise<void>;
  /** Closes at once. */
  destroy(): Promise<void>;
}

/** `onConnect` is called for each new connection. */
function openTransport(endpoint: Endpoint, onConnect: () => void): Transport {
  const shared = { keepAliveTimeout: IDLE_CONNECTION_MS, connectTimeout: CONNECT_MS };
  const calls = new Agent({
    ...shared,
    allowH2: false,
    connections: MAX_CONNECTIONS,
    pipelining: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: connector(endpoint, false),
  });
  const watches = new Agent({ ...shared, allowH2: true, connect: connector(endpoint, true) });
  const agents = [calls, watches];
  for (const agent of agents) agent.on("connect", onConnect);
  return {
    endpoint,
    calls,
    watches,
    // Rejects if it is destroyed meanwhile, which closes it as well.
    close: async () => void (await Promise.allSettled(agents.map((agent) => agent.close()))),
    destroy: async () => void (await Promise.allSettled(agents.map((agent) => agent.destroy()))),
  };
}

/** Enables keepalive: otherwise a watch would wait for minutes for a server that has lost its power. */
function connector({ tls }: Endpoint, allowH2: boolean): buildConnector.connector {
  const { secureContext, rejectUnauthorized, servername } = tls;
  const name = servername === undefined ? {} : { servername };
  const connect = buildConnector({ secureContext, rejectUnauthorized, ...name, allowH2, timeout: CONNECT_MS });
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket instanceof Socket) askSilentPeer(socket);
      if (socket instanceof Socket && !allowH2) resetOnDestroy(socket);
      callback(...result);
    });
}

/**
 * An aborted call destroys its connection. Then the kernel must drop unsent data: to a peer that is cut off it would
 * continue to send for minutes, and the write would be carried out when the peer is back. A socket over TLS has no
 * `resetAndDestroy`, so this replaces the method of the TCP handle below, unless the stream has ended: Node.js cannot
 * reset that one, and nothing is under way there.
 */
function resetOnDestroy(socket: Socket): void {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (!isHandle(handle)) return;
  const tcp = isHandle(handle._parent) ? handle._parent : handle;
  const close = tcp.close.bind(tcp);
  const reset = tcp.reset?.bind(tcp) ?? close;
  tcp.close = (closed) => (socket.writableEnded ? close(closed) : reset(closed));
}

/** Node.js keeps this below a socket: undocumented. */
interface Handle {
  close(closed: () => void): unknown;
  /** Only of TCP. */
  reset?(closed: () => void): unknown;
  /** The handle below TLS. */
  readonly _parent?: unknown;
}

function isHandle(value: unknown): value is Handle {
  return typeof value === "object" && value !== null && "close" in value;
}

function askSilentPeer(socket: Socket): void {
  socket.setKeepAlive({
    enable: true,
    initialDelay: PEER_SILENCE_MS,
    interval: PEER_QUESTION_MS,
    count: PEER_QUESTIONS,
  });
}
