/** The three executables as processes: wrong usage, an old Node.js, signals, a log that is not read. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import { type CommandOutcome, requireCommand, runCommand } from "../lab/command.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const BLUE = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true }) };
const PROGRAMS = ["berth-agent", "berth-controller", "berthctl"];
const AGENT = join(root, "dist", "berth-agent.mjs");

function createDirectory(): string {
  const directory = temporaryDirectory("berth-executables-", onTestFinished);
  return directory;
}

function run(program: string, args: readonly string[], nodeArgs: readonly string[] = []): Promise<CommandOutcome> {
  return runCommand([process.execPath, ...nodeArgs, join(root, "dist", `${program}.mjs`), ...args]);
}

describe("compiled code of earlier starts", () => {
  const COMPILED = /(?:accepted|reading cache from) /;
  /** NODE_DEBUG_NATIVE makes Node.js say which files it reads. */
  async function start(cache: string): Promise<string> {
    const env = { NODE_COMPILE_CACHE: undefined, BERTH_CODE_CACHE: cache, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
    const argv = ["sh", "-c", 'umask 0; exec "$@"', "sh", process.execPath, AGENT, "--version"];
    const outcome = await runCommand(argv, { env });
    expect(outcome.exitCode).toBe(0);
    return outcome.stderr;
  }

  it("is kept for its owner alone, and used by the next start", async () => {
    const cache = join(createDirectory(), "code");
    // As Kubernetes makes an emptyDir.
    mkdirSync(cache);
    chmodSync(cache, 0o777);
    await start(cache);
    const kept = readdirSync(cache, { recursive: true, encoding: "utf8" }).map((name) => join(cache, name));
    expect(kept.length).toBeGreaterThan(1);
    for (const path of [cache, ...kept]) expect(statSync(path).mode & 0o077, path).toBe(0);
    expect(await start(cache)).toMatch(COMPILED);
  });

  it("that is damaged ends no start", async () => {
    const cache = join(createDirectory(), "code");
    await start(cache);
    const [folder = ""] = readdirSync(cache);
    for (const name of readdirSync(join(cache, folder))) {
      const path = join(cache, folder, name);
      writeFileSync(
        path,
        readFileSync(path).map((byte, at) => (at % 97 === 96 ? byte ^ 0xff : byte)),
      );
    }
    expect(await start(cache)).not.toMatch(/cache for .* was accepted/);
  });

  it.each<[what: string, make: (directory: string, file: string) => void]>([
    ["a directory that others may write", (directory) => chmodSync(directory, 0o777)],
    ["a file of another user", (_, file) => chownSync(file, 65_534, 65_534)],
    ["a file that others may write", (_, file) => chmodSync(file, 0o620)],
    ["a link", (_, file) => renameSync(file, `${file}.real`) ?? symlinkSync(`${file}.real`, file)],
  ])("is not used with %s", async (_, make) => {
    const cache = join(createDirectory(), "code");
    await start(cache);
    const [folder = ""] = readdirSync(cache);
    const [file = ""] = readdirSync(join(cache, folder));
    make(join(cache, folder), join(cache, folder, file));
    const said = await start(cache);
    expect(said).toContain(`BERTH_CODE_CACHE ${cache} is not used: another user owns or may write ${cache}/${folder}`);
    expect(said).not.toMatch(COMPILED);
  });

  it("that is no directory is not used, and the program starts", async () => {
    const cache = join(createDirectory(), "code");
    writeFileSync(cache, "");
    expect(await start(cache)).toContain(`BERTH_CODE_CACHE ${cache} is not used: it is no directory`);
  });
});

it("the agent serves HTTP without loading the client of Node.js", async () => {
  const show = 'data:text/javascript,process.on("exit",()=>console.error(process.moduleLoadList.join()))';
  const { stderr } = await run("berth-agent", ["--version"], ["--import", show]);
  expect(stderr).toContain("NativeModule http,");
  expect(stderr).not.toContain("undici");
});

it.each<[program: string, args: string[], said: RegExp]>([
  ["berth-agent", ["--no-such"], /unknown option '--no-such'/],
  ["berth-agent", ["--config", "a", "--lock-wait", "x"], /expected seconds/],
  ["berth-agent", [], /expected exactly one of --config/],
  ["berth-controller", ["--no-such"], /unknown option '--no-such'/],
  ["berth-controller", [], /expected exactly one of --kubeconfig/],
  ["berthctl", ["no-such"], /unknown command 'no-such'/],
])("wrong usage ends with 2 and a message: %s %j", async (program, args, said) => {
  const { exitCode, stderr } = await run(program, args);
  expect(stderr).toMatch(said);
  expect(exitCode).toBe(2);
});

