/**
 * An agent in a temporary place: started, asked, killed, started again.
 *
 *   const agent = await startAgent({ config: { "pools.yaml": text } });   // resolves when GET /v1/health answers
 *   await agent.get("/v1/pools");                    // JSON; throws when the answer is not 2xx
 *   await agent.write("pod.yaml", text);             // into the watched folder, by rename
 *   await agent.kill("SIGKILL"); await agent.start(); // the same state, spool and socket
 *   await agent.delete();                            // stop and remove the place
 *
 * With `kubeconfig` it is an agent of a cluster, and there is no folder to watch. With `agent.env` the plugins find
 * this agent. With `node`, it runs in that namespace.
 * Effects: a child and a folder below the system's temporary folder.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { root } from "../../scripts/setup/paths.mjs";
import { expectAnswer, type FirstAnswer } from "./first-answer.ts";
import type { Netns } from "./netns.ts";
import { serviceEnvironment } from "./service-environment.ts";

export interface AgentOptions {
  /** The folder of the build. Default: dist. */
  readonly dist?: string | undefined;
  /** YAML texts by file name, written before the start. */
  readonly config?: Readonly<Record<string, string>> | undefined;
  /** The cluster mode instead. */
  readonly kubeconfig?: string;
  /** Network definitions by file name, written before the start. */
  readonly cniConf?: Readonly<Record<string, object>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Added to `--config DIR` or `--kubeconfig FILE`. */
  readonly args?: readonly string[];
  /**
   * Goes before the command line, and becomes the agent in the same process: `["unshare", "--time", "--monotonic",
   * "86400"]`.
   */
  readonly wrapper?: readonly string[];
  /** Options of Node.js, beside those of the service. */
  readonly nodeOptions?: readonly string[];
  readonly node?: Netns;
  /** Directory of the state; default: in the agent's temporary folder. Not removed by `delete` when given. */
  readonly stateDir?: string;
  /** Its name in the agent's temporary folder. Default: agent.sock. */
  readonly socketName?: string;
  /** Path of its socket. Default: in the agent's temporary folder. */
  readonly socket?: string;
  /** A descriptor for its stderr, which `stderr()` then does not collect. */
  readonly stderr?: number;
  /** Time for which `start` waits for an answer. Default: 60,000, for other work may load the machine. */
  readonly readyMs?: number;
}

export interface Agent {
  readonly directory: string;
  readonly socket: string;
  readonly state: string;
  readonly spool: string;
  readonly configDir: string;
  /** Network definitions go here, as into /etc/cni/net.d. */
  readonly cniConfDir: string;
  /** Podman's networks go here. */
  readonly podmanNetworksDir: string;
  /**
   * Stands for /var/log/vendor/. It exists before the agent starts, which would create it some time after its first
   * answer.
   */
  readonly logDir: string;
  /**
   * BERTH_SOCKET, BERTH_STATE, BERTH_SPOOL, BERTH_CNI_CONF_DIR, BERTH_PODMAN_NETWORKS_DIR, BERTH_CNI_BIN_DIR and
   * BERTH_LOG_DIR of it.
   */
  readonly env: Readonly<Record<string, string>>;
  /** Process ID of the running child; throws while there is none. */
  readonly pid: number;
  isRunning(): boolean;
  /** Returns the output of all children so far to stderr and stdout. */
  stderr(): string;
  /**
   * Starts again after `stop` or `kill`; resolves at the first byte of its first answer. `dist` is the folder of the
   * build.
   */
  start(env?: NodeJS.ProcessEnv, dist?: string): Promise<void>;
  /** SIGKILL and a start with that fault plan, or none. */
  restart(fault?: string): Promise<void>;
  /** SIGTERM, and the exit code; SIGKILL after 10 s. */
  stop(): Promise<number | null>;
  /** Sends the signal and waits for the end. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** The decoded answer of GET on the socket; throws with status and body unless it is 2xx. */
  // biome-ignore lint/suspicious/noExplicitAny: callers look into it by name, and a wrong name gives undefined.
  get(path: string): Promise<any>;
  request(path: string): Promise<{ status: number; body: string }>;
  write(fileName: string, text: string): Promise<void>;
  remove(fileName: string): Promise<void>;
  /** Stops the agent and removes its folder. */
  delete(): Promise<void>;
}

type Child = ChildProcessByStdio<null, Readable, Readable | null>;

/** Makes the place, writes the configuration, starts the built agent. */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const directory = await mkdtemp(join(tmpdir(), "berth-agent-"));
  const agent = agentIn(directory, options);
  try {
    for (const path of [
      agent.configDir,
      agent.cniConfDir,
      agent.podmanNetworksDir,
      agent.logDir,
      agent.state,
      agent.spool,
    ])
      await mkdir(path, { recursive: true });
    for (const [name, text] of Object.entries(options.config ?? {})) await agent.write(name, text);
    for (const [name, value] of Object.entries(options.cniConf ?? {}))
      await writeFile(join(agent.cniConfDir, name), JSON.stringify(value));
    await agent.start();
  } catch (error) {
    await agent.delete();
    throw error;
  }
  return agent;
}

