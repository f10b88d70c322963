/**
 * Connections to one endpoint: a limited number for calls, and others for watches, which share one if the server speaks HTTP/2.
 *
 * Calls use HTTP/1.1. An aborted call closes its connection, so a dead connection is never used again; HTTP/2 brings no more calls per second and
 * would keep it. Watches only listen, so one connection for all saves resources of the server.
 *
 * Effects: TCP connections.
 */

import { Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import type { Endpoint } from "../credentials.ts";
import { MAX_CONNECTIONS } from "./lanes.ts";

/** How long opening a connection to the API server may take: milliseconds. */
const CONNECT_MS = 3_000;

/** How long an idle connection stays open: milliseconds. Shorter than the server's 90 seconds. */
const IDLE_CONNECTION_MS = 45_000;

/** How long a connection may be silent before the kernel sends a keepalive probe: milliseconds. */
const PEER_SILENCE_MS = 10_000;

/** Time between two keepalive probes: milliseconds. */
const PEER_QUESTION_MS = 3_000;

/** How many unanswered keepalive probes close a connection. */
const PEER_QUESTIONS = 3;

/** Largest answer that is read: bytes. A larger page of a list is read in smaller pages. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface Transport {
  readonly endpoint: Endpoint;
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** Closes when the requests under way have ended; resolves then. */
  close(): Promise<void>;
  /** Closes at once. */
  destroy(): Promise<void>;
}

/** `onConnect` is called for each new connection. */
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