it.each([
  ["berth-agent", (path: string) => ["--socket", path]],
  ["berth-agent", (path: string) => ["--metrics-listen", `unix:${path}`]],
  ["berth-controller", (path: string) => ["--kubeconfig", unreachable(), "--listen", `unix:${path}`]],
])("%s puts its socket in the place of no file", async (program, argsFor) => {
  const directory = createDirectory();
  const path = join(directory, "data");
  writeFileSync(path, "kept");
  const own = ["--config", directory, "--state", join(directory, "state"), "--socket", join(directory, "s")];
  const { exitCode, stderr, stdout } = await run(program, [
    ...(program === "berth-agent" ? own : []),
    ...argsFor(path),
  ]);
  expect(readFileSync(path, "utf8")).toBe("kept");
  expect(stderr + stdout).toContain(`${path} is no socket`);
  expect(exitCode).toBe(1);
});

it.each(PROGRAMS)("%s runs from its source, without a build of it", async (program) => {
  const argv = [process.execPath, join(root, "host", "bin", `${program}.ts`), "--help"];
  expect(await runCommand(argv)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`Usage: ${program} `) });
});

it.each(PROGRAMS)(
  "%s says which Node.js it needs when this one is too old, before it loads what that could not read",
  async (program) => {
    const age = 'Object.defineProperty(process.versions,"node",{value:"20.19.0"})';
    const { exitCode, stderr, stdout } = await run(program, ["--version"], ["--import", `data:text/javascript,${age}`]);
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr.trim().split("\n")).toEqual([
      expect.stringMatching(
        new RegExp(`^${program} needs Node.js 26 or newer, this is 20.19.0 .*; install a newer version`),
      ),
    ]);
  },
);

it("the stack of an error names lines of the source", async () => {
  const failing = "data:text/javascript,process.stdout.write=()=>{throw new Error('no output')}";
  const { stderr } = await run("berthctl", ["--version"], ["--enable-source-maps", "--import", failing]);
  expect(stderr).toMatch(new RegExp(`^ {4}at .*\\(${RegExp.escape(root)}/host/cli/berthctl\\.ts:\\d+:\\d+\\)$`, "m"));
});

it("berthctl does not succeed when the disk of its output is full", async () => {
  const argv = ["sh", "-c", 'exec "$@" > /dev/full', "sh", process.execPath, join(root, "dist", "berthctl.mjs")];
  const { exitCode, stderr } = await runCommand([...argv, "--help"]);
  expect(stderr).toBe("berthctl: The output cannot be written: ENOSPC: no space left on device, write\n");
  expect(exitCode).toBe(3);
});

it("SIGTERM ends an agent with 0 also while it waits for another one", () =>
  withWorld(BLUE, async ({ agent }) => {
    const own = createDirectory();
    const args = [AGENT, "--config", own, "--state", join(own, "state"), "--spool", own, "--socket", agent.socket];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
    const ended = once(child, "exit");
    await once(child.stderr, "data");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  }));

describe("SIGHUP and SIGUSR1", () => {
  /** Sends both; then the process is there, has said so, and listens nowhere else. */
  async function survive(pid: number, output: () => string): Promise<void> {
    const listening = async (): Promise<string[]> =>
      (await requireCommand(["ss", "-Hltnp"])).split("\n").filter((line) => line.includes(`pid=${pid},`));
    const before = await listening();
    for (const signal of ["SIGUSR1", "SIGHUP"] as const) process.kill(pid, signal);
    await expect.poll(output, PATIENCE).toContain('"signal":"SIGHUP"');
    expect(await listening()).toEqual(before);
    expect(output()).not.toContain("Debugger listening");
  }

  it("do not end the agent, and open no inspector", () =>
    withWorld(BLUE, async (world) => {
      await survive(world.agent.pid, () => world.agent.stderr());
      expect(await world.add("c1")).toHaveLength(1);
    }));

  it("do not end the controller either", async () => {
    const controller = await startControllerProcess({ kubeconfig: unreachable(), name: "a" });
    onTestFinished(() => controller.kill());
    await survive(controller.pid, () => controller.output());
    expect((await controller.ask("/healthz")).status).toBeGreaterThan(0);
  });
});

