/** The files of a cluster's support bundle: from its API server, its controllers, and the most telling agents. */
import { AgentError } from "../../../host/cli/ask-agent.ts";
import { type BerthPod, readBerthPods } from "../../../host/cli/berth-pods.ts";
import { type Access, kubectlWords } from "../../../host/cli/cluster-agents.ts";
import { commandTail } from "../../../host/cli/command-tail.ts";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import { inParallel } from "../../../host/lib/in-parallel.ts";
import { type BundleFile, unpackBundle } from "./archive.ts";
import { chooseAgents } from "./choose-agents.ts";
import { collectClusterFiles } from "./cluster-files.ts";
import { failedFile, outputOf } from "./host-files.ts";

/** Largest part of it for all nodes together: bytes. */
const MAX_BUNDLE_OF_NODES = 32 * 1024 * 1024;

/** Longest log of a controller in it: bytes. */
const MAX_CONTROLLER_LOG = 2 * 1024 * 1024;

interface ClusterBundleOptions extends AskOptions {
  readonly api: KubeApi;
  /** Only this node's agent. */
  readonly node?: string | undefined;
  /** Facts of the caller's. */
  readonly about: object;
}

/** Rejects if the API server does not answer, or no agent is on the node. */
export async function collectClusterBundle({ api, node, about, ...ask }: ClusterBundleOptions): Promise<BundleFile[]> {
  const pods = await readBerthPods(api);
  const agents = pods.filter(({ component }) => component === "agent");
  const { chosen, others } = chooseAgents(agents, node);
  if (node !== undefined && chosen.length === 0) throw new AgentError(`No agent is on node "${node}"`);
  const cluster = await collectClusterFiles(api, pods, about);
  const controllers = pods.filter(({ component }) => component !== "agent");
  return [
    ...cluster,
    ...(await collectControllers(controllers, ask)),
    ...(await collectAgents(chosen, ask)),
    ...(others.length === 0 ? [] : [describeOthers(others.map((agent) => agent.node))]),
  ];
}

function describeOthers(nodes: readonly string[]): BundleFile {
  const note = `${nodes.length} healthy or older nodes were not asked; name one with --node`;
  return { path: "nodes/not-asked.txt", text: `${nodes.join("\n")}\n`, note };
}

/** Number of agents that a support bundle asks at once. */
const BUNDLE_NODES_AT_ONCE = 4;

/** Largest share of one node in the support bundle of a cluster, before it is compressed: bytes. */
const MAX_BUNDLE_NODE = 4 * 1024 * 1024;

/** Most pods of the controller whose logs and status are in a support bundle. */
const MAX_BUNDLE_CONTROLLERS = 5;

/** Longest name of a node in the paths of a support bundle. */
const MAX_NODE_NAME = 80;

/** Options for the part of a log in the bundle: lines of the last hours. */
const LOG_WORDS = ["--since=6h", "--tail=20000"];

/** Asks the controller's own address, which is on loopback. */
const ASK_CONTROLLER =
  'fetch("http://127.0.0.1:9474"+process.argv[1]).then(r=>r.text()).then(t=>process.stdout.write(t))';

/** The time is that of one pod. */
type AskOptions = Access & { readonly timeoutMs: number };

/** Asks a few agents at once, each for its share. A node that does not answer has a file that says so. */
async function collectAgents(agents: readonly BerthPod[], options: AskOptions): Promise<BundleFile[]> {
  const share = Math.min(MAX_BUNDLE_NODE, Math.floor(MAX_BUNDLE_OF_NODES / Math.max(1, agents.length)));
  const found = await inParallel(agents, BUNDLE_NODES_AT_ONCE, (agent) => collectAgent(agent, share, options));
  return found.flat();
}

async function collectAgent(agent: BerthPod, share: number, options: AskOptions): Promise<BundleFile[]> {
  const folder = `nodes/${agent.node.replaceAll(/[^\w.-]/g, "_").slice(0, MAX_NODE_NAME)}`;
  const [own, log] = [Math.floor((share * 3) / 4), Math.floor(share / 4)];
  const files = await readLogs(`${folder}/agent-log`, agent, log, options);
  return [...files, ...(await askForBundle(folder, agent, own, options))];
}

/** The agent's own berthctl packs and redacts; its list names the parts that it left out. */
async function askForBundle(
  folder: string,
  { namespace, name }: BerthPod,
  maxBytes: number,
  options: AskOptions,
): Promise<BundleFile[]> {
  const berthctl = ["berthctl", "support-bundle", "--file=-", `--max-size=${maxBytes / 1024 / 1024}`];
  const place = ["exec", "--namespace", namespace, name, "--container", "agent", "--"];
  const argv = ["kubectl", ...kubectlWords(options), ...place, ...berthctl];
  const { content, wholeBytes, failure } = await commandTail(argv, { maxBytes, timeoutMs: options.timeoutMs });
  const refuse = (reason: string) => [failedFile(`${folder}/no-answer.txt`, reason)];
  if (failure !== undefined) return refuse(failure);
  if (wholeBytes > content.length)
    return refuse(`The agent's bundle has ${wholeBytes} bytes, want at most ${maxBytes}`);
  try {
    // Headers and padding come on top.
    const files = await unpackBundle(content, 2 * maxBytes + 1024 * 1024);
    return files.map((file) => ({ ...file, path: `${folder}/${file.path}` }));
  } catch {
    return refuse("The agent answered with something that is no bundle; its version may be too old");
  }
}

async function collectControllers(pods: readonly BerthPod[], options: AskOptions): Promise<BundleFile[]> {
  const files: BundleFile[] = [];
  for (const pod of pods.slice(0, MAX_BUNDLE_CONTROLLERS)) {
    const folder = `controllers/${pod.name}`;
    files.push(...(await readLogs(`${folder}/log`, pod, MAX_CONTROLLER_LOG, options)));
    for (const [path, page] of [
      ["status.json", "/v1/status"],
      ["metrics.txt", "/metrics"],
    ] as const) {
      const words = ["exec", "--namespace", pod.namespace, pod.name, "--", "node", "-e", ASK_CONTROLLER, page];
      files.push(await ask(`${folder}/${path}`, words, MAX_CONTROLLER_LOG, options));
    }
  }
  return files;
}

/** The log, and that of the container before if there was one. */
async function readLogs(path: string, pod: BerthPod, maxBytes: number, options: AskOptions): Promise<BundleFile[]> {
  const words = ["logs", "--namespace", pod.namespace, pod.name, "--all-containers", ...LOG_WORDS];
  const log = await ask(`${path}.txt`, words, maxBytes, options);
  if (pod.restarts === 0) return [log];
  return [log, await ask(`${path}-previous.txt`, [...words, "--previous"], Math.floor(maxBytes / 4), options)];
}

function ask(path: string, words: readonly string[], maxBytes: number, options: AskOptions): Promise<BundleFile> {
  const argv = ["kubectl", ...kubectlWords(options), ...words];
  return outputOf(path, argv, { maxBytes, timeoutMs: options.timeoutMs });
}
