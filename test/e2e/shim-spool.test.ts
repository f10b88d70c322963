/** A DEL that the agent cannot take: recorded so that it can be replayed, or refused; never lost, never hanging. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { NET_CONF, requireCniError, root, runShim } from "./shim/run-shim.ts";
import { answer, createDirectory, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

let directory: string;
let spool: string;
let env: Record<string, string>;

beforeEach(() => {
  directory = createDirectory();
  spool = join(directory, "spool");
  env = { BERTH_SOCKET: join(directory, "agent.sock"), BERTH_SPOOL: spool, CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0" };
  const created = directory;
  onTestFinished(() => rmSync(created, { recursive: true, force: true }));
});

/** Sends raw bytes to a real HTTP server and returns the request that it decoded. */
async function replay(bytes: Buffer): Promise<{ headers: IncomingMessage["headers"]; url: string; body: string }> {
  const path = join(directory, "replay.sock");
  const server = createServer();
  await new Promise<void>((listening) => server.listen(path, listening));
  const request = new Promise<IncomingMessage>((received) => server.once("request", received));
  const connection = connect(path, () => connection.end(bytes));
  const message = await request;
  const chunks: Buffer[] = await message.toArray();
  connection.destroy();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  return { headers: message.headers, url: message.url ?? "", body: Buffer.concat(chunks).toString() };
}

describe("recorded", () => {
  it("as the exact request, in a private file of a private directory", async () => {
    const outcome = await runShim({ command: "DEL", env, executable: join(root, "dist/bin/coordinator") });
    expect(outcome).toMatchObject({ exitCode: 0, stdout: Buffer.alloc(0) });
    expect(outcome.stderr).toContain(`DEL recorded in ${spool}`);
    const [file = "", ...others] = readdirSync(spool);
    expect(others).toEqual([]);
    expect(file).toMatch(/^[0-9]{10}\.[0-9]{9}-[0-9]+\.del$/);
    expect(Math.abs(Number(file.split("-")[0]) - Date.now() / 1_000)).toBeLessThan(10);
    expect(statSync(spool).mode & 0o777).toBe(0o700);
    expect(statSync(join(spool, file)).mode & 0o777).toBe(0o600);
    const { headers, url, body } = await replay(readFileSync(join(spool, file)));
    expect(url).toBe("/v1/cni/coordinator");
    expect(headers).toMatchObject({ "cni-command": "DEL", "cni-containerid": "c1", "cni-ifname": "eth0" });
    expect(body).toBe(NET_CONF);
  });

  it("with the bytes that the agent would have got", async () => {
    await using agent = await openScriptedAgent(sending(answer(500, "oops")), directory);
    await runShim({ command: "DEL", env });
    const [file = ""] = readdirSync(spool);
    expect(readFileSync(join(spool, file)).equals(agent.requests[0] as Buffer)).toBe(true);
  });

  it("in a directory that is there already, which keeps its mode and its files", async () => {
    mkdirSync(spool);
    chmodSync(spool, 0o755);
    writeFileSync(join(spool, "other"), "x");
    expect((await runShim({ command: "DEL", env })).exitCode).toBe(0);
    expect(readdirSync(spool).sort()).toEqual([expect.stringMatching(/\.del$/), "other"]);
    expect(statSync(spool).mode & 0o777).toBe(0o755);
  });

  it("through a symbolic link to a directory", async () => {
    mkdirSync(join(directory, "elsewhere"));
    symlinkSync("elsewhere", spool);
    expect((await runShim({ command: "DEL", env })).exitCode).toBe(0);
    expect(readdirSync(join(directory, "elsewhere"))).toHaveLength(1);
  });

  it("each of many at once under its own name, the directory being made by the first", async () => {
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => runShim({ command: "DEL", env })));
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual(new Array(40).fill(0));
    expect(readdirSync(spool).filter((name) => name.endsWith(".del"))).toHaveLength(40);
  });

  it("with a configuration of 1 MiB", async () => {
    const stdin = NET_CONF.padEnd(1024 * 1024);
    expect((await runShim({ command: "DEL", env, stdin })).exitCode).toBe(0);
    const [file = ""] = readdirSync(spool);
    expect(readFileSync(join(spool, file)).subarray(-stdin.length).toString()).toBe(stdin);
  });

  it("even when stderr is not read", async () => {
    const closed = ["sh", "-c", 'exec "$0" 2>&-'];
    expect((await runShim({ command: "DEL", env, prefix: closed })).exitCode).toBe(0);
    expect(
      readFileSync(join(spool, readdirSync(spool)[0] ?? ""))
        .toString()
        .endsWith(NET_CONF),
    ).toBe(true);
  });

  it("even when the wait for the agent is misconfigured, which concerns others", async () => {
    expect((await runShim({ command: "DEL", env: { ...env, BERTH_CONNECT_WAIT: "x" } })).exitCode).toBe(0);
    expect(readdirSync(spool)).toHaveLength(1);
  });
});

