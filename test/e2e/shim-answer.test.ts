/** The shim between the runtime and a good agent: the request, answers, waiting for the agent. */
import { openSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NET_CONF, requireCniError, root, runShim } from "./shim/run-shim.ts";
import { answer, createDirectory, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

const RESULT = '{"cniVersion":"1.0.0","ips":[{"address":"10.6.0.21/24"}]}';

it.each([
  ["berth", "berth"],
  ["coordinator", "coordinator"],
  ["ifacer", "ifacer"],
  ["berth-coordinator", "coordinator"],
  ["berth-ifacer", "ifacer"],
])("a request of %s is the protocol's, byte for byte", async (executable, plugin) => {
  await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
  const outcome = await runShim({
    executable: join(root, "dist/bin", executable),
    command: "ADD",
    env: {
      ...agent.env,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: "/run/netns/c1",
      CNI_IFNAME: "eth0",
      CNI_ARGS: "K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop",
      CNI_PATH: "/opt/cni/bin",
      CNI_NETNS_OVERRIDE: "",
      TRACEPARENT: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      HOME: "/root",
    },
  });
  expect(outcome.stdout.toString()).toBe(RESULT);
  expect(agent.requests.map(String)).toEqual([
    [
      `POST /v1/cni/${plugin} HTTP/1.1`,
      "Host: berth",
      "Connection: close",
      "Content-Type: application/json",
      `Content-Length: ${NET_CONF.length}`,
      "CNI-Command: ADD",
      "CNI-ContainerID: c1",
      "CNI-Netns: /run/netns/c1",
      "CNI-IfName: eth0",
      "CNI-Args: K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop",
      "CNI-Path: /opt/cni/bin",
      "CNI-Netns-Override: ",
      "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "",
      NET_CONF,
    ].join("\r\n"),
  ]);
});

describe("answer", () => {
  it.each(["ADD", "CHECK", "DEL", "GC", "STATUS"])("200 to %s is printed unchanged, exit 0", async (command) => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    expect(await runShim({ command, env: agent.env })).toMatchObject({
      exitCode: 0,
      stdout: Buffer.from(RESULT),
      stderr: "",
    });
    expect(agent.connections).toBe(1);
  });

  it.each(["CHECK", "DEL", "GC", "STATUS"])("200 without a body to %s prints nothing, exit 0", async (command) => {
    await using agent = await openScriptedAgent(sending(answer(200, "")));
    expect(await runShim({ command, env: agent.env })).toMatchObject({ exitCode: 0, stdout: Buffer.alloc(0) });
  });

  it.each([400, 404, 500, 503, 599])("%i with a CNI error is printed unchanged, exit 1", async (status) => {
    const body = '{"cniVersion":"0.3.1","code":101,"msg":"Pool \\"blue\\" is exhausted","details":"caf\u00e9"}';
    for (const command of ["ADD", "CHECK", "DEL", "GC", "STATUS"]) {
      await using agent = await openScriptedAgent(sending(answer(status, body)));
      const outcome = await runShim({ command, env: agent.env });
      expect(outcome).toMatchObject({ exitCode: 1, stdout: Buffer.from(body), stderr: "" });
    }
  });

  it("carries a notice to stderr, unprintable bytes visible", async () => {
    const headers = { "berth-notice": 'Family 6 of "blue" is \u0007 disabled' };
    await using agent = await openScriptedAgent(sending(answer(200, RESULT, headers)));
    const outcome = await runShim({ command: "ADD", env: agent.env });
    expect(outcome.stdout.toString()).toBe(RESULT);
    expect(outcome.stderr).toBe('Family 6 of "blue" is \\x07 disabled\n');
  });

  it("does not wait for the connection's end", async () => {
    await using agent = await openScriptedAgent((connection) => connection.write(answer(200, RESULT)));
    const env = { ...agent.env, BERTH_REQUEST_LIMIT: "20" };
    expect((await runShim({ command: "STATUS", env })).elapsedMs).toBeLessThan(10_000);
  });

  it("that cannot be written to stdout is no success", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    const env = agent.env;
    const full = openSync("/dev/full", "w");
    expect((await runShim({ command: "ADD", env, stdio: ["pipe", full, "pipe"] })).exitCode).toBe(1);
    const closed = ["sh", "-c", 'exec "$0" >&-'];
    expect((await runShim({ command: "ADD", env, prefix: closed })).exitCode).toBe(1);
    agent.script = (connection) => setTimeout(() => connection.end(answer(200, RESULT)), 100);
    const gone = await runShim({ command: "ADD", env, started: ({ stdout }) => stdout?.destroy() });
    expect(gone.exitCode).toBe(1); // by EPIPE, not by a signal
  });
});

describe("standard streams that are closed", () => {
  it("never lets the reply end up in another file", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    const prefix = ["sh", "-c", 'exec "$0" >&- 2>&-'];
    expect((await runShim({ command: "ADD", env: agent.env, prefix })).exitCode).toBe(1);
    expect(agent.requests[0]?.toString().endsWith(NET_CONF)).toBe(true);
  });

  it("takes a closed stdin for an empty one", async () => {
    const { exitCode, stdout } = await runShim({ command: "VERSION", prefix: ["sh", "-c", 'exec "$0" <&-'] });
    expect({ exitCode, version: JSON.parse(stdout.toString()).cniVersion }).toEqual({ exitCode: 0, version: "1.1.0" });
  });
});

describe("waiting for the agent", () => {
  it.each(["ADD", "CHECK", "GC"])("%s succeeds when the agent appears late", async (command) => {
    const directory = createDirectory();
    const env = { BERTH_SOCKET: join(directory, "agent.sock"), BERTH_CONNECT_WAIT: "20" };
    const pending = runShim({ command, env });
    await new Promise((later) => setTimeout(later, 300));
    await using _agent = await openScriptedAgent(sending(answer(200, RESULT)), directory);
    const outcome = await pending;
    expect(outcome.stdout.toString()).toBe(RESULT);
    expect(outcome.elapsedMs).toBeGreaterThan(300);
  });

  it.each(["ADD", "CHECK", "GC"])("%s ends with code 11 when it does not", async (command) => {
    const env = { BERTH_SOCKET: "/nonexistent/agent.sock", BERTH_CONNECT_WAIT: "0.25" };
    const outcome = await runShim({ command, env });
    expect(requireCniError(outcome)).toMatchObject({
      cniVersion: "1.0.0",
      code: 11,
      msg: `Agent at "/nonexistent/agent.sock" cannot be reached: No such file or directory; try ${command} again later`,
    });
    expect(outcome.elapsedMs).toBeGreaterThan(250);
    // Unless told otherwise it tries for 20 s.
    expect(outcome.elapsedMs).toBeLessThan(10_000);
  });

  it("STATUS says code 50 at once", async () => {
    const env = { BERTH_SOCKET: "/nonexistent/agent.sock", BERTH_CONNECT_WAIT: "20", BERTH_REQUEST_LIMIT: "20" };
    const outcome = await runShim({ command: "STATUS", env });
    expect(requireCniError(outcome).code).toBe(50);
    expect(outcome.elapsedMs).toBeLessThan(10_000);
  });
});
