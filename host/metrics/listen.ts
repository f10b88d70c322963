/**
 * Small read-only HTTP servers, and their listening and end.
 * Effects: listens; replaces an existing unix socket, and removes its own.
 */

import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isMissing } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { readText, requireSocketPath } from "../lib/regular-file.ts";
import { insteadOf } from "../lib/try-or.ts";
import { formatIp, parseIp } from "../net/ip.ts";
import { boundConnections } from "./connections.ts";

/** Interval at which the files of a certificate are checked for a renewed one: milliseconds. */
const CERTIFICATE_CHECK_MS = 2_000;

export type ListenAddress =
  | { readonly kind: "off" }
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "loopback"; readonly host: string; readonly port: number }
  /** Other machines can connect. `host` is undefined for all addresses. */
  | { readonly kind: "network"; readonly host: string | undefined; readonly port: number };

/** The forms that {@link parseListenAddress} accepts, for errors. */
export const LISTEN_FORMS = "127.0.0.1:PORT, [::1]:PORT, ADDRESS:PORT, *:PORT, unix:/PATH or off";

const ADDRESS = /^(?:(?<all>\*)|(?<plain>[0-9.]+)|\[(?<bracketed>[0-9a-fA-F:.]+)\]):(?<port>[0-9]{1,5})$/;

/** Returns undefined for anything else. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text === "off") return { kind: "off" };
  if (/^unix:\/./.test(text)) return { kind: "unix", path: text.slice("unix:".length) };
  const { all, plain, bracketed, port: digits = "" } = ADDRESS.exec(text)?.groups ?? {};
  const port = Number(digits);
  if (digits === "" || port > 65_535) return undefined;
  if (all !== undefined) return { kind: "network", host: undefined, port };
  const ip = parseIp(plain ?? bracketed ?? "");
  if (ip === undefined || (ip.family === 6 && bracketed === undefined)) return undefined;
  const isLoopback = ip.family === 4 ? ip.value >> 24n === 127n : ip.value === 1n;
  return { kind: isLoopback ? "loopback" : "network", host: formatIp(ip), port };
}

/** PEM files. */
interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface ServerSettings {
  readonly address: ListenAddress;
  readonly tls: TlsFiles | undefined;
  /** Other machines are answered without TLS and without a token. */
  readonly isInsecure: boolean;
}

/** Returns whether every caller is answered: one of this machine, or any if that was asked for. */
export function isOpen({ address, isInsecure }: Pick<ServerSettings, "address" | "isInsecure">): boolean {
  return address.kind !== "network" || isInsecure;
}

