/**
 * Spiderpool's controller and the agent of one node, against a control plane on loopback, with the settings of its chart.
 *
 *   const spiderpool = await startSpiderpool({ kubeconfig: plane.kubeconfig, node: "spider" });
 *   spiderpool.socket;                                   // of its plugin: ipam_unix_socket_path
 *   await spiderpool.stop();
 *
 * The kinds are those of cluster/peer-kinds.ts. Its webhooks are served, and not registered: objects are written complete.
 * Effects: two processes, which listen on ports 5710 to 5722; a folder below the system's temporary folder, gone after `stop`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { referenceTool } from "../../setup/paths.mjs";
import { requireCommand } from "../command.ts";
import { type Daemon, startDaemon } from "../daemon.ts";

export interface SpiderpoolOptions {
  readonly kubeconfig: string;
  readonly node: string;
  readonly hasIpv6?: boolean;
}

export interface Spiderpool {
  readonly socket: string;
  readonly agentPid: number;
  readonly controllerPid: number;
  stop(): Promise<void>;
}

const AGENT_PORT = 5710;
const CONTROLLER_PORT = 5720;
const READY_MS = 60_000;

export async function startSpiderpool({ kubeconfig, node, hasIpv6 = false }: SpiderpoolOptions): Promise<Spiderpool> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "berth-spiderpool-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const socket = join(directory, "spiderpool.sock");
  const settings = join(directory, "conf.yml");
  await writeFile(settings, settingsText(socket, hasIpv6));
  const [certificate, key] = [join(directory, "tls.crt"), join(directory, "tls.key")];
  const pair = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2"];
  await requireCommand(["openssl", "req", "-x509", ...pair, "-subj", "/CN=localhost"]);
  const environment = [
    ...["GIT_COMMIT_VERSION=", `KUBECONFIG=${kubeconfig}`, `SPIDERPOOL_NODE_NAME=${node}`],
    ...["SPIDERPOOL_POD_NAMESPACE=kube-system", "SPIDERPOOL_GOPS_LISTEN_PORT="],
    // It refuses a pod's first NIC that Multus has no network for.
    "MULTUS_CLUSTER_NETWORK=kube-system/default",
  ];
  const start = async (program: string, port: number, ...args: readonly string[]): Promise<Daemon> => {
    const path = join(referenceTool("spiderpool").directory, program);
    const argv = ["env", ...environment, `SPIDERPOOL_POD_NAME=${program}-0`, path, "daemon", "--config-path", settings];
    const daemon = await startDaemon(program, [...argv, ...args]);
    stack.defer(() => daemon.kill());
    await daemon.until(() => isReady(port), READY_MS);
    return daemon;
  };
  const webhook = ["--tls-server-cert", certificate, "--tls-server-key", key];
  const controller = await start("spiderpool-controller", CONTROLLER_PORT, ...webhook);
  const agent = await start("spiderpool-agent", AGENT_PORT);
  const started = stack.move();
  return {
    socket,
    agentPid: agent.pid,
    controllerPid: controller.pid,
    stop: () => started.disposeAsync(),
  };
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

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/v1/runtime/startup" }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", reject);
  });
}
