/**
 * The agent's unix socket: mode 0600, bound under a temporary name and renamed into place, so that an old process that closes late cannot take the new
 * one's socket away (single-agent).
 */
import { chmodSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { dirname } from "node:path";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { createServer, get } from "../../lib/http.ts";
import type { Log } from "../../lib/log.ts";
import type { CallEnd, RequestMeter } from "../metrics/request-meter.ts";
import { answerError } from "./answer.ts";
import type { Dispatched, Dispatcher } from "./dispatcher.ts";
import { SOCKET_RECHECK_MS } from "./socket-watch.ts";
import type { StatusApi } from "./status-api.ts";

/** Largest request body, as the shim's: bytes. @limit */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Largest request head; the shim forwards eight variables of up to 64 KiB: bytes. @limit */
export const MAX_HEAD_BYTES = 768 * 1024;

/** How long a stopping agent lets requests finish: milliseconds. @limit */
export const STOP_GRACE_MS = 5_000;

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

/** A server and the socket that it is bound to. */
interface Listener {
  readonly server: Server;
  readonly dev: number;
  readonly ino: number;
  /** The name under which it was bound, and under which it ends. */
  readonly temporary: string;
  /** How many connections it has accepted. */
  readonly accepted: () => number;
}

const CNI_PATH = /^\/v1\/cni\/([a-z]+)$/;

export async function listenOnSocket(options: SocketServerOptions): Promise<SocketServer> {
  const { path } = options;
  let listener = await bind(options);
  return {
    findLoss: () => {
      const there = statSync(path, { throwIfNoEntry: false });
      if (there === undefined) return "removed";
      return leadsTo(path, listener) ? undefined : "replaced";
    },
    restore: async () => {
      const lost = listener;
      listener = await bind(options);
      // Connections made before the loss are accepted within this time.
      setTimeout(() => lost.server.close(), SOCKET_RECHECK_MS / 2).unref();
    },
    close: () => closeListener(path, listener),
  };
}

async function bind(options: SocketServerOptions): Promise<Listener> {
  let accepted = 0;
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, keepAliveTimeout: 1 }, (request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      if (request.complete) options.log.error({ err: error }, "Internal error");
      else options.log.debug("The caller hung up during its request");
      response.destroy();
    });
  });
  server.on("connection", () => {
    accepted += 1;
  });
  // The answer to a second request on one connection could not be taken back: it has no socket of its own.
  server.maxRequestsPerSocket = 1;
  const { path } = options;
  const temporary = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  rmSync(temporary, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(temporary, () => {
      server.off("error", reject);
      resolve();
    });
  });
  chmodSync(temporary, 0o600);
  const { dev, ino } = statSync(temporary);
  renameSync(temporary, path);
  return { server, dev, ino, temporary, accepted: () => accepted };
}

function leadsTo(path: string, { dev, ino }: Listener): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  return there !== undefined && there.dev === dev && there.ino === ino;
}

/**
 * Removes the name first, so that callers retry until the next agent serves. Connections made by then wait in the kernel, which would break them when the
 * listener closes: they are accepted before.
 */
async function closeListener(path: string, listener: Listener): Promise<void> {
  const { server, temporary } = listener;
  const limit = AbortSignal.timeout(STOP_GRACE_MS);
  if (leadsTo(path, listener)) {
    renameSync(path, temporary);
    await acceptAll(listener, limit);
  }
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  limit.addEventListener("abort", () => server.closeAllConnections());
  if (limit.aborted) server.closeAllConnections();
  server.closeIdleConnections();
  await closed;
  rmSync(temporary, { force: true });
}

/** Connections are accepted in their order: when the last of them, this process's own, is answered, none waits any more. */
async function acceptAll({ temporary, accepted }: Listener, limit: AbortSignal): Promise<void> {
  let before: number;
  do {
    before = accepted();
    await new Promise<void>((resolve) => {
      const question = get({ socketPath: temporary, path: "/", agent: false, signal: limit }, (answer) => {
        answer.resume().once("close", resolve);
      });
      question.once("error", () => resolve());
    });
  } while (accepted() > before + 1 && !limit.aborted);
}

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
  const end = options.meter?.begin(plugin, request.headers["cni-command"]);
  let found: CallEnd = "undelivered";
  try {
    const dispatched = await dispatchBody(options, plugin, request, hungUp.signal);
    if (hungUp.signal.aborted) {
      await takeBack(options, dispatched);
      return;
    }
    options.faults("answer.write");
    response.once("close", () => {
      if (!response.writableFinished) void takeBack(options, dispatched);
    });
    write(response, dispatched);
    found = dispatched.code ?? 0;
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
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Dispatched> {
  const body = await readBody(request);
  if (body === undefined) {
    const error = new CniError(ErrorCode.DecodeFailure, `The request is larger than ${MAX_BODY_BYTES} bytes`);
    return answerError(error, "");
  }
  if (request.headers["cni-command"] === "ADD") {
    try {
      await options.beforeAdd();
    } catch (error) {
      options.log.error({ err: error }, "Draining the spool before an ADD failed");
      return answerError(error, body);
    }
  }
  return options.dispatcher.dispatch({ plugin, headers: request.headers, body }, signal);
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

function write(response: ServerResponse, { status, body, notice, contentType = "application/json" }: Dispatched): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": bytes.length,
    Connection: "close",
    ...(notice === undefined ? {} : { "Berth-Notice": formatNotice(notice) }),
  });
  response.end(bytes);
}
