/**
 * The shim against agents that break off, lie, dawdle or talk nonsense: valid CNI JSON or a spooled DEL, always in
 * time.
 */
import { spawn } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tryOr } from "../../host/lib/try-or.ts";
import { hostileAnswers } from "./shim/hostile-answers.ts";
import { requireCniError, runShim, type ShimOutcome } from "./shim/run-shim.ts";
import { answer, createDirectory, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

const LIMIT_S = 0.3;
/** For an agent that is not slow itself: a busy machine must not make it so. */
const PATIENT_S = 5;
/** Time that a busy machine may add to the limit. */
const SLACK_MS = 5_000;

function spooled(spool: string | undefined): string[] {
  return tryOr(() => readdirSync(spool ?? ""), []);
}

function checkDel(outcome: ShimOutcome, spool: string | undefined, hint: string): void {
  expect(outcome).toMatchObject({ exitCode: 0, stdout: Buffer.alloc(0), stderr: expect.stringContaining(hint) });
  expect(spooled(spool)).toEqual([expect.stringMatching(/^[0-9]+\.[0-9]{9}-[0-9]+\.del$/)]);
}

const codes = [
  ["ADD", 11],
  ["CHECK", 11],
  ["GC", 11],
  ["STATUS", 50],
] as const;

describe("an agent that", () => {
  it.each(hostileAnswers)("%s", async (_, script, hint) => {
    await using agent = await openScriptedAgent(script);
    const limitS = hint === "time limit" ? LIMIT_S : PATIENT_S;
    const env: Record<string, string> = { ...agent.env, BERTH_REQUEST_LIMIT: String(limitS) };
    await Promise.all(
      codes.map(async ([command, code]) => {
        const outcome = await runShim({ command, env });
        expect(outcome.elapsedMs, command).toBeLessThan(limitS * 1_000 + SLACK_MS);
        expect(requireCniError(outcome), command).toMatchObject({
          cniVersion: "1.0.0",
          code,
          msg: expect.stringContaining(hint),
        });
        expect(spooled(env.BERTH_SPOOL), command).toEqual([]);
      }),
    );
    expect(agent.connections, "nothing is sent twice").toBe(codes.length);
    const outcome = await runShim({ command: "DEL", env });
    expect(outcome.elapsedMs).toBeLessThan(limitS * 1_000 + SLACK_MS);
    checkDel(outcome, env.BERTH_SPOOL, hint);
  });

  it("answers ADD without a result", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, "")));
    const error = requireCniError(await runShim({ command: "ADD", env: agent.env }));
    expect(error).toMatchObject({ code: 11, msg: expect.stringContaining("without a result") });
  });

  it("closes before it has read the request", async () => {
    await using agent = await openScriptedAgent(() => {});
    const stdin = `{"pad":"${"x".repeat(900_000)}"}`;
    agent.refuse = (connection: Socket) => connection.destroy();
    expect(requireCniError(await runShim({ command: "ADD", env: agent.env, stdin })).code).toBe(11);
    checkDel(await runShim({ command: "DEL", env: agent.env, stdin }), agent.env.BERTH_SPOOL, "connection");
  });

  it("never reads the request", async () => {
    await using agent = await openScriptedAgent(() => {});
    agent.refuse = (connection: Socket) => connection.pause();
    const env: Record<string, string> = { ...agent.env, BERTH_REQUEST_LIMIT: String(LIMIT_S) };
    const stdin = `{"pad":"${"x".repeat(900_000)}"}`;
    const outcome = await runShim({ command: "DEL", env, stdin });
    expect(outcome.elapsedMs).toBeLessThan(LIMIT_S * 1_000 + SLACK_MS);
    checkDel(outcome, env.BERTH_SPOOL, "did not read the request");
  });
});

describe("a socket path that", () => {
  it.each<[string, (path: string) => void, string]>([
    ["is a plain file", (path) => writeFileSync(path, ""), "Connection refused"],
    ["is missing", () => {}, "No such file"],
  ])("%s", async (_, make, hint) => {
    const directory = createDirectory();
    const env = {
      BERTH_SOCKET: join(directory, "agent.sock"),
      BERTH_SPOOL: join(directory, "spool"),
      BERTH_CONNECT_WAIT: "0.1",
    };
    make(env.BERTH_SOCKET);
    for (const [command, code] of codes) {
      expect(requireCniError(await runShim({ command, env }))).toMatchObject({
        code,
        msg: expect.stringContaining(hint),
      });
    }
    checkDel(await runShim({ command: "DEL", env }), env.BERTH_SPOOL, hint);
    rmSync(directory, { recursive: true });
  });

  it("leads to an agent whose queue is full: ADD waits, DEL does not", async () => {
    const directory = createDirectory();
    const path = join(directory, "agent.sock");
    const listen = `require("net").createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log())`;
    const server = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((listening) => server.stdout.once("data", listening));
    server.kill("SIGSTOP");
    const waiting = Array.from({ length: 8 }, () => connect(path).on("error", () => {}));
    await new Promise((later) => setTimeout(later, 50));
    const env = { BERTH_SOCKET: path, BERTH_SPOOL: join(directory, "spool"), BERTH_CONNECT_WAIT: "0.3" };
    const add = await runShim({ command: "ADD", env });
    expect(requireCniError(add)).toMatchObject({ code: 11, msg: expect.stringContaining("temporarily unavailable") });
    expect(add.elapsedMs).toBeGreaterThan(300);
    checkDel(await runShim({ command: "DEL", env }), env.BERTH_SPOOL, "temporarily unavailable");
    for (const connection of waiting) connection.destroy();
    server.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  });
});

it("the limits without an override are those of the protocol", async () => {
  await using agent = await openScriptedAgent(() => {});
  const children: { kill(): boolean }[] = [];
  const start = (command: string) => runShim({ command, env: agent.env, started: (child) => children.push(child) });
  const long = [start("ADD"), start("GC")];
  const [status, check, del] = await Promise.all([start("STATUS"), start("CHECK"), start("DEL")]);
  for (const [outcome, limitMs] of [[status, 2_000] as const, [check, 10_000] as const, [del, 10_000] as const]) {
    expect(outcome.elapsedMs).toBeGreaterThan(limitMs - 5);
    expect(outcome.elapsedMs).toBeLessThan(limitMs + SLACK_MS);
  }
  for (const child of children) child.kill();
  for (const outcome of await Promise.all(long)) expect(outcome.exitCode, "still waiting after 10 s").toBe(null);
});
