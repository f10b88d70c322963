/**
 * The API server's objects as JSON, by their paths.
 *
 *   await client.create("/api/v1/namespaces/default/services", { apiVersion: "v1", kind: "Service", … });
 *   await client.patch("/api/v1/nodes/n1", { metadata: { labels: { zone: "a" } } });      // a merge patch
 *   (await client.get("/api/v1/nodes")).items
 *
 * The server may be in another namespace: the connections are opened there.
 * Effects: TCP connections, which stay open between calls until `close`.
 */
import type { ClientRequestArgs } from "node:http";
import { Agent, request } from "node:https";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { openConnecting, type Place } from "./sockets.ts";

export interface ClientOptions extends Place {
  /** Network namespace of the connections; default: this process's own namespace. */
  readonly netnsPath?: string | undefined;
  readonly token: string;
  /** Certificate of the authority that signed the server's certificate, PEM. */
  readonly ca: string;
}

// biome-ignore lint/suspicious/noExplicitAny: callers look into objects by name, and a wrong name gives undefined.
export type KubeObject = any;

export interface KubeClient {
  /** Throws {@link KubeError} as all do, when the answer is not 2xx. */
  get(path: string): Promise<KubeObject>;
  /** `path` is that of the collection. */
  create(path: string, object: object): Promise<KubeObject>;
  /** A merge patch (RFC 7396). */
  patch(path: string, change: object): Promise<KubeObject>;
  /** Makes the object, or makes it so, as `kubectl apply --server-side` does. `path` is the object's. */
  apply(path: string, object: object): Promise<KubeObject>;
  /** Replaces it; the object's resourceVersion is a precondition. */
  put(path: string, object: object): Promise<KubeObject>;
  /** `options`: a DeleteOptions, such as `{ gracePeriodSeconds: 0 }`. */
  delete(path: string, options?: object): Promise<KubeObject>;
  /** Anything else. `type`: of the body; default: JSON. */
  send(method: string, path: string, body?: object, type?: string): Promise<KubeObject>;
  /** The answer's text, for paths that are no objects, such as /readyz. */
  text(path: string): Promise<string>;
  close(): void;
}

export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly status: number;
  /** `AlreadyExists` and the like; empty when the answer has none. */
  readonly reason: string;
  /** The server's message to people; the whole answer if it has none. */
  readonly text: string;

  constructor(call: string, status: number, body: string) {
    super(`${call} was answered with ${status}: ${body}`);
    this.status = status;
    this.reason = /"reason":\s*"(\w+)"/.exec(body)?.[1] ?? "";
    const text = /"message":\s*("(?:[^"\\]|\\.)*")/.exec(body)?.[1];
    this.text = text === undefined ? body : JSON.parse(text);
  }
}

const CALL_TIMEOUT_MS = 10_000;

/**
 * Number of repetitions of a call, and the pause before each, while the API server has not read a kind's objects yet.
 */
const INITIALIZING_ATTEMPTS = 10;
const INITIALIZING_PAUSE_MS = 1_000;

export function createKubeClient(options: ClientOptions): KubeClient {
  const agent = new RemoteAgent(options);
  const text = (method: string, path: string, body?: object, type = "application/json"): Promise<string> =>
    callAgain(() => call(agent, options, { method, path, type, body: body === undefined ? "" : JSON.stringify(body) }));
  const json = async (...args: Parameters<typeof text>): Promise<KubeObject> => JSON.parse(await text(...args));
  return {
    get: (path) => json("GET", path),
    create: (path, object) => json("POST", path, object),
    patch: (path, change) => json("PATCH", path, change, "application/merge-patch+json"),
    apply: (path, object) =>
      json("PATCH", `${path}?fieldManager=lab&force=true`, object, "application/apply-patch+yaml"),
    put: (path, object) => json("PUT", path, object),
    delete: (path, options) => json("DELETE", path, options),
    send: json,
    text: (path) => text("GET", path),
    close: () => agent.destroy(),
  };
}

/** Opens its connections in the namespace of the options. */
class RemoteAgent extends Agent {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    super({ keepAlive: true });
    this.#options = options;
  }

  override createConnection(_: ClientRequestArgs) {
    const { netnsPath = "/proc/thread-self/ns/net", address, port, ca } = this.#options;
    const socket = new Socket({ fd: openConnecting(netnsPath, { address, port }) });
    return connect({ socket, host: address, ca });
  }
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

/** As kubectl does: a kind without a watch is read when it is first asked for, after its definition came or changed. */
async function callAgain(once: () => Promise<string>): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once();
    } catch (error) {
      const isInitializing =
        error instanceof KubeError && error.status === 429 && /\(re\)initializing/.test(error.text);
      if (!isInitializing || attempt === INITIALIZING_ATTEMPTS) throw error;
      await sleep(INITIALIZING_PAUSE_MS);
    }
  }
}

function call(agent: Agent, { address, port, token }: ClientOptions, { method, path, type, body }: Call) {
  const types = { accept: "application/json", "content-type": type };
  // Node.js itself does not say how long the body of a DELETE is.
  const headers = { authorization: `Bearer ${token}`, ...types, "content-length": Buffer.byteLength(body) };
  return new Promise<string>((resolve, reject) => {
    const sent = request({ agent, method, path, host: address, port, headers, timeout: CALL_TIMEOUT_MS }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const status = answer.statusCode ?? 0;
        if (status >= 200 && status < 300) resolve(text);
        else reject(new KubeError(`${method} ${path}`, status, text));
      });
    });
    sent.on("timeout", () =>
      sent.destroy(new Error(`${method} ${path} was not answered within ${CALL_TIMEOUT_MS} ms`)),
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
