/** The shim when system calls fail, are interrupted or do half of their work: durable or refused, whole or nothing. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NET_CONF, requireCniError, root, runShim } from "./shim/run-shim.ts";
import { answer, createDirectory, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

const { EINTR, EAGAIN, EIO, ENOSPC, EMFILE, EACCES, EXDEV, EEXIST, ENOMEM } = constants.errno;
const CALLS = ["read", "write", "fsync", "renameat", "close", "mkdir", "openat", "socket", "send", "recv", "poll"];
const RESULT = '{"cniVersion":"1.0.0","ips":[]}';

let directory: string;
let executable: string;
let env: Record<string, string>;

beforeAll(() => {
  directory = createDirectory();
  executable = join(directory, "berth");
  const sources = globSync("native/*.c", { cwd: root });
  const flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"];
  const wraps = CALLS.map((call) => `-Wl,--wrap=${call}`);
  const all = [...flags, ...wraps, "-o", executable, "test/e2e/shim/faults.c", ...sources];
  execFileSync("cc", all, { cwd: root, stdio: "inherit" });
});

afterAll(() => rmSync(directory, { recursive: true }));

beforeEach(() => {
  env = {
    BERTH_SOCKET: join(directory, "agent.sock"),
    BERTH_SPOOL: join(directory, "spool"),
    BERTH_CONNECT_WAIT: "0",
    TRACE: join(directory, "trace"),
  };
  for (const path of ["spool", "trace"]) rmSync(join(directory, path), { recursive: true, force: true });
});

const spooled = () => (existsSync(join(directory, "spool")) ? readdirSync(join(directory, "spool")) : []);
const run = (command: string, fault?: string) =>
  runShim({ executable, command, env: { ...env, ...(fault === undefined ? {} : { FAULT: fault }) } });

describe("a DEL", () => {
  it("is on disk before it has its name, and its name is on disk before the shim ends", async () => {
    expect((await run("DEL")).exitCode).toBe(0);
    const calls = readFileSync(join(directory, "trace"), "utf8").trim().split("\n");
    expect(calls.slice(calls.indexOf("mkdir"))).toEqual(
      // the new directory in its parent; the file; its name; the line on stderr
      ["mkdir", "openat", "fsync", "close", "openat", "write", "fsync", "close", "renameat", "fsync", "close", "write"],
    );
  });

  it.each<[string, string, number]>([
    ["the directory cannot be made", "mkdir:1", EACCES],
    ["the parent of a new directory cannot be opened", "openat:1", EMFILE],
    ["the parent of a new directory cannot be synchronised", "fsync:1", EIO],
    ["the file cannot be made", "openat:2", ENOSPC],
    ["the file's name is taken", "openat:2", EEXIST],
    ["the file cannot be written", "write:1", ENOSPC],
    ["the file cannot be synchronised", "fsync:2", EIO],
    ["the file cannot be closed", "close:3", EIO],
    ["the file cannot be renamed", "renameat:1", EXDEV],
  ])("is refused, and leaves no file, when %s", async (_, fault, errno) => {
    const outcome = await run("DEL", `${fault}:${errno}`);
    expect(requireCniError(outcome)).toMatchObject({ code: 5, msg: expect.stringContaining("Cannot record this DEL") });
    expect(spooled()).toEqual([]);
  });

  it("is refused when its name may not be on disk", async () => {
    expect(requireCniError(await run("DEL", `fsync:3:${EIO}`)).code).toBe(5);
  });

  it("is whole on disk when every write does a part, or is interrupted", async () => {
    for (const fault of ["write:0:7", `write:1:${EINTR}`]) {
      expect((await run("DEL", fault)).exitCode).toBe(0);
      const [file = ""] = spooled();
      expect(readFileSync(join(directory, "spool", file), "utf8").endsWith(`\r\n\r\n${NET_CONF}`)).toBe(true);
      rmSync(join(directory, "spool"), { recursive: true });
    }
  });

  it.each([`socket:1:${EMFILE}`, `socket:1:${ENOMEM}`])("is spooled when there is no socket: %s", async (fault) => {
    expect((await run("DEL", fault)).exitCode).toBe(0);
    expect(spooled()).toHaveLength(1);
  });
});

describe("any verb", () => {
  it.each([
    `read:1:${EINTR}`,
    `read:1:${EAGAIN}`,
    "read:0:3",
    `send:1:${EINTR}`,
    "send:0:5",
    `recv:1:${EINTR}`,
    `recv:1:${EAGAIN}`,
    "recv:0:1",
    `poll:1:${EINTR}`,
    `poll:2:${EINTR}`,
    `poll:4:${EINTR}`,
    `write:1:${EINTR}`,
    `write:1:${EAGAIN}`,
    "write:0:1",
  ])("gets through %s", async (fault) => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    env.BERTH_SOCKET = agent.socketPath;
    expect(await run("ADD", fault)).toMatchObject({ exitCode: 0, stdout: Buffer.from(RESULT) });
    expect(agent.requests[0]?.toString().endsWith(NET_CONF)).toBe(true);
  });

  it.each<[string, number, number]>([
    [`read:1:${EIO}`, 5, 0],
    [`poll:2:${ENOMEM}`, 5, 0],
    [`socket:1:${EMFILE}`, 11, 0],
    [`poll:4:${ENOMEM}`, 11, 1],
    [`recv:1:${EIO}`, 11, 1],
  ])("names the fault at %s: code %i", async (fault, code, connections) => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    env.BERTH_SOCKET = agent.socketPath;
    expect(requireCniError(await run("ADD", fault)).code).toBe(code);
    expect(agent.connections).toBe(connections);
  });

  it("reads the answer although it could not send all: the agent may have given one", async () => {
    await using agent = await openScriptedAgent(() => {});
    agent.refuse = (connection) => connection.end(answer(503, '{"code":11,"msg":"busy"}'));
    env.BERTH_SOCKET = agent.socketPath;
    const outcome = await run("ADD", `send:1:${constants.errno.EPIPE}`);
    expect(outcome.stdout.toString()).toBe('{"code":11,"msg":"busy"}');
  });

  it("is no success when the result cannot be written", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    env.BERTH_SOCKET = agent.socketPath;
    expect(await run("ADD", `write:1:${EIO}`)).toMatchObject({ exitCode: 1, stdout: Buffer.alloc(0) });
  });
});
