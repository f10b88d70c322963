/** berthctl in the agents' pods, through the kubectl in PATH, which knows the user's credentials. */
import { execFile, spawnSync } from "node:child_process";
import { inParallel } from "../lib/in-parallel.ts";
import { ExitCode } from "./exit-code.ts";
import { CONTROLLER_LABELS } from "./labels.ts";
import type { PodName } from "./source.ts";
import { commandTail } from "./support/tail.ts";

export interface ClusterOptions {
  /** Default: all nodes. */
  readonly node?: string;
  readonly selector: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Makes one exit code of the agents': the highest, or the lowest. */
  readonly join?: (...codes: number[]) => number;
}

/** Agents that are asked at once: each is a kubectl and a berthctl. */
const AGENTS_AT_ONCE = 8;

/** Longest time that one agent may take: milliseconds. */
const AGENT_MS = 120_000;

/** Longest answer of one agent: bytes. */
const MAX_AGENT_ANSWER = 64 * 1024 * 1024;

/** An agent's pod, running or not. */
export interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** `status.phase`; `Terminating` for a pod that is being deleted. */
  readonly phase: string;
}

interface AgentAnswer {
  readonly node: string;
  /** Exit code of berthctl; 255 if kubectl could not call it, or it took too long. */
  readonly exitCode: number;
  readonly stdout: string;
  /** The last line of its errors. */
  readonly error: string;
}

/**
 * Returns one pod for each node, the running one if there are several, in the order of the nodes. Rejects if kubectl
 * cannot list them, or there is none.
 */
export async function listAgents(options: ClusterOptions): Promise<AgentPod[]> {
  const { node, selector } = options;
  const fields = ["namespace", "name"].map((key) => `{.metadata.${key}}{'\\t'}`).join("");
  const columns = `${fields}{.spec.nodeName}{'\\t'}{.status.phase}{'\\t'}{.metadata.deletionTimestamp}{'\\n'}`;
  const { exitCode, stdout, error } = await kubectlAside(options, [
    ...["get", "pods", "--all-namespaces", `--selector=${selector}`],
    ...(node === undefined ? [] : [`--field-selector=spec.nodeName=${node}`]),
    `--output=jsonpath={range .items[*]}${columns}{end}`,
  ]);
  if (exitCode !== 0) throw new Error(`kubectl cannot list the agents' pods: ${error}`);
  const pods = stdout.split("\n").flatMap((line): AgentPod[] => {
    const [namespace = "", name = "", place = "", phase = "", deleted = ""] = line.split("\t");
    return place === "" ? [] : [{ namespace, name, node: place, phase: deleted === "" ? phase : "Terminating" }];
  });
  if (pods.length === 0) throw noAgents(options);
  const byNode = Map.groupBy(pods, (pod) => pod.node);
  const chosen = [...byNode.values()].flatMap((same) => same.find(isRunning) ?? same.slice(0, 1));
  return chosen.sort((a, b) => (a.node < b.node ? -1 : 1));
}

function noAgents({ node, selector }: ClusterOptions): Error {
  return new Error(
    `No agent is running${node === undefined ? "" : ` on node "${node}"`}: no pod has the labels ${selector}`,
  );
}

export function isRunning({ phase }: AgentPod): boolean {
  return phase === "Running";
}

/**
 * Calls `berthctl words` in each pod, with `input` on its standard input. Returns the answers in the order of the
 * pods; none rejects.
 */
export function askAgents(
  agents: readonly AgentPod[],
  words: readonly string[],
  options: ClusterOptions,
  inputOf?: (agent: AgentPod) => string,
): Promise<AgentAnswer[]> {
  return inParallel(agents, AGENTS_AT_ONCE, async (agent) => {
    const { namespace, name, node } = agent;
    const stdin = inputOf === undefined ? [] : ["--stdin"];
    const place = ["--namespace", namespace, name, "--container", "agent", ...stdin];
    const answer = await kubectlAside(options, ["exec", ...place, "--", "berthctl", ...words], inputOf?.(agent));
    return { node, ...answer };
  });
}

/** kubectl's own line after those of the command. */
const KUBECTL_EXIT = /^command terminated with exit code \d+$/;

