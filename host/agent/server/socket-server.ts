/**
 * The agent's unix socket: mode 0600, bound under a temporary name and renamed into place, so that an old process that closes late cannot take the new
 * one's socket away (single-agent).
 */
import { chmodSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { dirname } from "node:path";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { EAGAIN } from "../../kernel/errno.ts";
import { type UnixConnection, UnixListener } from "../../kernel/unix-listener.ts";
import { loadHttp } from "../../lib/http.ts";
import type { Log } from "../../lib/log.ts";
import type { CallEnd, RequestMeter } from "../metrics/request-meter.ts";
import { type Answer, answerError } from "./answer.ts";
import type { Dispatched, Dispatcher, RawRequest } from "./dispatcher.ts";
import { parseGet, parseShimRequest } from "./shim-request.ts";
import type { StatusApi } from "./status-api.ts";

/** Largest request body, as the shim's: bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Largest request head; the shim forwards eight variables of up to 64 KiB: bytes. */
export const MAX_HEAD_BYTES = 768 * 1024;

/** How long a stopping agent lets requests finish: milliseconds. */
const STOP_GRACE_MS = 5_000;

/** How long a stopping agent waits for the request of a caller that has connected: milliseconds. */
export const SILENCE_GRACE_MS = 1_000;

/** How long a call is served before it is watched whether the caller hangs up: milliseconds. Most calls are over before. */
const HANG_UP_WATCH_MS = 250;

/** How long a caller may take to send the head of a request: milliseconds. */
const SILENCE_MS = 60_000;

interface SocketServerOptions {
  readonly path: string;
  readonly dispatcher: Pick<Dispatcher, "dispatch">;
  readonly inspect: StatusApi;
  /** Called before an ADD: drains the spool. */
  readonly beforeAdd: () => Promise<void>;
  /** Absent: calls are not counted. */
  readonly meter?: RequestMeter | undefined;
  /** Fault seam around the answer. */
  readonly faults: (point: string) => void;
  readonly log: Log;
}

export interface SocketServer {
  /** Returns what happened to the socket if its path leads elsewhere; undefined while callers reach this agent. */
  findLoss(): "removed" | "replaced" | undefined;
  /** Binds a new socket at the path, in place of the present one. */
  restore(): Promise<void>;
  /** Takes no more requests, lets those under way finish for a bounded time, removes the socket. */
  close(): Promise<void>;
}

/** A listener and the name that it was bound to. */
interface Listener {
  readonly socket: UnixListener;
  readonly dev: number;
  readonly ino: number;
  /** The name under which it was bound, and under which it ends. */
  readonly temporary: string;
}

const CNI_PATH = /^\/v1\/cni\/([a-z]+)$/;

export async function listenOnSocket(options: SocketServerOptions): Promise<SocketServer> {
  const { path } = options;
  const connections = new Connections(options);
  let listener = bind(options, connections);
  return {
    findLoss: () => {
      const there = statSync(path, { throwIfNoEntry: false });
      if (there === undefined) return "removed";
      return leadsTo(path, listener) ? undefined : "replaced";
    },
    restore: async () => {
      const lost = listener;
      listener = bind(options, connections);
      // Connections made before the loss.
      lost.socket.acceptWaiting();
      lost.socket[Symbol.dispose]();
    },
    close: () => closeListener(path, listener, connections),
  };
}

function bind({ path, log }: SocketServerOptions, connections: Connections): Listener {
  const temporary = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  rmSync(temporary, { force: true });
  const socket = new UnixListener({
    path: temporary,
    accepted: (connection) => connections.accept(connection),
    failed: (error) => log.error({ err: error }, "Accepting a caller failed; retrying"),
  });
  chmodSync(temporary, 0o600);
  const { dev, ino } = statSync(temporary);
  renameSync(temporary, path);
  return { socket, dev, ino, temporary };
}

function leadsTo(path: string, { dev, ino }: Listener): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  return there !== undefined && there.dev === dev && there.ino === ino;
}

/**
 * Removes the name first, so that callers retry until the next agent serves. Connections made by then wait in the kernel, which would break them when the
 * listener closes: they are accepted before.
 */
async function closeListener(path: string, listener: Listener, connections: Connections): Promise<void> {
  const { socket, temporary } = listener;
  if (leadsTo(path, listener)) renameSync(path, temporary);
  socket.acceptWaiting();
  socket[Symbol.dispose]();
  await connections.finish();
  rmSync(temporary, { force: true });
}

