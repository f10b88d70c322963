/** The shim by itself: VERSION, invocation, environment. */
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SUPPORTED_VERSIONS } from "../../host/cni/version.ts";
import { readVersion } from "../../scripts/setup/version.mjs";
import { runCommand } from "../lab/command.ts";
import { decodeObject, NET_CONF, requireCniError, root, runShim } from "./shim/run-shim.ts";
import { answer, createDirectory, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

const RESULT = '{"cniVersion":"1.0.0","ips":[{"address":"10.6.0.21/24"}]}';
const NOWHERE = { BERTH_SOCKET: "/nonexistent/agent.sock", BERTH_CONNECT_WAIT: "0" };

describe("VERSION", () => {
  it.each<[string, string, string]>([
    ...SUPPORTED_VERSIONS.map((v): [string, string, string] => [`version ${v}`, `{"cniVersion":"${v}"}`, v]),
    ["an unknown version", '{"cniVersion":"9.9.9"}', "9.9.9"],
    ["no version", "{}", "1.1.0"],
    ["an empty version", '{"cniVersion":""}', "1.1.0"],
    ["an empty input, as of a terminal's user", "", "1.1.0"],
    ["an input of blanks", " \n", "1.1.0"],
    ["a key with escapes", '{"cni\\u0056ersion":"0.4.0"}', "0.4.0"],
    ["the last of two", '{"cniVersion":"0.4.0","cniVersion":"1.0.0"}', "1.0.0"],
    ["none from deeper levels", '{"a":{"cniVersion":"0.4.0"},"b":[{"cniVersion":"0.3.1"}]}', "1.1.0"],
  ])("repeats %s", async (_, stdin, version) => {
    const outcome = await runShim({ command: "VERSION", stdin });
    expect(decodeObject(outcome.stdout)).toEqual({ cniVersion: version, supportedVersions: [...SUPPORTED_VERSIONS] });
    expect(outcome.exitCode).toBe(0);
  });

  it.each([
    "[]",
    "null",
    '{"cniVersion":"1.0.0"',
    '{"cniVersion":1}',
    '{"cniVersion":null}',
    '{"cniVersion":"\\u0031"}',
    `{"cniVersion":"${"1".repeat(65)}"}`,
    '{"cniVersion":"1.0.0"} x',
    `${"[".repeat(100_000)}`,
    new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  ])("refuses %j with code 6", async (stdin) => {
    const error = requireCniError(await runShim({ command: "VERSION", stdin }));
    expect(error).toMatchObject({ cniVersion: "1.1.0", code: 6 });
  });
});

describe("--probe", () => {
  const probe = async (what: string, env: Record<string, string>) => {
    const { exitCode, stdout, stderr, elapsedMs } = await runShim({ args: ["--probe", what], env, stdin: null });
    expect(stdout.length).toBe(0);
    return { exitCode, stderr, elapsedMs };
  };

  it.each<[status: number, live: number, ready: number]>([
    [200, 0, 0],
    [503, 0, 1],
    [500, 3, 3],
    [422, 3, 3],
  ])("an agent that answers %i: live %i, ready %i", async (status, live, ready) => {
    await using agent = await openScriptedAgent(sending(answer(status, "{}")));
    expect((await probe("live", agent.env)).exitCode).toBe(live);
    expect((await probe("ready", agent.env)).exitCode).toBe(ready);
    const request = "GET /v1/health HTTP/1.1\r\nHost: berth\r\n\r\n";
    expect(agent.requests.map(String)).toEqual([request, request]);
  });

  it("says on stderr that the agent is not ready", async () => {
    await using agent = await openScriptedAgent(sending(answer(503, "{}")));
    const { stderr } = await probe("ready", agent.env);
    expect(stderr).toBe(`Agent at ${agent.socketPath} is not ready; see berthctl check\n`);
  });

  it.each(["live", "ready"])("%s fails at its limit for an agent that hangs", async (what) => {
    await using agent = await openScriptedAgent(() => {});
    const { exitCode, stderr, elapsedMs } = await probe(what, { ...agent.env, BERTH_REQUEST_LIMIT: "0.5" });
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining("gave no complete answer within the time limit")]);
    expect(elapsedMs).toBeGreaterThan(450);
    expect(elapsedMs).toBeLessThan(7_000);
  });

  it.each(["live", "ready"])("%s fails at once without a socket", async (what) => {
    const { exitCode, stderr, elapsedMs } = await probe(what, NOWHERE);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining("cannot be reached: No such file")]);
    expect(elapsedMs).toBeLessThan(5_000);
  });

  it.each(["", "alive", "ready "])("of %j is a usage error", async (what) => {
    expect(await probe(what, NOWHERE)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("live or ready") });
  });
});

