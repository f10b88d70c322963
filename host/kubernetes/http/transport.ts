/**
 * Connections to one endpoint: a bounded number for calls, and others for watches, which share one where the server speaks HTTP/2.
 *
 * Calls go over HTTP/1.1. A call that is given up then takes its connection with it, so a connection that leads nowhere is never used
 * again; HTTP/2 brings no more calls per second and would keep it. Watches only listen: there one connection for all spares the server.
 *
 * Effects: TCP connections.
 */

import { Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import type { Endpoint } from "../credentials.ts";
import { MAX_CONNECTIONS } from "./lanes.ts";

/** How long opening a connection to the API server may take: milliseconds. @limit */
export const CONNECT_MS = 3_000;

/** How long a connection without a call stays open: milliseconds. Shorter than the server's 90 seconds. @limit */
export const IDLE_CONNECTION_MS = 45_000;

/** How long a connection may be silent before the kernel asks whether the other end is there: milliseconds. @limit */
export const PEER_SILENCE_MS = 10_000;

/** How long the kernel waits between two such questions: milliseconds. @limit */
export const PEER_QUESTION_MS = 3_000;

/** How many such questions without an answer end a connection. @limit */
export const PEER_QUESTIONS = 3;

/** Largest answer of the API server that is read: bytes. A page of a list that is larger is read in smaller pages. @limit */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface Transport {
  readonly endpoint: Endpoint;
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** Ends when what is under way has ended; resolves then. */
  close(): Promise<void>;
  /** Ends at once. */
  destroy(): Promise<void>;
}

/** `onConnect` is told of each connection that was made. */
export function openTransport(endpoint: Endpoint, onConnect: () => void): Transport {
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
    // Rejects when it is destroyed meanwhile, which is an end, too.
    close: async () => void (await Promise.allSettled(agents.map((agent) => agent.close()))),
    destroy: async () => void (await Promise.allSettled(agents.map((agent) => agent.destroy()))),
  };
}

/** The kernel asks a silent peer whether it is there: else a watch would wait for minutes for a server that lost its power. */
function connector({ tls }: Endpoint, allowH2: boolean): buildConnector.connector {
  const { secureContext, rejectUnauthorized, servername } = tls;
  const name = servername === undefined ? {} : { servername };
  const connect = buildConnector({ secureContext, rejectUnauthorized, ...name, allowH2, timeout: CONNECT_MS });
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket instanceof Socket) askSilentPeer(socket);
      callback(...result);
    });
}

function askSilentPeer(socket: Socket): void {
  socket.setKeepAlive({
    enable: true,
    initialDelay: PEER_SILENCE_MS,
    interval: PEER_QUESTION_MS,
    count: PEER_QUESTIONS,
  });
}