/** A kubeconfig of a server that does not exist. */
function unreachable(): string {
  const path = join(createDirectory(), "kubeconfig");
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1", "insecure-skip-tls-verify": true } }],
    users: [{ name: "c", user: { token: "t" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/**
 * Different refusals with 1.6 KB each in the log; the sockets on the way hold up to half a megabyte beside the agent's.
 */
async function fillLog(world: NetnsWorld, count: number): Promise<void> {
  for (let index = 0; index < count; index += 20)
    await Promise.all(Array.from({ length: 20 }, (_, more) => refuse(world, index + more)));
}

function refuse(world: NetnsWorld, index: number): Promise<void> {
  const long = String(index).padEnd(300, "x");
  return new Promise((resolve, reject) => {
    const args = `K8S_POD_NAMESPACE=${long};K8S_POD_NAME=${long};K8S_POD_UID=${long}`;
    const headers = { "CNI-Command": "ADD", "CNI-ContainerID": long, "CNI-IfName": long, "CNI-Args": args };
    const options = { socketPath: world.agent.socket, path: "/v1/cni/bridge", method: "POST", headers, agent: false };
    const call = request({ ...options, timeout: 10_000 }, (answer) => answer.resume().once("end", resolve));
    call.once("timeout", () => call.destroy(new Error(`Call ${index} was not answered within 10 s`)));
    call.once("error", reject).end("{}");
  });
}

describe("a log that is not read costs lines, and no pod", () => {
  const LOST = /"msg":"[0-9]+ log lines were dropped because the reader was too slow"/;

  it("when it is a pipe, as of a container runtime", async () => {
    const path = join(createDirectory(), "pipe");
    await requireCommand(["mkfifo", path]);
    const fd = openSync(path, constants.O_RDWR);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    let received = "";
    const read = async (): Promise<string> => {
      const buffer = Buffer.alloc(65_536);
      try {
        received += buffer.toString("latin1", 0, readSync(reader, buffer));
      } catch {
        // Nothing at the moment.
      }
      return received;
    };
    try {
      await withWorld(
        BLUE,
        async (world) => {
          await fillLog(world, 2_400);
          expect(await world.add("c1")).toHaveLength(1);
          expect(await eventually(read, (text) => LOST.test(text))).toMatch(LOST);
          expect(await world.agent.stop()).toBe(0);
          expect(await eventually(read, (text) => text.includes("Stopping"))).toContain("Stopping");
          for (const line of received.trim().split("\n")) JSON.parse(line);
        },
        { stderr: fd },
      );
    } finally {
      for (const each of [fd, reader]) closeSync(each);
    }
  });

  it("of the controller neither, from its start on", async () => {
    const directory = createDirectory();
    const [path, socketPath] = [join(directory, "pipe"), join(directory, "controller.sock")];
    await requireCommand(["mkfifo", path]);
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const fill = (): void => {
      for (;;) writeSync(fd, Buffer.alloc(4_096));
    };
    expect(fill).toThrow(/EAGAIN/);
    const stderr = openSync(path, constants.O_WRONLY);
    const args = ["--kubeconfig", unreachable(), "--listen", `unix:${socketPath}`];
    const child = spawn(process.execPath, [join(root, "dist", "berth-controller.mjs"), ...args], {
      stdio: ["ignore", "ignore", stderr],
    });
    const ended = once(child, "exit");
    try {
      const ask = (): Promise<number | undefined> =>
        new Promise((resolve) => {
          const call = request({ socketPath, path: "/healthz", agent: false, timeout: 1_000 }, (answer) => {
            answer.resume().once("end", () => resolve(answer.statusCode));
          });
          call.once("timeout", () => call.destroy());
          call.once("error", () => resolve(undefined)).end();
        });
      expect(await eventually(ask, (status) => status !== undefined)).toBeGreaterThanOrEqual(200);
      // It has logged its start by now, and still answers.
      for (let count = 0; count < 3; count++) expect(await ask()).toBeGreaterThanOrEqual(200);
      child.kill("SIGTERM");
      expect((await ended)[0]).toBe(0);
    } finally {
      child.kill("SIGKILL");
      for (const each of [fd, stderr]) closeSync(each);
    }
  });

  it("and the last line before a failing end is there when it is read", async () => {
    const { exitCode, stderr } = await run("berth-agent", [
      "--config",
      "/nonexistent",
      "--state",
      "/dev/null/state",
      "--socket",
      join(createDirectory(), "s"),
    ]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/"level":"fatal",.*ENOTDIR/);
  });
});