describe("invocation", () => {
  it.each([{}, { CNI_COMMAND: "" }])("introduces itself on stderr without a command: %j", async (env) => {
    const outcome = await runShim({ env });
    expect(outcome.exitCode).toBe(0);
    expect(outcome.stdout.length).toBe(0);
    expect(outcome.stderr).toMatch(`Berth ${readVersion()} (build development): `);
    for (const version of SUPPORTED_VERSIONS) expect(outcome.stderr).toContain(version);
  });

  it.each(["berth-agent", "berth-controller", "berthctl"])("%s --version prints the release", async (program) => {
    const { stdout } = await runCommand([process.execPath, `dist/${program}.mjs`, "--version"]);
    expect(stdout).toBe(`${readVersion()}\n`);
  });

  it("refuses an unknown command in the version of its input", async () => {
    const error = requireCniError(await runShim({ command: "add" }));
    expect(error).toMatchObject({ cniVersion: "1.0.0", code: 4 });
    expect(error.msg).toContain('CNI_COMMAND is "add"');
  });

  it("refuses a name that is no plugin", async () => {
    const directory = createDirectory();
    copyFileSync(join(root, "dist/bin/berth"), join(directory, "bear"));
    const error = requireCniError(await runShim({ executable: join(directory, "bear"), command: "ADD" }));
    expect(error).toMatchObject({ code: 4, msg: expect.stringContaining('"bear"') });
    rmSync(directory, { recursive: true });
  });

  it("is one program under five names, static, under 27 KB", () => {
    const names = ["berth", "coordinator", "ifacer", "berth-coordinator", "berth-ifacer"];
    const files = names.map((name) => readFileSync(join(root, "dist/bin", name)));
    for (const file of files) expect(file.equals(files[0] as Buffer)).toBe(true);
    expect(files[0]?.length).toBeLessThan(27_000);
    expect(execFileSync("readelf", ["-l", join(root, "dist/bin/berth")]).toString()).not.toContain("INTERP");
  });

  it("gives up on a stdin that never ends", async () => {
    const outcome = await runShim({ command: "STATUS", env: NOWHERE, stdin: null });
    expect(requireCniError(outcome)).toMatchObject({ cniVersion: "1.1.0", code: 5 });
    expect(outcome.elapsedMs).toBeGreaterThan(1_900);
  });

  it.each([1024 * 1024, 1024 * 1024 + 1])("takes a configuration up to 1 MiB: %i bytes", async (size) => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    const stdin = NET_CONF.padEnd(size);
    const outcome = await runShim({ command: "ADD", env: agent.env, stdin });
    if (size > 1024 * 1024) {
      expect(requireCniError(outcome).code).toBe(6);
      expect(agent.connections).toBe(0);
      expect((await runShim({ command: "DEL", env: agent.env, stdin })).exitCode).toBe(0);
      expect(agent.requests[0]?.toString()).toMatch(/\r\nContent-Length: 0\r\n[^{]*$/);
    } else {
      expect(outcome.exitCode).toBe(0);
      expect(agent.requests[0]?.subarray(-size).toString()).toBe(stdin);
    }
  });

  it("reads a stdin that comes in pieces", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    const outcome = await runShim({
      command: "ADD",
      env: agent.env,
      stdin: null,
      started: (child) => {
        child.stdin?.write(NET_CONF.slice(0, 5));
        setTimeout(() => child.stdin?.end(NET_CONF.slice(5)), 50);
      },
    });
    expect(outcome.stdout.toString()).toBe(RESULT);
    expect(agent.requests[0]?.toString()).toContain(`\r\n\r\n${NET_CONF}`);
  });
});