it.each(["ADD", "CHECK", "GC", "STATUS"])("only DEL, and not %s", async (command) => {
  mkdirSync(spool);
  await runShim({ command, env: { ...env, BERTH_CONNECT_WAIT: "0" } });
  expect(readdirSync(spool)).toEqual([]);
});

/** Runs the shim where `mount` has been done in a mount namespace of its own, and checks the refusal. */
async function refused(wanted: RegExp, prefix?: readonly string[]): Promise<void> {
  const outcome = await runShim({
    command: "DEL",
    env: { ...env, PATH: process.env.PATH ?? "" },
    ...(prefix && { prefix }),
  });
  const { cniVersion, code, msg } = requireCniError(outcome);
  expect({ cniVersion, code }).toEqual({ cniVersion: "1.0.0", code: 5 });
  const start = `Cannot record this DEL in directory "${env.BERTH_SPOOL}": `;
  expect(msg.startsWith(start), msg).toBe(true);
  expect(msg.slice(start.length).split(";")[0]).toMatch(wanted);
  expect(msg).toContain(`the agent at "${env.BERTH_SOCKET}" could not process it either: it cannot be reached`);
}

/** A tmpfs over the spool, filled by `fill`; its files are printed on stderr afterwards. */
function overTmpfs(options: string, fill: string): string[] {
  const script = `mount -t tmpfs -o ${options} none "$BERTH_SPOOL" && cd "$BERTH_SPOOL" && ${fill}; "$0"; code=$?; ls -A . >&2; exit $code`;
  return ["unshare", "--mount", "sh", "-c", script];
}

describe("refused with code 5", () => {
  it("when the spool is a file", async () => {
    writeFileSync(spool, "");
    await refused(/^Not a directory$/);
  });

  it("when the spool's parent is missing", async () => {
    env.BERTH_SPOOL = join(directory, "a/b");
    await refused(/^No such file or directory$/);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("when its path is longer than the kernel takes", async () => {
    env.BERTH_SPOOL = `/${"x".repeat(300)}`;
    await refused(/^File ?name too long$/);
  });

  it("when the spool is read-only", async () => {
    mkdirSync(spool);
    await refused(/^Read-only file system$/, overTmpfs("ro", "true"));
  });

  it("when the parent is read-only and the spool missing", async () => {
    const script = `mount --bind ${directory} ${directory} && mount -o remount,ro,bind ${directory}; exec "$0"`;
    await refused(/^Read-only file system$/, ["unshare", "--mount", "sh", "-c", script]);
  });

  it("when there is no room for a file", async () => {
    mkdirSync(spool);
    await refused(/^No space left on device$/, overTmpfs("nr_inodes=1", "true"));
  });

  it("when there is no room for its content, and leaves no part of it", async () => {
    mkdirSync(spool);
    const prefix = overTmpfs("size=4k", "head -c 4096 /dev/zero >filler");
    const outcome = await runShim({ command: "DEL", env: { ...env, PATH: process.env.PATH ?? "" }, prefix });
    expect(requireCniError(outcome)).toMatchObject({
      code: 5,
      msg: expect.stringContaining("No space left on device"),
    });
    expect(outcome.stderr.trim()).toBe("filler");
  });
});
