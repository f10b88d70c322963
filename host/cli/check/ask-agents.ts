/** berthctl in many agents' pods at once, its output kept apart by node, through the kubectl in PATH. */
import { execFile } from "node:child_process";
import { inParallel } from "../../lib/in-parallel.ts";
import { type ClusterOptions, kubectlWords } from "../cluster-agents.ts";

/** Agents that are asked at once: each is a kubectl and a berthctl. */
const AGENTS_AT_ONCE = 8;

/** How long one agent may take: milliseconds. */
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
  /** Of berthctl; 255 if kubectl could not call it, or it took too long. */
  readonly exitCode: number;
  readonly stdout: string;
  /** The last line of its errors. */
  readonly error: string;
}

/** Returns one pod for each node, the running one if there are several, in the order of the nodes. Rejects if kubectl cannot list them, or there is none. */
export async function listAgents(options: ClusterOptions): Promise<AgentPod[]> {
  const { node, selector } = options;
  const fields = ["namespace", "name"].map((key) => `{.metadata.${key}}{'\\t'}`).join("");
  const columns = `${fields}{.spec.nodeName}{'\\t'}{.status.phase}{'\\t'}{.metadata.deletionTimestamp}{'\\n'}`;
  const { exitCode, stdout, error } = await kubectl(options, [
    ...["get", "pods", "--all-namespaces", `--selector=${selector}`],
    ...(node === undefined ? [] : [`--field-selector=spec.nodeName=${node}`]),
    `--output=jsonpath={range .items[*]}${columns}{end}`,
  ]);
  if (exitCode !== 0) throw new Error(`kubectl cannot list the agents' pods: ${error}`);
  const pods = stdout.split("\n").flatMap((line): AgentPod[] => {
    const [namespace = "", name = "", place = "", phase = "", deleted = ""] = line.split("\t");
    return place === "" ? [] : [{ namespace, name, node: place, phase: deleted === "" ? phase : "Terminating" }];
  });
  if (pods.length === 0) {
    const where = node === undefined ? "" : ` on node "${node}"`;
    throw new Error(`No agent is running${where}: no pod has the labels ${selector}`);
  }
  const byNode = Map.groupBy(pods, (pod) => pod.node);
  const chosen = [...byNode.values()].flatMap((same) => same.find(isRunning) ?? same.slice(0, 1));
  return chosen.sort((a, b) => (a.node < b.node ? -1 : 1));
}

export function isRunning({ phase }: AgentPod): boolean {
  return phase === "Running";
}

/** Calls `berthctl words` in each pod, with `input` on its standard input. Returns the answers in the order of the pods; none rejects. */
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
    const answer = await kubectl(options, ["exec", ...place, "--", "berthctl", ...words], inputOf?.(agent));
    return { node, ...answer };
  });
}

/** kubectl's own line after those of the command. */
const KUBECTL_EXIT = /^command terminated with exit code \d+$/;

/** Resolves also when kubectl fails. */
function kubectl(access: ClusterOptions, words: readonly string[], input = ""): Promise<Omit<AgentAnswer, "node">> {
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