/** A caller who waits for the answer to a call. */
interface Caller {
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
  /** Calls `lost` if the answer does not reach the caller. */
  answer(answer: Answer, lost: () => void): void;
}

/**
 * All connections. A call of the shim that has come in one piece is served on the bare descriptor, and so is a question; any other connection is one of
 * node:http, which takes five times as long and is loaded by the first of them.
 */
class Connections {
  readonly #options: SocketServerOptions;
  #http: Server | undefined;
  /** Connections of node:http. */
  readonly #sockets = new Set<Socket>();
  /** Those that have not sent a request. */
  readonly #silent = new Set<Socket>();
  /** What ends each of the other calls. */
  readonly #calls = new Set<AbortController>();
  /** What begins with each of those that have sent nothing yet. */
  readonly #late = new Set<() => void>();
  #emptied = (): void => {};

  constructor(options: SocketServerOptions) {
    this.#options = options;
  }

  #httpServer(): Server {
    this.#http ??= this.#createHttp(this.#options);
    return this.#http;
  }

  #createHttp(options: SocketServerOptions): Server {
    const server = loadHttp().createServer(
      { maxHeaderSize: MAX_HEAD_BYTES, keepAliveTimeout: 1 },
      (request, response) => {
        this.#silent.delete(request.socket);
        serve(options, request, response).catch((error: unknown) => {
          if (request.complete) options.log.error({ err: error }, "Internal error");
          else options.log.debug("The caller hung up during its request");
          response.destroy();
        });
      },
    );
    // The answer to a second request on one connection could not be taken back: it has no socket of its own.
    server.maxRequestsPerSocket = 1;
    return server;
  }

  accept(connection: UnixConnection): void {
    const bytes = connection.peek();
    if (bytes.length > 0) this.#start(connection, bytes);
    else this.#await(connection);
  }

  /** A caller sends as soon as it has connected, but the agent is often woken before. */
  #await(connection: UnixConnection): void {
    const start = (): void => {
      clearTimeout(timer);
      this.#late.delete(start);
      this.#start(connection, connection.peek());
    };
    const timer = setTimeout(start, SILENCE_GRACE_MS);
    this.#late.add(start);
    connection.onReadable(start);
  }

  #start(connection: UnixConnection, bytes: Buffer): void {
    const call = parseShimRequest(bytes);
    const url = typeof call === "string" ? parseGet(bytes) : undefined;
    if (typeof call !== "string") {
      connection.take(bytes.length);
      void this.#serve(connection, call);
    } else if (url !== undefined) {
      connection.take(bytes.length);
      void this.#inspect(connection, url);
    } else this.#hand(connection.release());
  }

  /** Lets requests under way finish for a bounded time. */
  async finish(): Promise<void> {
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    this.#checkEmpty();
    const timers = [
      setTimeout(() => this.#destroy(this.#silent), SILENCE_GRACE_MS),
      setTimeout(() => {
        for (const call of this.#calls) call.abort();
        this.#destroy(this.#sockets);
      }, STOP_GRACE_MS),
    ];
    await emptied;
    for (const timer of timers) clearTimeout(timer);
  }

  #destroy(sockets: ReadonlySet<Socket>): void {
    for (const socket of sockets) socket.destroy();
  }

  #checkEmpty(): void {
    if (this.#late.size + this.#calls.size + this.#sockets.size === 0) this.#emptied();
  }

  #hand(fd: number): void {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    this.#sockets.add(socket);
    this.#silent.add(socket);
    socket.setTimeout(SILENCE_MS, () => this.#silent.has(socket) && socket.destroy());
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#silent.delete(socket);
      this.#checkEmpty();
    });
    this.#httpServer().emit("connection", socket);
  }

  async #inspect(connection: UnixConnection, url: string): Promise<void> {
    const question = new AbortController();
    this.#calls.add(question);
    try {
      deliver(connection, formatAnswer(await this.#options.inspect("GET", url)), () => {});
    } catch (error) {
      this.#options.log.error({ err: error }, "Internal error");
      connection.close();
    } finally {
      this.#calls.delete(question);
      this.#checkEmpty();
    }
  }

  async #serve(connection: UnixConnection, call: RawRequest): Promise<void> {
    const hungUp = new AbortController();
    this.#calls.add(hungUp);
    // Sending the answer finds out, too.
    const watching = setTimeout(() => connection.onHangUp(() => hungUp.abort()), HANG_UP_WATCH_MS);
    let isOpen = true;
    const answer: Caller["answer"] = (text, lost) => {
      clearTimeout(watching);
      isOpen = false;
      deliver(connection, formatAnswer(text), lost);
    };
    try {
      await serveCall(this.#options, call.plugin, call.headers, async () => call.body, {
        signal: hungUp.signal,
        answer,
      });
    } catch (error) {
      this.#options.log.error({ err: error }, "Internal error");
    } finally {
      clearTimeout(watching);
      if (isOpen) connection.close();
      this.#calls.delete(hungUp);
      this.#checkEmpty();
    }
  }
}