/** Keeps its output. Resolves also when kubectl fails. */
function kubectlAside(access: Access, words: readonly string[], input = ""): Promise<Omit<AgentAnswer, "node">> {
  return new Promise((resolve) => {
    const limits = { timeout: AGENT_MS, maxBuffer: MAX_AGENT_ANSWER };
    const child = execFile("kubectl", [...kubectlWords(access), ...words], limits, (failure, stdout, stderr) => {
      const lines = stderr.split("\n").filter((line) => line.trim() !== "" && !KUBECTL_EXIT.test(line));
      const isEnd = failure === null || typeof failure.code === "number";
      const exitCode = failure === null ? 0 : typeof failure.code === "number" ? failure.code : 255;
      resolve({ exitCode, stdout, error: lines.at(-1) ?? (isEnd ? "" : failure.message) });
    });
    // A kubectl that has ended already does not read.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/**
 * Calls `berthctl words` in each agent's pod, with this process's output. Returns their joint exit code. Rejects if
 * there is no agent that runs.
 */
export async function callAgents(words: readonly string[], options: ClusterOptions): Promise<ExitCode> {
  const agents = (await listAgents(options)).filter(isRunning);
  if (agents.length === 0) throw noAgents(options);
  const codes = agents.map(({ namespace, name, node }) => {
    if (agents.length > 1) console.log(`# ${node}`);
    const place = ["--namespace", namespace, name, "--container", "agent"];
    return kubectl(options, ["exec", ...place, "--", "berthctl", ...words], "inherit").status;
  });
  const { join = Math.max } = options;
  const code = join(...codes);
  const known: readonly ExitCode[] = Object.values(ExitCode);
  // Codes that berthctl does not have are of kubectl or of a signal.
  return known.find((each) => each === code) ?? ExitCode.NoAnswer;
}

/** Returns the node of a pod; undefined if it has none yet, or cannot be read: then kubectl has printed why. */
export function findNode({ namespace, name }: PodName, access: Access): string | undefined {
  const words = [
    "get",
    "pod",
    name,
    "--namespace",
    namespace,
    "--ignore-not-found",
    "--output=jsonpath={.spec.nodeName}",
  ];
  return kubectl(access, words).stdout.trim() || undefined;
}

/** Longest log of one controller that is searched: bytes. */
const MAX_CONTROLLER_HISTORY = 64 * 1024 * 1024;

/** Longest time that one log of a controller may take: milliseconds. */
const CONTROLLER_LOG_MS = 60_000;

/** Returns the logs of the controller's pods, also of containers that have ended; "" for one that cannot be read. */
export async function readControllerLogs(access: Access): Promise<string[]> {
  const name = "{.metadata.namespace}{' '}{.metadata.name}{'\\n'}";
  const { stdout } = kubectl(access, [
    ...["get", "pods", "--all-namespaces", `--selector=${CONTROLLER_LABELS}`],
    `--output=jsonpath={range .items[*]}${name}{end}`,
  ]);
  const pods = stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split(" ")]));
  const texts: string[] = [];
  for (const [namespace = "", pod = ""] of pods) {
    for (const more of [["--previous"], []]) {
      const words = ["logs", "--namespace", namespace, pod, "--container=controller", "--tail=-1", ...more];
      const argv = ["kubectl", ...kubectlWords(access), ...words];
      const { content } = await commandTail(argv, { maxBytes: MAX_CONTROLLER_HISTORY, timeoutMs: CONTROLLER_LOG_MS });
      texts.push(content.toString());
    }
  }
  return texts;
}

type Access = Pick<ClusterOptions, "kubeconfig" | "context">;

/** Returns the options with which kubectl finds the cluster. */
export function kubectlWords({ kubeconfig, context }: Access): string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
  ];
}

/** Errors of kubectl appear as it prints them. */
function kubectl(
  access: Access,
  words: readonly string[],
  output: "pipe" | "inherit" = "pipe",
): { status: number; stdout: string } {
  const result = spawnSync("kubectl", [...kubectlWords(access), ...words], {
    encoding: "utf8",
    stdio: ["ignore", output, "inherit"],
  });
  if (result.error !== undefined) throw new Error(`Cannot execute kubectl: ${result.error.message}`);
  return { status: result.status ?? 1, stdout: result.stdout ?? "" };
}
