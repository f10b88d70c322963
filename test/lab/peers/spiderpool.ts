/**
 * Spiderpool's controller and an agent for each node, against a control plane on loopback, with the settings of its
 * chart.
 *
 *   const spiderpool = await startSpiderpool({ kubeconfig: plane.kubeconfig, node: "spider" });
 *   spiderpool.agent.socket;                             // of its plugin: ipam_unix_socket_path
 *   await spiderpool.stop();
 *
 * The kinds are those of cluster/peer-kinds.ts. Its webhooks are served, and not registered: objects are written
 * complete. Effects: two processes, which listen on ports 5710 to 5722, and one more on two ports from 5730 on for
 * each further node; a folder below the system's temporary folder, gone after `stop`.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import { requireCommand, runCommand } from "../command.ts";
import { type Daemon, startDaemon } from "../daemon.ts";
import type { Netns } from "../netns.ts";
import { inParallel } from "../parallel.ts";

export interface SpiderpoolOptions {
  readonly kubeconfig: string;
  readonly node: string;
  /** Nodes besides it, each with an agent. Default: none. */
  readonly otherNodes?: readonly string[];
  readonly hasIpv6?: boolean;
  /** One of a cluster leads. Default: true. */
  readonly hasController?: boolean;
  /** Machine that both run on; default: this process's own namespace. */
  readonly machine?: Netns;
  /** Default: in a folder of its own. Its coordinator knows {@link FIXED_SOCKET} only. */
  readonly socket?: string;
}

export const FIXED_SOCKET = "/var/run/spidernet/spiderpool.sock";

interface SpiderpoolAgent {
  readonly node: string;
  readonly socket: string;
  readonly pid: number;
}

export interface Spiderpool {
  /** Agent of the first node. */
  readonly agent: SpiderpoolAgent;
  /** Agents of all nodes, the first one's first. */
  readonly agents: readonly SpiderpoolAgent[];
  readonly controllerPid: number | undefined;
  stop(): Promise<void>;
}

const AGENT_PORT = 5710;
const CONTROLLER_PORT = 5720;
const OTHER_AGENTS_PORT = 5730;
/** Number of agents that start side by side. */
const AT_ONCE = 4;
const READY_MS = 60_000;

export async function startSpiderpool(options: SpiderpoolOptions): Promise<Spiderpool> {
  const { kubeconfig, node: firstNode, otherNodes = [], hasIpv6 = false, hasController = true, machine } = options;
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "berth-spiderpool-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const { socket: firstSocket = join(directory, "spiderpool.sock") } = options;
  await mkdir(dirname(firstSocket), { recursive: true });
  stack.defer(() => rm(firstSocket, { force: true }));
  const [certificate, key] = [join(directory, "tls.crt"), join(directory, "tls.key")];
  const pair = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2"];
  await requireCommand(["openssl", "req", "-x509", ...pair, "-subj", "/CN=localhost"]);
  const start = async (program: string, { node, socket, port }: Place, ...args: readonly string[]): Promise<Daemon> => {
    const environment = [
      ...["GIT_COMMIT_VERSION=", `KUBECONFIG=${kubeconfig}`, `SPIDERPOOL_NODE_NAME=${node}`],
      ...["SPIDERPOOL_POD_NAMESPACE=kube-system", "SPIDERPOOL_GOPS_LISTEN_PORT=", `SPIDERPOOL_POD_NAME=${program}-0`],
      ...[`SPIDERPOOL_HEALTH_PORT=${port}`, `SPIDERPOOL_METRIC_HTTP_PORT=${port + 1}`],
      // It refuses a pod's first NIC that Multus has no network for.
      "MULTUS_CLUSTER_NETWORK=kube-system/default",
    ];
    const settings = join(directory, `conf-${port}.yml`);
    await writeFile(settings, settingsText(socket, hasIpv6));
    const path = join(referenceTool("spiderpool").directory, program);
    const argv = ["env", ...environment, path, "daemon", "--config-path", settings, ...args];
    const daemon = await startDaemon(program, argv, machine);
    stack.defer(() => daemon.kill());
    await daemon.until(() => isReady(port, machine), READY_MS);
    return daemon;
  };
  const webhook = ["--tls-server-cert", certificate, "--tls-server-key", key];
  const first = { node: firstNode, socket: firstSocket, port: AGENT_PORT };
  const controller = hasController
    ? await start("spiderpool-controller", { ...first, port: CONTROLLER_PORT }, ...webhook)
    : undefined;
  const others = otherNodes.map((node, index) => ({
    ...{ node, socket: join(directory, `spiderpool-${index}.sock`), port: OTHER_AGENTS_PORT + 2 * index },
  }));
  const agents = await inParallel([first, ...others], AT_ONCE, async (place) => {
    const { pid } = await start("spiderpool-agent", place);
    return { node: place.node, socket: place.socket, pid };
  });
  const [agent] = agents;
  if (agent === undefined) throw new Error("Spiderpool has no agent");
  const started = stack.move();
  return { agent, agents, controllerPid: controller?.pid, stop: () => started.disposeAsync() };
}

/** Place of a daemon of Spiderpool. */
interface Place {
  readonly node: string;
  readonly socket: string;
  /** For its probes; the next one is for its metrics. */
  readonly port: number;
}

function settingsText(socket: string, hasIpv6: boolean): string {
  return `ipamUnixSocketPath: ${socket}
enableIPv4: true
enableIPv6: ${hasIpv6}
enableStatefulSet: true
enableKubevirtStaticIP: true
enableCleanOutdatedEndpoint: false
enableSpiderSubnet: false
enableAutoPoolForApplication: false
enableIPConflictDetection: false
enableGatewayDetection: false
clusterSubnetDefaultFlexibleIPNumber: 0
tuneSysctlConfig: false
podResourceInject: { enabled: false, namespacesExclude: [], namespacesInclude: [] }
`;
}

/** Asks as the kubelet does. */
async function isReady(port: number, machine: Netns | undefined): Promise<boolean> {
  const ask = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET /v1/runtime/startup HTTP/1.0\\r\\n\\r\\n' >&3; head -n 1 <&3`;
  const argv = ["bash", "-c", ask];
  const { stdout } = await runCommand(machine?.enter(argv) ?? argv);
  return stdout.includes(" 200 ");
}
