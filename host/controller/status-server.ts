/**
 * GET /v1/status, GET /healthz and GET /metrics on loopback or a unix socket. Read-only.
 * Effects: listens; replaces an existing unix socket, and removes its own.
 */
import { chmodSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { CONTROLLER_METRICS } from "../metrics/controller-metrics.ts";
import { METRICS_TYPE, type MetricSet } from "../metrics/metric.ts";
import { formatIp, parseIp } from "../net/ip.ts";
import type { ControllerProcess } from "./controller-process.ts";

export interface StatusServer {
  /** `http://127.0.0.1:9474`, `unix:/run/berth/controller.sock`; "" if the server is off. */
  readonly url: string;
  close(): Promise<void>;
}

interface StatusServerOptions {
  readonly address: ListenAddress;
  readonly controller: Pick<ControllerProcess, "status" | "stuck">;
  readonly version: string;
  readonly metrics: Pick<MetricSet<typeof CONTROLLER_METRICS>, "render">;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Rejects if the address is in use. */
export async function listenForQuestions(options: StatusServerOptions): Promise<StatusServer> {
  const { address } = options;
  if (address.kind === "off") return { url: "", close: async () => {} };
  const server = createServer((request, response) => {
    void answer(options, request.method ?? "", request.url ?? "/").then(({ status, type, body }) => {
      // One request per connection: a kept connection would be cut at the end, possibly with a request on its way.
      response.writeHead(status, { "content-type": type, connection: "close" });
      response.end(request.method === "HEAD" ? "" : body);
    });
  });
  if (address.kind === "unix") rmSync(address.path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    const where = address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
    server.listen(where, () => {
      server.off("error", reject);
      resolve();
    });
  });
  if (address.kind === "unix") chmodSync(address.path, 0o600);
  return {
    url: urlOf(address, server.address()),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function urlOf(address: ListenAddress, bound: ReturnType<ReturnType<typeof createServer>["address"]>): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  if (bound === null || typeof bound === "string") return "";
  return `http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`;
}

/** Never rejects. */
async function answer(
  { controller, version, metrics }: StatusServerOptions,
  method: string,
  url: string,
): Promise<Answer> {
  const path = url.replace(/[?#].*$/, "");
  if (method !== "GET" && method !== "HEAD") return json(405, { error: `${method} is not served; there is only GET` });
  if (path === "/healthz") return health(controller);
  if (path === "/v1/status") return json(200, { version, ...controller.status });
  if (path === "/metrics") return { status: 200, type: METRICS_TYPE, body: await metrics.render() };
  return json(404, {
    error: `${path.slice(0, 80)} is not served; there are GET /v1/status, GET /healthz, GET /metrics`,
  });
}

/** Reports only whether a restart would help: an API server that does not answer is no reason. */
function health({ stuck }: Pick<ControllerProcess, "stuck">): Answer {
  return stuck === undefined
    ? { status: 200, type: "text/plain", body: "ok\n" }
    : { status: 503, type: "text/plain", body: `${stuck}\n` };
}

function json(status: number, value: object): Answer {
  return { status, type: "application/json", body: `${JSON.stringify(value)}\n` };
}

export type ListenAddress =
  | { readonly kind: "off" }
  | { readonly kind: "loopback"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** The forms that {@link parseListenAddress} accepts, for errors. */
export const LISTEN_FORMS = "127.0.0.1:PORT, [::1]:PORT, unix:/PATH or off";

const LOOPBACK = /^(?:(?<v4>127(?:\.[0-9]+){3})|\[(?<v6>[0-9a-fA-F:]+)\]):(?<port>[0-9]{1,5})$/;

/** Returns undefined for anything else: the status is for this machine only. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text === "off") return { kind: "off" };
  if (/^unix:\/./.test(text)) return { kind: "unix", path: text.slice("unix:".length) };
  const { v4, v6, port = "" } = LOOPBACK.exec(text)?.groups ?? {};
  const ip = parseIp(v4 ?? v6 ?? "");
  if (ip === undefined || Number(port) > 65_535 || (ip.family === 6 && ip.value !== 1n)) return undefined;
  return { kind: "loopback", host: formatIp(ip), port: Number(port) };
}