describe("environment", () => {
  const forwarded = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH", "CNI_NETNS_OVERRIDE"];

  const UNFIT = ["a\nb", "a\r\nX: y", "\t", "a\x7f", "caf\u00e9", " a", "a ", "x".repeat(65_537)];

  /** The header lines that the agent gets of a call with that variable, which must succeed. */
  async function headersOf(command: string, name: string, value: string): Promise<string> {
    await using agent = await openScriptedAgent(sending(answer(200, command === "ADD" ? RESULT : "")));
    const env = { CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", CNI_PATH: "/opt/cni/bin", ...agent.env };
    const outcome = await runShim({ command, env: { ...env, [name]: value } });
    expect([outcome.exitCode, outcome.stdout.toString()]).toEqual([0, command === "ADD" ? RESULT : ""]);
    return agent.requests[0]?.toString().split("\r\n\r\n")[0] ?? "";
  }

  it.each(forwarded.filter((name) => name !== "CNI_IFNAME"))(
    "for a DEL leaves out a %s that no header can carry, and forwards all else",
    async (name) => {
      for (const value of UNFIT) {
        const headers = await headersOf("DEL", name, value);
        expect(headers).toMatch(/\r\nCNI-IfName: eth0(?:\r\n|$)/);
        expect(headers).not.toMatch(new RegExp(`\r\n${name.replaceAll("_", "-")}:`, "i"));
      }
    },
  );

  it.each(["ADD", "CHECK", "DEL", "GC", "STATUS"])("for %s leaves out a TRACEPARENT of that kind", async (command) => {
    for (const value of UNFIT) expect(await headersOf(command, "TRACEPARENT", value)).not.toContain("Traceparent");
    expect(await headersOf(command, "TRACEPARENT", "00-1-2-01")).toContain("\r\nTraceparent: 00-1-2-01");
  });

  it("encodes characters of CNI_IFNAME that no header can carry", async () => {
    for (const command of ["ADD", "DEL"])
      expect(await headersOf(command, "CNI_IFNAME", "\tcaf\u00e9 5%~\n")).toContain(
        "CNI-IfName: %09caf%C3%A9%205%25~%0A\r\n",
      );
  });

  it.each(forwarded.filter((name) => name !== "CNI_IFNAME"))(
    "of an ADD refuses bytes in %s that no header can carry",
    async (name) => {
      for (const value of UNFIT.slice(0, -1)) {
        const error = requireCniError(await runShim({ command: "ADD", env: { ...NOWHERE, [name]: value } }));
        expect(error).toMatchObject({
          cniVersion: "1.0.0",
          code: 4,
          msg: expect.stringContaining(`Variable ${name} is`),
        });
      }
    },
  );

  it("takes variables up to 64 KiB, all at once", async () => {
    await using agent = await openScriptedAgent(sending(answer(200, RESULT)));
    const longest = Object.fromEntries(forwarded.map((name, index) => [name, String(index).repeat(65_536)]));
    expect((await runShim({ command: "ADD", env: { ...agent.env, ...longest } })).exitCode).toBe(0);
    for (const value of Object.values(longest)) expect(agent.requests[0]?.includes(value)).toBe(true);
    const env = { ...agent.env, ...longest, CNI_ARGS: "x".repeat(65_537) };
    expect(requireCniError(await runShim({ command: "ADD", env }))).toMatchObject({
      code: 4,
      msg: "Variable CNI_ARGS is longer than 65536 bytes",
    });
  });

  it.each(["x", "-1", "1s", "1e3", " 1", ".5", "1.", "3601", "3600.001", "1".repeat(40), "0x10"])(
    "refuses %j as a number of seconds",
    async (value) => {
      for (const name of ["BERTH_CONNECT_WAIT", "BERTH_REQUEST_LIMIT"]) {
        const error = requireCniError(await runShim({ command: "ADD", env: { ...NOWHERE, [name]: value } }));
        expect(error).toMatchObject({ code: 4, msg: expect.stringContaining(`Variable ${name} is "${value}"`) });
      }
    },
  );

  it("refuses a socket path that no address can hold", async () => {
    const env = { BERTH_SOCKET: `/${"s".repeat(107)}` };
    const error = requireCniError(await runShim({ command: "STATUS", env }));
    expect(error).toMatchObject({ code: 4, msg: expect.stringContaining("BERTH_SOCKET") });
  });

  it("prints of a long variable the beginning, as valid JSON even when every byte is escaped", async () => {
    const env = { ...NOWHERE, BERTH_REQUEST_LIMIT: "\u0001".repeat(5_000) };
    const { msg } = requireCniError(await runShim({ command: "ADD", env }));
    expect(msg).toContain(`BERTH_REQUEST_LIMIT is "${"\\x01".repeat(4_096)}..."; want seconds`);
  });

  it("prints any bytes of a variable as valid JSON", async () => {
    const env = { ...NOWHERE, CNI_ARGS: '"\\\u0001\u{1f431}', BERTH_SPOOL: "/" };
    const { stdout } = await runShim({ command: "ADD", env });
    expect(decodeObject(stdout).msg).toContain('is ""\\\\x01\\xf0\\x9f\\x90\\xb1";');
  });
});

it("no header of its source has the name of one of the C library, which it would hide from a build with -Inative", () => {
  const headers = readdirSync(join(root, "native")).filter((name) => name.endsWith(".h"));
  expect(headers).toContain("shim-limits.h");
  const isStandard = (name: string): boolean => {
    try {
      execFileSync("cc", ["-E", "-"], { input: `#include <${name}>\n`, stdio: ["pipe", "ignore", "ignore"] });
      return true;
    } catch {
      return false;
    }
  };
  expect(["limits.h", ...headers].filter(isStandard)).toEqual(["limits.h"]);
});
