/** berthctl in the agents' pods, through the kubectl in PATH, which knows the user's credentials. */
import { execFile } from "node:child_process";
import { AGENT_LABELS, CONTROLLER_LABELS } from "../kubernetes/labels.ts";
import { messageOf } from "../lib/describe.ts";
import { inParallel } from "../lib/in-parallel.ts";
import { printable, printableLines } from "../lib/printable.ts";
import { commandTail } from "./command-tail.ts";
import { ExitCode } from "./exit-code.ts";
import type { Output } from "./output.ts";
import type { PodName } from "./source.ts";

export interface ClusterOptions {
  /** Default: all nodes. */
  readonly node?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** Longest time that one agent may take: milliseconds. Default: {@link AGENT_MS}. */
  readonly timeoutMs?: number | undefined;
  /** Shows how far a question to several agents is; "" at its end. */
  readonly progress?: ((text: string) => void) | undefined;
}

/** Agents that are asked at once: each is a kubectl and a berthctl. */
const AGENTS_AT_ONCE = 8;

/** Longest time that one agent may take by default: milliseconds. */
export const AGENT_MS = 120_000;

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
  /** Its errors, without kubectl's own last line. */
  readonly errors: readonly string[];
  /** The last of them, or why there is no answer. */
  readonly error: string;
  readonly records?: readonly object[];
}

/**
 * Returns one pod for each node, the running one if there are several, in the order of the nodes. Rejects if kubectl
 * cannot list them, or there is none.
 */
