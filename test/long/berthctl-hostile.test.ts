/** berthctl with an agent that answers without end: it says so and ends, in bounded time and memory. */
import type { Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../e2e/shim/run-shim.ts";
import { openScriptedAgent, type Script } from "../e2e/shim/scripted-agent.ts";
import { runCommand } from "../lab/command.ts";

/** Megabytes of its heap: a berthctl that keeps all that it is sent ends. */
const LIMIT = "--max-old-space-size=400";

function answerWith(connection: Socket, body: string, status = "200 OK"): void {
  connection.end(`HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

const row = (cursor: string): string =>
  JSON.stringify([
    {
      ...{ address: "10.6.0.1", addressSpace: "", pool: "blue", state: "Bound", namespace: "shop", pod: "web-0" },
      ...{ interface: "eth0", node: "n1", containerId: "c1", network: "lan", since: "", owner: "", cursor },
    },
  ]);

/** Sends as fast as it is read. */
function flood(connection: Socket): void {
  connection.write("HTTP/1.1 200 OK\r\n\r\n[");
  const piece = "1,".repeat(500_000);
  const more = (): void => {
    while (connection.writable && connection.write(piece));
  };
  connection.on("drain", more);
  more();
}

function drip(connection: Socket): void {
  connection.write("HTTP/1.1 200 OK\r\n\r\n[");
  const timer = setInterval(() => connection.write(" "), 500);
  connection.on("close", () => clearInterval(timer));
}

let asked = 0;

const HEALTH = {
  status: "ready",
  version: "1",
  mode: "embedded",
  problems: [],
  spool: { waiting: 0, rejected: 0 },
  socketRestored: 0,
};

/** Answers each page of addresses with one of the cursor. */
const pages =
  (cursorOf: () => string): Script =>
  (connection, request) =>
    answerWith(connection, request.includes("/v1/health") ? JSON.stringify(HEALTH) : row(cursorOf()));

it.each<[what: string, script: Script, said: RegExp, code?: number]>([
  ["a cursor that stays", pages(() => "10.6.0.1"), /come to the end of its addresses/],
  ["cursors for ever", pages(() => `c${asked++}`), /come to the end of its addresses/],
  ["a body without end", flood, /answers with more than 67108864 bytes/],
  [
    "half an answer",
    (connection) => connection.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n["),
    /The agent on .* did not complete its answer: aborted/,
  ],
  ["a byte now and then", drip, /did not answer in time/],
  [
    "a message of 20 MB",
    (connection) => answerWith(connection, JSON.stringify({ msg: "x".repeat(20_000_000) }), "422 No"),
    /xxx… \(\d+ more characters\)/,
    1,
  ],
])("berthctl ends with one line for an agent that gives: %s", async (_, script, said, code = 3) => {
  await using agent = await openScriptedAgent(script);
  const argv = [process.execPath, LIMIT, join(root, "dist/berthctl.mjs"), "allocations", "--socket", agent.socketPath];
  const { exitCode, stdout, stderr } = await runCommand(argv, { timeoutMs: 60_000 });
  expect([exitCode, stdout]).toEqual([code, ""]);
  expect(stderr).toMatch(said);
  expect(stderr.length).toBeLessThan(10_000);
});