/** Sends the answer and closes the connection. What the kernel has no room for goes the long way. */
function deliver(connection: UnixConnection, bytes: Buffer, lost: () => void): void {
  const sent = connection.send(bytes);
  if (sent === bytes.length || (sent < 0 && sent !== -EAGAIN)) {
    connection.close();
    if (sent < 0) lost();
    return;
  }
  const socket = new Socket({ fd: connection.release(), writable: true });
  socket.on("error", () => {});
  socket.once("close", () => {
    if (!socket.writableFinished) lost();
  });
  socket.end(bytes.subarray(Math.max(0, sent)));
}

/** Serves a request of node:http. */
async function serve(options: SocketServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "/";
  const plugin = request.method === "POST" ? CNI_PATH.exec(url)?.[1] : undefined;
  if (plugin === undefined) {
    const answer = await options.inspect(request.method ?? "", url);
    write(response, answer);
    return;
  }
  const hungUp = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) hungUp.abort();
  });
  await serveCall(options, plugin, request.headers, () => readBody(request), {
    signal: hungUp.signal,
    answer: (answer, lost) => {
      response.once("close", () => {
        if (!response.writableFinished) lost();
      });
      write(response, answer);
    },
  });
}

/** Rejects if the body cannot be read. */
async function serveCall(
  options: SocketServerOptions,
  plugin: string,
  headers: RawRequest["headers"],
  readBody: () => Promise<string | undefined>,
  caller: Caller,
): Promise<void> {
  const end = options.meter?.begin(plugin, headers["cni-command"]);
  let found: CallEnd = "undelivered";
  try {
    const dispatched = await dispatchBody(options, plugin, headers, await readBody(), caller.signal);
    if (caller.signal.aborted) {
      await takeBack(options, dispatched);
      return;
    }
    options.faults("answer.write");
    found = dispatched.code ?? 0;
    caller.answer(dispatched, () => {
      found = "undelivered";
      void takeBack(options, dispatched);
    });
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
  if (headers["cni-command"] === "ADD") {
    try {
      await options.beforeAdd();
    } catch (error) {
      options.log.error({ err: error }, "Draining the spool before an ADD failed");
      return answerError(error, body);
    }
  }
  return options.dispatcher.dispatch({ plugin, headers, body }, signal);
}

/** Undefined when the body is too large. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    request.on("end", () => resolve(size > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString("utf8")));
    request.on("error", reject);
    request.on("close", () => reject(new Error("The caller hung up during its request")));
  });
}

/** Headers carry ASCII only. */
function formatNotice(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, " ").slice(0, 4_000);
}

const JSON_TYPE = "application/json";

function write(response: ServerResponse, { status, body, notice, contentType = JSON_TYPE }: Answer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": bytes.length,
    Connection: "close",
    ...(notice === undefined ? {} : { "Berth-Notice": formatNotice(notice) }),
  });
  response.end(bytes);
}

/** Reason phrases of calls and questions (RFC 9110 §15); another status has none. */
const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  409: "Conflict",
  422: "Unprocessable Content",
  503: "Service Unavailable",
};

/** Returns the same answer as bytes. */
function formatAnswer({ status, body, notice, contentType = JSON_TYPE }: Answer): Buffer {
  const length = Buffer.byteLength(body);
  const noticed = notice === undefined ? "" : `\r\nBerth-Notice: ${formatNotice(notice)}`;
  const head = `HTTP/1.1 ${status} ${REASONS[status] ?? ""}\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\nConnection: close${noticed}`;
  return Buffer.from(`${head}\r\n\r\n${body}`);
}
