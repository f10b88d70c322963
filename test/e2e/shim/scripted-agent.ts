/**
 * An agent whose every byte the test decides: a unix socket, a request read to its end, then a script.
 * Effects: a socket file in a directory of its own, removed with it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Called with the complete request, once per connection. */
export type Script = (connection: Socket, request: Buffer) => void;

export interface ScriptedAgent extends AsyncDisposable {
  readonly directory: string;
  readonly socketPath: string;
  /** BERTH_SOCKET and BERTH_SPOOL (`directory`/spool, not there yet). */
  readonly env: Record<string, string>;
  readonly requests: readonly Buffer[];
  script: Script;
  /** Takes the connection over before any of the request is read, when set. */
  refuse?: (connection: Socket) => void;
  connections: number;
}

/** Tells whether the whole request is there, by the end of its head and the length of its body. */
function isComplete(request: Buffer): boolean {
  const end = request.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /^Content-Length: ([0-9]+)$/m.exec(request.subarray(0, end).toString("latin1").replaceAll("\r", ""));
  return request.length >= end + 4 + Number(length?.[1] ?? 0);
}

/** An empty directory for the socket and the spool. */
export function createDirectory(): string {
  return mkdtempSync(join(tmpdir(), "berth-shim-"));
}

/** Listens at `directory`/agent.sock; accepts at once, answers when the request is complete. */
export async function openScriptedAgent(script: Script, directory = createDirectory()): Promise<ScriptedAgent> {
  const socketPath = join(directory, "agent.sock");
  const requests: Buffer[] = [];
  const open = new Set<Socket>();
  const server = createServer((connection) => {
    agent.connections++;
    open.add(connection);
    connection.on("error", () => {});
    connection.on("close", () => open.delete(connection));
    if (agent.refuse !== undefined) {
      agent.refuse(connection);
      return;
    }
    let request: Buffer = Buffer.alloc(0);
    connection.on("data", (chunk: Buffer) => {
      if (isComplete(request)) return;
      request = Buffer.concat([request, chunk]);
      if (!isComplete(request)) return;
      requests.push(request);
      agent.script(connection, request);
    });
  });
  const agent: ScriptedAgent = {
    directory,
    socketPath,
    env: { BERTH_SOCKET: socketPath, BERTH_SPOOL: join(directory, "spool") },
    requests,
    script,
    connections: 0,
    async [Symbol.asyncDispose]() {
      for (const connection of open) connection.destroy();
      await new Promise((closed) => server.close(closed));
      rmSync(directory, { recursive: true, force: true });
    },
  };
  await new Promise<void>((listening) => server.listen(socketPath, listening));
  return agent;
}

/** A well-formed answer. */
export function answer(status: number, body: string | Uint8Array, headers: Record<string, string> = {}): Buffer {
  const bytes = Buffer.from(body);
  const lines = Object.entries({ "Content-Length": String(bytes.length), ...headers });
  const head = [`HTTP/1.1 ${status} Some Phrase`, ...lines.map(([name, value]) => `${name}: ${value}`), "", ""];
  return Buffer.concat([Buffer.from(head.join("\r\n")), bytes]);
}

/** Sends the bytes and ends the connection. */
export function sending(bytes: string | Uint8Array): Script {
  return (connection) => connection.end(bytes);
}
