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
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { referenceTool } from "../../setup/paths.mjs";
import { requireCommand, runCommand } from "../command.ts";
import { type Daemon, startDaemon } from "../daemon.ts";
import type { Netns } from "../netns.ts";

export interface SpiderpoolOptions {
  readonly kubeconfig: string;
  readonly node: string;
  readonly hasIpv6?: boolean;
  /** Where both run; default: this process's own namespace. */
  readonly machine?: Netns;
  /** Default: in a folder of its own. Its coordinator knows {@link FIXED_SOCKET} only. */
  readonly socket?: string;
}

export const FIXED_SOCKET = "/var/run/spidernet/spiderpool.sock";

export interface Spiderpool {
  readonly socket: string;
  readonly agentPid: number;
  readonly controllerPid: number;
  stop(): Promise<void>;
}

const AGENT_PORT = 5710;
const CONTROLLER_PORT = 5720;
const READY_MS = 60_000;

export async function startSpiderpool(options: SpiderpoolOptions): Promise<Spiderpool> {
  const { kubeconfig, node, hasIpv6 = false, machine } = options;
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "berth-spiderpool-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const { socket = join(directory, "spiderpool.sock") } = options;
  await mkdir(dirname(socket), { recursive: true });
  stack.defer(() => rm(socket, { force: true }));
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
    const daemon = await startDaemon(program, [...argv, ...args], machine);
    stack.defer(() => daemon.kill());
    await daemon.until(() => isReady(port, machine), READY_MS);
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

/** Asks as the kubelet does. */
async function isReady(port: number, machine: Netns | undefined): Promise<boolean> {
  const ask = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET /v1/runtime/startup HTTP/1.0\\r\\n\\r\\n' >&3; head -n 1 <&3`;
  const argv = ["bash", "-c", ask];
  const { stdout } = await runCommand(machine?.enter(argv) ?? argv);
  return stdout.includes(" 200 ");
}
