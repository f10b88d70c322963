/**
 * A server and the connections to it, which are kept: a limited number for calls, and others for watches, which share
 * one if the server speaks HTTP/2.
 *
 * Calls use HTTP/1.1. An aborted call closes its connection, so a dead connection is never used again; HTTP/2 brings
 * no more calls per second and would keep it. Watches only listen, so one connection for all saves resources of the
 * server.
 *
 * Effects: TCP connections, none before the first request.
 */
import { X509Certificate } from "node:crypto";
import type { RequestOptions } from "node:https";
import { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { Agent, buildConnector, type Dispatcher } from "undici";
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

/** The same object as long as connections may be kept. */
export interface Endpoint {
  /** `https://10.96.0.1:443`, without a path. */
  readonly origin: string;
  /** Prefix of each path, usually "". */
  readonly basePath: string;
  /** Whether the server must prove its name. */
  readonly isVerified: boolean;
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** How many connections were opened so far, to earlier endpoints, too. */
  readonly opened: { connections: number };
}

/** How to verify the server, and the client's certificate. */
export type TlsMaterial = Pick<RequestOptions, "ca" | "cert" | "key" | "rejectUnauthorized" | "servername">;

/** Takes the place of `before`, whose connections close when their requests have ended. Throws OpenSSL's errors. */
export function openEndpoint(url: URL, material: TlsMaterial, before?: Endpoint): Endpoint {
  const { origin, pathname, protocol } = url;
  const { rejectUnauthorized = true, servername, ...given } = material;
  // OpenSSL accepts a file without a certificate as an authority that signed nothing.
  if (given.ca instanceof Uint8Array) new X509Certificate(given.ca);
  const tls = { secureContext: createSecureContext(given), rejectUnauthorized, ...(servername && { servername }) };
  // A Pool instead of an Agent would keep all clients that it ever had at once, and spread watches over them.
  const calls = new Agent({
    keepAliveTimeout: IDLE_CONNECTION_MS,
    allowH2: false,
    connections: MAX_CONNECTIONS,
    pipelining: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: connector(tls, false),
  });
  const watches = new Agent({ keepAliveTimeout: IDLE_CONNECTION_MS, allowH2: true, connect: connector(tls, true) });
  const opened = before?.opened ?? { connections: 0 };
  for (const agent of [calls, watches]) agent.on("connect", () => opened.connections++);
  // Requests that were just given `before` begin first.
  for (const agent of [before?.calls, before?.watches]) setImmediate(() => agent?.close(() => {}));
  const isVerified = rejectUnauthorized && protocol === "https:";
  return { origin, basePath: pathname.replace(/\/+$/, ""), isVerified, calls, watches, opened };
}

/** Closes all connections at once. */
export async function closeEndpoint(endpoint: Endpoint | undefined): Promise<void> {
  await Promise.all([endpoint?.calls.destroy(), endpoint?.watches.destroy()]);
}

/** Enables keepalive: otherwise a watch would wait for minutes for a server that has lost its power. */
function connector(tls: buildConnector.BuildOptions, allowH2: boolean): buildConnector.connector {
  const connect = buildConnector({ ...tls, allowH2, timeout: CONNECT_MS });
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
