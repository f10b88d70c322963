/** berthctl in the agents' pods, through the kubectl in PATH, which knows the user's credentials. */
import { spawnSync } from "node:child_process";
import { ExitCode } from "./exit-code.ts";
import { CONTROLLER_LABELS } from "./labels.ts";
import type { PodName } from "./source.ts";
import { commandTail } from "./support/tail.ts";

export interface ClusterOptions {
  /** Absent: all nodes. */
  readonly node?: string;
  readonly selector: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Makes one exit code of the agents': the highest, or the lowest. */
  readonly join?: (...codes: number[]) => number;
}

interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
}

/** Calls `berthctl words` in each agent's pod, with this process's output; returns their joint exit code. Throws if there is no agent. */
export function callAgents(words: readonly string[], options: ClusterOptions): ExitCode {
  const agents = findAgents(options);
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

/** How long one log of a controller may take: milliseconds. */
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

function findAgents(options: ClusterOptions): AgentPod[] {
  const { node, selector } = options;
  const fields = ["status.phase=Running", ...(node === undefined ? [] : [`spec.nodeName=${node}`])];
  const columns = "{.metadata.namespace}{'\\t'}{.metadata.name}{'\\t'}{.spec.nodeName}{'\\n'}";
  const { status, stdout } = kubectl(options, [
    ...["get", "pods", "--all-namespaces", `--selector=${selector}`, `--field-selector=${fields.join(",")}`],
    `--output=jsonpath={range .items[*]}${columns}{end}`,
  ]);
  if (status !== 0) throw new Error(`kubectl cannot list the agents' pods: it exited with ${status}`);
  const agents = stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t"))
    .map(([namespace = "", name = "", place = ""]) => ({ namespace, name, node: place }));
  if (agents.length > 0) return agents.sort((a, b) => (a.node < b.node ? -1 : 1));
  throw new Error(
    `No agent is running${node === undefined ? "" : ` on node "${node}"`}: no pod has the labels ${selector}`,
  );
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
