/**
 * The agent's unix socket: mode 0600, bound under a temporary name and renamed into place, so that an old process's
 * late close cannot take the new one's socket away (allocation rule 14).
 * Called by agent.ts. What the requests mean is the dispatcher's and the inspector's.
 * Effects: listens; removes its socket when it closes.
 */
import { chmodSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { dirname } from "node:path";
import { CniError, ErrorCode } from "../cni/error.ts";
import type { Log } from "../lib/log.ts";
import { answerError } from "./answer.ts";
import type { Dispatched, Dispatcher } from "./dispatcher.ts";
import type { Inspector } from "./inspector.ts";
import { MAX_BODY_BYTES, MAX_HEAD_BYTES, STOP_GRACE_MS } from "./limits.ts";

export interface SocketServerOptions {
  readonly path: string;
  readonly dispatch: Dispatcher;
  readonly inspect: Inspector;
  /** Called before an ADD: what is spooled comes first. */
  readonly beforeAdd: () => Promise<void>;
  /** Fault seam around the answer. */
  readonly faults: (point: string) => void;
  readonly log: Log;
}

export interface SocketServer {
  /** Takes no more requests, lets those under way finish for a bounded time, removes the socket. */
  close(): Promise<void>;
}

const CNI_PATH = /^\/v1\/cni\/([a-z]+)$/;

export async function listenOnSocket(options: SocketServerOptions): Promise<SocketServer> {
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, keepAliveTimeout: 1 }, (request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      if (request.complete) options.log.error({ err: error }, "Bug");
      else options.log.debug("The caller hung up within its request");
      response.destroy();
    });
  });
  // Nobody would take back what a second request on one connection was given: its answer has no socket of its own.
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
  const { ino } = statSync(temporary);
  renameSync(temporary, path);
  return { close: () => closeServer(server, path, ino) };
}

async function closeServer(server: Server, path: string, ino: number): Promise<void> {
  if (statSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const patience = setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
  server.closeIdleConnections();
  await closed;
  clearTimeout(patience);
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
  options.faults("answer.written");
}

async function takeBack({ log }: SocketServerOptions, { undo }: Dispatched): Promise<void> {
  if (undo === undefined) return;
  log.warn("The caller hung up before the answer: the ADD is undone");
  await undo().catch((error: unknown) => log.error({ err: error }, "The ADD could not be undone"));
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
      options.log.error({ err: error }, "What has to come before an ADD failed");
      return answerError(error, body);
    }
  }
  return options.dispatch({ plugin, headers: request.headers, body }, signal);
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
    request.on("close", () => reject(new Error("The caller hung up within its request")));
  });
}

/** Headers carry ASCII only. */
function formatNotice(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, " ").slice(0, 4_000);
}

function write(response: ServerResponse, { status, body, notice }: Dispatched): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": bytes.length,
    Connection: "close",
    ...(notice === undefined ? {} : { "Berth-Notice": formatNotice(notice) }),
  });
  response.end(bytes);
}