function agentIn(directory: string, options: AgentOptions): Agent {
  const state = options.stateDir ?? join(directory, "state");
  const [socket, spool, configDir, cniConfDir, logDir, codeCache] = [
    options.socket ?? join(directory, options.socketName ?? "agent.sock"),
    join(directory, "spool"),
    join(directory, "config"),
    join(directory, "net.d"),
    join(directory, "log"),
    join(directory, "code-cache"),
  ];
  const podmanNetworksDir = join(directory, "networks");
  const env = {
    ...{ BERTH_SOCKET: socket, BERTH_STATE: state, BERTH_SPOOL: spool },
    ...{ BERTH_CNI_CONF_DIR: options.env?.BERTH_CNI_CONF_DIR ?? cniConfDir, BERTH_LOG_DIR: logDir },
    BERTH_PODMAN_NETWORKS_DIR: podmanNetworksDir,
    BERTH_CNI_BIN_DIR: options.env?.BERTH_CNI_BIN_DIR ?? join(root, "dist", "bin"),
  };
  const output: Buffer[] = [];
  let child: Child | undefined;

  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    const ending = child;
    child = undefined;
    return ending === undefined ? null : endChild(ending, signal);
  };
  const agent: Agent = {
    directory,
    socket,
    state,
    spool,
    configDir,
    cniConfDir,
    podmanNetworksDir,
    logDir,
    env,
    get pid() {
      if (child?.pid === undefined) throw new Error("The agent is not running");
      return child.pid;
    },
    isRunning: () => child !== undefined && isRunning(child),
    stderr: () => Buffer.concat(output).toString(),
    start: async (more = {}, dist = options.dist) => {
      if (child !== undefined && isRunning(child)) throw new Error("The agent is running already");
      using answer = expectAnswer(socket);
      child = spawnAgent(
        configDir,
        { BERTH_CODE_CACHE: codeCache, ...process.env, ...serviceEnvironment(), ...env, ...options.env, ...more },
        { ...options, ...(dist === undefined ? {} : { dist }) },
      );
      for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => output.push(chunk));
      await answering(agent, child, answer, options.readyMs ?? 60_000);
    },
    restart: async (fault) => {
      await end("SIGKILL");
      await agent.start({ BERTH_FAULT: fault });
    },
    stop: () => end("SIGTERM"),
    kill: async (signal) => void (await end(signal)),
    get: async (path) => {
      const { status, body } = await agent.request(path);
      if (status < 200 || status > 299) throw new Error(`GET ${path} was answered with ${status}: ${body}`);
      return JSON.parse(body);
    },
    request: (path) => requestSocket(socket, path),
    write: async (fileName, text) => {
      const temporary = join(directory, `${fileName}.tmp`);
      await writeFile(temporary, text);
      await rename(temporary, join(configDir, fileName));
    },
    remove: (fileName) => rm(join(configDir, fileName)),
    delete: async () => {
      await end("SIGTERM");
      // Its last process may outlive the process that was waited for.
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
  return agent;
}

function spawnAgent(configDir: string, env: NodeJS.ProcessEnv, options: AgentOptions): Child {
  const { kubeconfig, wrapper = [] } = options;
  const source = kubeconfig === undefined ? ["--config", configDir] : ["--kubeconfig", kubeconfig];
  const argv = [
    ...wrapper,
    process.execPath,
    ...(options.nodeOptions ?? []),
    join(options.dist ?? join(root, "dist"), "berth-agent.mjs"),
    ...source,
    ...(options.args ?? []),
  ];
  const [file = "", ...args] = options.node?.enter(argv) ?? argv;
  return spawn(file, args, { env, stdio: ["ignore", "pipe", options.stderr ?? "pipe"] }) as Child;
}

/** Resolves when the agent answers; throws with its output when it ends, or stays silent for `readyMs`. */
async function answering(agent: Agent, child: Child, answer: FirstAnswer, readyMs: number): Promise<void> {
  const start = performance.now();
  await answer.wait(() => {
    if (!isRunning(child))
      throw new Error(`The agent ended at once (${child.exitCode ?? child.signalCode}):\n${agent.stderr()}`);
    if (performance.now() - start > readyMs)
      throw new Error(`The agent does not answer after ${readyMs} ms:\n${agent.stderr()}`);
  });
}

function isRunning(child: Child): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function endChild(child: Child, signal: NodeJS.Signals): Promise<number | null> {
  if (!isRunning(child)) return child.exitCode;
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  child.kill(signal);
  const lastResort = setTimeout(() => child.kill("SIGKILL"), 10_000);
  const code = await exited;
  clearTimeout(lastResort);
  return code;
}

function requestSocket(socketPath: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, agent: false, timeout: 10_000 }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    call.on("timeout", () => call.destroy(new Error(`GET ${path} was not answered within 10 s`)));
    call.on("error", reject);
    call.end();
  });
}
