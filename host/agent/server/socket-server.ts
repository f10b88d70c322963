/**
 * The agent's unix socket: mode 0600, bound under a temporary name and renamed into place, so that an old process
 * that closes late cannot take the new one's socket away (single-agent).
 */

import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { dirname } from "node:path";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { MAX_NETWORK_CONFIG_BYTES } from "../../cni/net-conf.ts";
import type { Log } from "../../lib/log.ts";
import { requireSocketPath } from "../../lib/regular-file.ts";
import type { CallEnd, RequestMeter } from "../metrics/request-meter.ts";
import type { RawRequest } from "../request/driver.ts";
import { type Answer, answerError, type StatusApi } from "./answer.ts";
import { type Dispatched, type Dispatcher, LARGE_PAUSE_MS } from "./dispatcher.ts";
import { MAX_BODY_BYTES, MAX_HEAD_BYTES } from "./spool.ts";

/** Time for which a stopping agent lets requests finish: milliseconds. */
const STOP_GRACE_MS = 5_000;

/** Time for which a stopping agent waits for the request of a caller that has connected: milliseconds. */
export const SILENCE_GRACE_MS = 1_000;

/** Longest time that a caller may take to send the head of a request: milliseconds. */
const SILENCE_MS = 60_000;

interface SocketServerOptions {
  readonly path: string;
  readonly dispatcher: Pick<Dispatcher, "dispatch" | "translate">;
  readonly inspect: StatusApi;
  /** Called before an ADD with its headers: drains the spool. Throws CniError if the ADD is refused. */
  readonly beforeAdd: (headers: RawRequest["headers"]) => Promise<void>;
  /** Default: calls are not counted. */
  readonly meter?: RequestMeter | undefined;
  /** Fault seam around the answer. */
  readonly faults: (point: string) => void;
  readonly log: Log;
}

export interface SocketServer {
  /** Returns the loss of the socket if its path leads elsewhere; undefined while callers reach this agent. */
  findLoss(): "removed" | "replaced" | undefined;
  /** Binds a new socket at the path, in place of the present one. */
  restore(): Promise<void>;
  /** Takes no more requests, lets those under way finish for a bounded time, removes the socket. */
  close(): Promise<void>;
}

/** A server and the name that it was bound to. */
interface Listener {
  readonly server: Server;
  readonly dev: number;
  readonly ino: number;
  /** The name under which it was bound, and under which it ends. */
  readonly temporary: string;
}

/** The connections of all servers of one path. */
interface Connections {
  readonly all: Set<Socket>;
  /** Connections that have not sent the head of a request. */
  readonly silent: Set<Socket>;
  /** Number of accepted connections. */
  accepted: number;
  /** Resolves when the next large body may be read: many at once take memory, and time to collect it. */
  large: Promise<unknown>;
}

const CNI_PATH = /^\/v1\/cni\/([a-z]+)$/;

export async function listenOnSocket(options: SocketServerOptions): Promise<SocketServer> {
  const { path } = options;
  const connections: Connections = { all: new Set(), silent: new Set(), accepted: 0, large: Promise.resolve() };
  requireSocketPath(path);
  let listener = await bind(options, connections);
  const ended: Promise<void>[] = [];
  return {
    findLoss: () => {
      if (leadsTo(path, listener)) return undefined;
      return existsSync(path) ? "replaced" : "removed";
    },
    restore: async () => {
      const lost = listener;
      listener = await bind(options, connections);
      // Connections made before the loss.
      await acceptWaiting(connections);
      ended.push(endServer(lost));
    },
    close: () => closeListener(path, listener, connections, ended),
  };
}

async function bind(options: SocketServerOptions, connections: Connections): Promise<Listener> {
  const { path, log } = options;
  const temporary = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  rmSync(temporary, { force: true });
  const settings = { maxHeaderSize: MAX_HEAD_BYTES, headersTimeout: SILENCE_MS, keepAliveTimeout: 1 };
  const server = createServer(settings, (request, response) => {
    connections.silent.delete(request.socket);
    const isLarge = Number(request.headers["content-length"]) > MAX_NETWORK_CONFIG_BYTES;
    const turn = isLarge ? connections.large : Promise.resolve();
    if (isLarge) connections.large = turn.then(() => pause(LARGE_PAUSE_MS));
    const served = turn.then(() => serve(options, request, response));
    served.catch((error: unknown) => {
      if (request.complete) log.error({ err: error }, "Internal error");
      else log.debug("The caller hung up during its request");
      response.destroy();
    });
  });
  // The answer to a second request on one connection could not be taken back: it has no socket of its own.
  server.maxRequestsPerSocket = 1;
  server.listen(temporary);
  await once(server, "listening");
  server.on("error", (error) => log.error({ err: error }, "Accepting a caller failed"));
  chmodSync(temporary, 0o600);
  server.on("connection", (socket) => {
    connections.accepted += 1;
    connections.all.add(socket);
    connections.silent.add(socket);
    socket.once("close", () => {
      connections.all.delete(socket);
      connections.silent.delete(socket);
    });
  });
  const { dev, ino } = statSync(temporary);
  renameSync(temporary, path);
  return { server, dev, ino, temporary };
}