/** Returns why these settings would expose everything to the network, and the remedy: a clause. Undefined if not. */
export function findExposure(
  settings: ServerSettings,
  { hasCluster }: { readonly hasCluster: boolean },
): string | undefined {
  if (isOpen(settings)) return undefined;
  if (!hasCluster)
    return "without a cluster nothing reviews the tokens of other machines; listen on 127.0.0.1 or a unix socket, or pass --metrics-insecure";
  if (settings.tls === undefined)
    return "other machines scrape over TLS only; pass --metrics-cert-file and --metrics-key-file, listen on 127.0.0.1 or a unix socket, or pass --metrics-insecure";
  return undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly type: string;
  /** A function streams the body and ends the response. */
  readonly body: string | Uint8Array | ((response: ServerResponse) => void);
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpListener {
  /** `http://127.0.0.1:9474`, `unix:/run/berth/controller.sock`; "" if it is off. */
  readonly url: string;
  close(): Promise<void>;
}

export interface Incoming {
  readonly request: IncomingMessage;
  /** Aborted when the caller has left, or has its answer. */
  readonly signal: AbortSignal;
}

interface ListenOptions {
  readonly address: ListenAddress;
  /** Default: plain HTTP. */
  readonly tls?: TlsFiles | undefined;
  readonly log?: Log;
  /** Called for GET and HEAD, with the path without its query. */
  readonly answer: (path: string, incoming: Incoming) => HttpAnswer | Promise<HttpAnswer>;
}

/** Rejects if the address is in use, or a certificate that is there cannot be used. */
export async function listenHttp({ address, tls, log, answer }: ListenOptions): Promise<HttpListener> {
  if (address.kind === "off") return { url: "", close: async () => {} };
  const { server, endChecks } = tls === undefined ? { server: createServer(), endChecks: () => {} } : openTls(tls, log);
  boundConnections(server);
  server.on("request", (request: IncomingMessage, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("The caller has left")));
    void answerTo({ request, signal: gone.signal }, address, answer).then(({ status, type, body, headers }) => {
      if (gone.signal.aborted) return;
      // One request per connection: a kept connection would be cut at the end, possibly with a request on its way.
      response.writeHead(status, { "content-type": type, connection: "close", ...headers });
      if (request.method === "HEAD") response.end();
      else if (typeof body === "function") body(response);
      else response.end(body);
    });
  });
  if (address.kind === "unix") {
    requireSocketPath(address.path);
    rmSync(address.path, { force: true });
  }
  const { host, port } = { host: undefined, port: 0, ...address };
  server.listen(address.kind === "unix" ? { path: address.path } : { ...(host === undefined ? {} : { host }), port });
  await once(server, "listening").catch((error: unknown) => {
    endChecks();
    throw error;
  });
  if (address.kind === "unix") chmodSync(address.path, 0o600);
  return {
    url: urlOf(address, server, tls === undefined ? "http" : "https"),
    close: async () => {
      endChecks();
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Never rejects. */
async function answerTo(
  incoming: Incoming,
  address: ListenAddress,
  answer: ListenOptions["answer"],
): Promise<HttpAnswer> {
  const { method = "", url = "/" } = incoming.request;
  if (address.kind === "loopback" && !isForLoopback(incoming.request))
    return answerJson(421, { error: "This is served on loopback: ask for it at localhost or 127.0.0.1" });
  if (method !== "GET" && method !== "HEAD")
    return answerJson(405, { error: `${method} is not served; there is only GET` });
  try {
    return await answer(url.replace(/[?#].*$/, ""), incoming);
  } catch {
    return answerJson(500, { error: "Internal error" });
  }
}

/** Whether no other name was asked for: a page whose name resolves to this address sends its own (DNS rebinding). */
export function isForLoopback({ headersDistinct: { host: hosts = [] } }: IncomingMessage): boolean {
  const [host = "localhost"] = hosts;
  if (hosts.length > 1) return false;
  if (/^localhost(?::[0-9]+)?$/i.test(host)) return true;
  return parseListenAddress(/:[0-9]+$/.test(host) ? host : `${host}:80`)?.kind === "loopback";
}

export function answerJson(status: number, value: object): HttpAnswer {
  return { status, type: "application/json", body: `${JSON.stringify(value)}\n` };
}

/**
 * Renewed files are used from the next check on; unusable files leave the last certificate in use. Until there are
 * files, handshakes fail.
 */
function openTls({ certFile, keyFile }: TlsFiles, log: Log | undefined) {
  const read = () => ({ cert: readText(certFile), key: readText(keyFile) });
  let current = insteadOf(isMissing, undefined, read);
  if (current === undefined) log?.warn({ certFile, keyFile }, "There is no certificate yet; no client can connect");
  // Most processes do without it, and its import takes time.
  const { createServer: createTlsServer } = process.getBuiltinModule("node:https");
  const server = createTlsServer({ ...current, minVersion: "TLSv1.2" });
  const timer = setInterval(() => {
    try {
      const next = read();
      if (next.cert === current?.cert && next.key === current.key) return;
      server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
      current = next;
      log?.info({ certFile }, "Serving with a new certificate");
    } catch {
      // The files are being replaced.
    }
  }, CERTIFICATE_CHECK_MS).unref();
  return { server, endChecks: () => clearInterval(timer) };
}

function urlOf(address: ListenAddress, server: Server, scheme: string): string {
  const bound = server.address();
  if (address.kind === "unix") return `unix:${address.path}`;
  if (bound === null || typeof bound === "string") return "";
  return `${scheme}://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`;
}