export async function listAgents(options: ClusterOptions): Promise<AgentPod[]> {
  const { node } = options;
  const fields = ["namespace", "name"].map((key) => `{.metadata.${key}}{'\\t'}`).join("");
  const columns = `${fields}{.spec.nodeName}{'\\t'}{.status.phase}{'\\t'}{.metadata.deletionTimestamp}{'\\n'}`;
  const { exitCode, stdout, error } = await kubectlAside(options, [
    ...["get", "pods", "--all-namespaces", `--selector=${AGENT_LABELS}`],
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

function noAgents({ node }: ClusterOptions): Error {
  const place = node === undefined ? "" : ` on node "${node}"`;
  return new Error(`No agent is running${place}: no pod has the labels ${AGENT_LABELS}`);
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
  const { progress = () => {} } = options;
  let answered = 0;
  const show = () => agents.length > 1 && progress(`${answered} of ${agents.length} nodes`);
  show();
  const answers = inParallel(agents, AGENTS_AT_ONCE, async (agent) => {
    const { namespace, name, node } = agent;
    const stdin = inputOf === undefined ? [] : ["--stdin"];
    const place = ["--namespace", namespace, name, "--container", "agent", ...stdin];
    const answer = await kubectlAside(options, ["exec", ...place, "--", "berthctl", ...words], inputOf?.(agent));
    answered += 1;
    show();
    return { node, ...answer };
  });
  return answers.finally(() => agents.length > 1 && progress(""));
}

/** Calls a command in a pod. Resolves also when kubectl fails. */
export function execInPod(
  access: Access,
  { namespace, name }: PodName,
  argv: readonly string[],
): Promise<Omit<AgentAnswer, "node">> {
  return kubectlAside(access, ["exec", "--namespace", namespace, name, "--", ...argv]);
}

/** kubectl's own line after those of the command. */
const KUBECTL_EXIT = /^command terminated with exit code \d+$/;

/** Keeps its output. Resolves also when kubectl fails. */
function kubectlAside(access: Access, words: readonly string[], input = ""): Promise<Omit<AgentAnswer, "node">> {
  const { timeoutMs: timeout = AGENT_MS } = access;
  return new Promise((resolve) => {
    const limits = { timeout, maxBuffer: MAX_AGENT_ANSWER };
    const child = execFile("kubectl", [...kubectlWords(access), ...words], limits, (failure, stdout, stderr) => {
      const errors = stderr.split("\n").filter((line) => line.trim() !== "" && !KUBECTL_EXIT.test(line));
      const isEnd = failure === null || typeof failure.code === "number";
      const exitCode = failure === null ? 0 : typeof failure.code === "number" ? failure.code : 255;
      const end = failure?.killed === true ? `no answer within ${timeout / 1_000} s` : (failure?.message ?? "");
      resolve({ exitCode, stdout, errors, error: isEnd ? (errors.at(-1) ?? "") : end });
    });
    // A kubectl that has ended already does not read.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

interface Calling {
  readonly out: Output;
  /** This node's answer stands before the others. */
  readonly first?: string | undefined;
  /** One agent's success is enough: then it alone is printed. */
  readonly isAny?: boolean;
  /** In a document they follow the agents' records. */
  readonly more?: readonly object[];
}

/**
 * Calls `berthctl words` in each agent's pod, and prints the outputs, in the order of the nodes: texts below the node's
 * name, records of several agents as one list. Returns the highest exit code. Rejects if no agent runs.
 */
export async function callAgents(
  words: readonly string[],
  options: ClusterOptions,
  { out, first, isAny = false, more = [] }: Calling,
): Promise<ExitCode> {
  const agents = (await listAgents(options)).filter(isRunning);
  if (agents.length === 0) throw noAgents(options);
  agents.sort((a, b) => Number(b.node === first) - Number(a.node === first));
  const isList = out.isDocument && agents.length + more.length > 1;
  const all = await askAgents(agents, words, options);
  const answers = isList ? await Promise.all(all.map((answer) => withRecords(answer, out))) : all;
  const found = isAny ? answers.filter(({ exitCode }) => exitCode === 0) : [];
  for (const { node, exitCode, stdout, errors, error } of answers) {
    const isAnswer = exitCode <= ExitCode.Problem;
    if (found.length > 0 && exitCode !== 0 && isAnswer) continue;
    if (agents.length > 1 && out.isTable) out.text(`# ${node}`);
    if (!isList) out.document(printableLines(stdout));
    for (const line of errors) console.error(printable(line));
    if (!isAnswer && error !== errors.at(-1)) console.error(`node ${node}: ${error || `exit code ${exitCode}`}`);
  }
  if (isList) await out.value([...answers.flatMap(({ records = [] }) => records), ...more]);
  if (found.length > 0) return ExitCode.Success;
  const code = Math.max(...answers.map(({ exitCode }) => exitCode));
  const known: readonly ExitCode[] = Object.values(ExitCode);
  // Codes that berthctl does not have are of kubectl or of a signal.
  return known.find((each) => each === code) ?? ExitCode.NoAnswer;
}

/** Adds the records that the agent printed, each with its node; an error if it printed none. */
async function withRecords(answer: AgentAnswer, { format }: Output): Promise<AgentAnswer> {
  const { node, exitCode, stdout } = answer;
  if (exitCode > ExitCode.Problem || stdout === "") return answer;
  try {
    const found = format === "json" ? JSON.parse(stdout) : (await import("yaml")).parse(stdout);
    return { ...answer, records: [found].flat().map((record) => ({ node, ...record })) };
  } catch (cause) {
    return { ...answer, exitCode: ExitCode.NoAnswer, error: `the answer is no ${format}: ${messageOf(cause)}` };
  }
}

/** Returns the node of a pod; undefined if it has none yet, or cannot be read: then kubectl's reason is printed. */
export async function findNode({ namespace, name }: PodName, access: Access): Promise<string | undefined> {
  const output = ["--ignore-not-found", "--output=jsonpath={.spec.nodeName}"];
  return (await kubectl(access, ["get", "pod", name, "--namespace", namespace, ...output])).trim() || undefined;
}

/** Longest log of one controller that is searched: bytes. */
const MAX_CONTROLLER_HISTORY = 64 * 1024 * 1024;

/** Longest time that one log of a controller may take: milliseconds. */
const CONTROLLER_LOG_MS = 60_000;

/** Returns the logs of the controller's pods, also of containers that have ended; "" for unreadable ones. */
export async function readControllerLogs(access: Access): Promise<string[]> {
  const name = "{.metadata.namespace}{' '}{.metadata.name}{'\\n'}";
  const stdout = await kubectl(access, [
    ...["get", "pods", "--all-namespaces", `--selector=${CONTROLLER_LABELS}`],
    `--output=jsonpath={range .items[*]}${name}{end}`,
  ]);
  const pods = stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split(" ")]));
  const logs = pods.flatMap((pod) => [["--previous"], []].map((more) => ({ pod, more })));
  return inParallel(logs, AGENTS_AT_ONCE, async ({ pod: [namespace = "", pod = ""], more }) => {
    const words = ["logs", "--namespace", namespace, pod, "--container=controller", "--tail=-1", ...more];
    const argv = ["kubectl", ...kubectlWords(access), ...words];
    const { content } = await commandTail(argv, { maxBytes: MAX_CONTROLLER_HISTORY, timeoutMs: CONTROLLER_LOG_MS });
    return content.toString();
  });
}

export type Access = Pick<ClusterOptions, "kubeconfig" | "context" | "timeoutMs">;

/** Returns the options with which kubectl finds the cluster. */
export function kubectlWords({ kubeconfig, context }: Access): string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
  ];
}

/** Returns the output; "" after an error, which is printed. */
async function kubectl(access: Access, words: readonly string[]): Promise<string> {
  const { exitCode, stdout, error } = await kubectlAside(access, words);
  if (exitCode !== 0) console.error(error);
  return stdout;
}