/** Accepts no more. Resolves when its last connection has ended. */
function endServer({ server }: Listener): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function leadsTo(path: string, { dev, ino }: Listener): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  return there !== undefined && there.dev === dev && there.ino === ino;
}

/** Turns of the event loop without a connection after which none waits: each turn accepts a waiting one. */
const QUIET_TURNS = 3;

/** Resolves when the connections that wait now are accepted. */
async function acceptWaiting(connections: Connections): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
    const before = connections.accepted;
    await nextTurn();
    if (connections.accepted > before) quiet = 0;
  }
}

/**
 * Removes the name first, so that callers retry until the next agent serves. Connections made by then wait in the
 * kernel, which would break them when the listener closes: they are accepted before. Requests under way may finish
 * for a bounded time.
 */
async function closeListener(
  path: string,
  listener: Listener,
  connections: Connections,
  ended: readonly Promise<void>[],
): Promise<void> {
  if (leadsTo(path, listener)) renameSync(path, listener.temporary);
  await acceptWaiting(connections);
  const destroy = (some: ReadonlySet<Socket>): void => {
    for (const socket of some) socket.destroy();
  };
  const timers = [
    setTimeout(() => destroy(connections.silent), SILENCE_GRACE_MS),
    setTimeout(() => destroy(connections.all), STOP_GRACE_MS),
  ];
  await Promise.all([...ended, endServer(listener)]);
  for (const timer of timers) clearTimeout(timer);
  rmSync(listener.temporary, { force: true });
}

async function serve(options: SocketServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "/";
  const plugin = request.method === "POST" ? CNI_PATH.exec(url)?.[1] : undefined;
  if (plugin === undefined) {
    write(response, await options.inspect(request.method ?? "", url));
    return;
  }
  const { headers } = request;
  const hungUp = new AbortController();
  const end = options.meter?.begin(plugin, headers["cni-command"]);
  let found: CallEnd = "undelivered";
  let dispatched: Dispatched | undefined;
  response.once("close", () => {
    if (response.writableFinished) return;
    hungUp.abort();
    found = "undelivered";
    if (dispatched !== undefined) void takeBack(options, dispatched);
  });
  try {
    const answer = await dispatchBody(options, plugin, headers, await readBody(request), hungUp.signal);
    if (hungUp.signal.aborted) {
      await takeBack(options, answer);
      return;
    }
    options.faults("answer.write");
    dispatched = answer;
    found = answer.code ?? 0;
    write(response, answer);
    options.faults("answer.written");
  } finally {
    end?.(found);
  }
}

async function takeBack({ log }: SocketServerOptions, { undo }: Dispatched): Promise<void> {
  if (undo === undefined) return;
  log.warn("The caller hung up before the answer; undoing the ADD");
  await undo().catch((error: unknown) => log.error({ err: error }, "Undoing the ADD failed"));
}

async function dispatchBody(
  options: SocketServerOptions,
  plugin: string,
  headers: RawRequest["headers"],
  body: string | undefined,
  signal: AbortSignal,
): Promise<Dispatched> {
  if (body === undefined) {
    const error = new CniError(ErrorCode.DecodeFailure, `The request is larger than ${MAX_BODY_BYTES} bytes`);
    return answerError(error, "");
  }
  let call: RawRequest;
  try {
    call = options.dispatcher.translate({ plugin, headers, body });
  } catch (error) {
    return answerError(error, body);
  }
  if (headers["cni-command"] === "ADD") {
    try {
      await options.beforeAdd(call.headers);
    } catch (error) {
      if (error instanceof CniError) options.log.warn({ reason: error.message }, "An ADD is refused");
      else options.log.error({ err: error }, "Draining the spool before an ADD failed");
      return answerError(error, body);
    }
  }
  return options.dispatcher.dispatch(call, signal);
}

/** Undefined when the body is too large. Rejects when the caller hangs up. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString("utf8");
}

const JSON_TYPE = "application/json";

function write(response: ServerResponse, { status, body, notice, contentType = JSON_TYPE }: Answer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": bytes.length,
    Connection: "close",
    // Headers carry ASCII only.
    ...(notice === undefined ? {} : { "Berth-Notice": notice.replace(/[^\x20-\x7e]+/g, " ").slice(0, 4_000) }),
  });
  response.end(bytes);
}
