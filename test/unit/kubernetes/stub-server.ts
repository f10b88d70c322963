/**
 * A server of a test's own choosing in the API server's place, and a client for it: for answers that the real one
 * does not give on demand.
 * Effects: a server on loopback, a folder below the system's temporary folder; `close` ends both, and so does the test.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type KubeClient, openKubeClient } from "../../../host/kubernetes/client.ts";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";

export interface StubRequest {
  readonly method: string;
  /** With the query. */
  readonly url: string;
  readonly authorization: string | undefined;
  readonly accept: string | undefined;
  readonly body: string;
}

export type StubAnswer = (response: ServerResponse, request: StubRequest) => void;

export interface Stub {
  readonly client: KubeClient;
  readonly requests: readonly StubRequest[];
  /** Token file of the user; rewritten by `setToken`. */
  readonly tokenFile: string;
  setToken(token: string): Promise<void>;
  close(): Promise<void>;
}

/** `random` is the client's; the pauses after failures are as long as they may be when it is near 1. */
export async function startStub(answer: StubAnswer, random: () => number = () => 0.01): Promise<Stub> {
  const requests: StubRequest[] = [];
  const server = createServer((incoming, response) => {
    read(incoming).then((request) => {
      requests.push(request);
      answer(response, request);
    }, ignore);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const directory = await mkdtemp(join(tmpdir(), "berth-stub-"));
  const tokenFile = join(directory, "token");
  const setToken = (token: string) => writeFile(tokenFile, `${token}\n`);
  await setToken("first");
  const kubeconfig = await writeStubKubeconfig(directory, `http://127.0.0.1:${port}`, { tokenFile });
  const client = openKubeClient({ credentials: await loadCredentials({ kubeconfig }), userAgent: "test", random });
  const end = async (): Promise<void> => {
    await client.close();
    server.closeAllConnections();
    await once(server.close(), "close");
    await rm(directory, { recursive: true });
  };
  let ended: Promise<void> | undefined;
  const close = () => {
    ended ??= end();
    return ended;
  };
  onTestFinished(close);
  return { client, requests, tokenFile, setToken, close };
}

export async function writeStubKubeconfig(directory: string, server: string, user: object): Promise<string> {
  const path = join(directory, "kubeconfig");
  const config = {
    "current-context": "stub",
    contexts: [{ name: "stub", context: { cluster: "stub", user: "tester" } }],
    clusters: [{ name: "stub", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "tester", user }],
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

async function read(incoming: IncomingMessage): Promise<StubRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { method = "", url = "", headers } = incoming;
  return {
    method,
    url,
    authorization: headers.authorization,
    accept: headers.accept,
    body: Buffer.concat(chunks).toString(),
  };
}

/** A request whose sender went away before its end. */
function ignore(): void {}

type Headers = Record<string, string>;

export function sendJson(response: ServerResponse, status: number, value: object, headers: Headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

export function sendStatus(response: ServerResponse, code: number, reason: string, headers: Headers = {}) {
  sendJson(response, code, { kind: "Status", status: "Failure", code, reason, message: `${reason}!` }, headers);
}
