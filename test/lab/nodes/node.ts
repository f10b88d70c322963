/**
 * One real node: a machine with containerd, a kubelet and the built agent of Berth, which has a token of its own
 * account that is bound to this node.
 *
 *   const node = await addRealNode(site, { number: 1, network: "berth" });
 *   await node.restart("kubelet");
 *   await node.crash(); await node.boot();            // as when the plug is pulled and put back
 *   await node.execInPod(uid, ["ping", "-c1", "10.99.16.7"]);
 *   await node.remove();
 *
 * Effects: a network namespace, processes, cgroups, files below the site's folder; the Node object stays.
 */
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Agent, startAgent } from "../agent.ts";
import type { KubernetesVersion } from "../cluster/plane-parts.ts";
import { createHostToken } from "../cluster/rights.ts";
import { type CommandOutcome, runCommand } from "../command.ts";
import type { ControlPlane } from "../control-plane.ts";
import { createNetns, type Netns } from "../netns.ts";
import { compileSeccomp } from "../seccomp.ts";
import { findPodProcesses, makeCgroups, removeCgroups } from "./cgroups.ts";
import { type Runtime, startContainerd } from "./containerd.ts";
import { startCrio } from "./crio.ts";
import { startKubelet, staticPodFolder } from "./kubelet.ts";
import { bootMachine, type Machine, type MachineProcess } from "./machine.ts";
import { type NetworkName, networkList } from "./networks.ts";

/** For which tokens of a cluster are valid: seconds. */
export const TOKEN_S = 36_000;

/** The common part of one cluster's nodes. */
export interface Site {
  readonly plane: ControlPlane;
  readonly directory: string;
  /** Network namespace of the bridge `lan`. */
  readonly switch: Netns;
  /** The plugins, as a path of the nodes. */
  readonly binDir: string;
  /** Nodes without Berth, each with its own /opt and /etc for an installation. */
  readonly isInstallable: boolean;
  readonly images: readonly string[];
  readonly multusKubeconfig: string;
  readonly runtime: Runtime;
  readonly kubernetes: KubernetesVersion;
}

export interface RealNodeOptions {
  /** From 1. */
  readonly number: number;
  /** Undefined: none, until one is installed. */
  readonly network: NetworkName | undefined;
}

/** `containerd` stands for the runtime, which may be another one. */
export type NodeProgram = "containerd" | "kubelet";

export interface RealNode {
  readonly name: string;
  readonly address: string;
  /** Throws on an installable node: its agent is a pod. */
  readonly agent: Agent;
  /** The machine that runs now; throws while there is none. */
  readonly machine: Machine;
  /** Ends the program as a service manager does. */
  stop(program: NodeProgram, signal?: NodeJS.Signals): Promise<void>;
  start(program: NodeProgram): Promise<void>;
  /** Both. */
  restart(program: NodeProgram, signal?: NodeJS.Signals): Promise<void>;
  /** Sends it and does not wait: a program hangs from SIGSTOP to SIGCONT. */
  signal(program: NodeProgram, signal: NodeJS.Signals): void;
  /** SIGKILL, and a new one. */
  restartAgent(): Promise<void>;
  /** All processes end at once, the agent's, too. */
  crash(): Promise<void>;
  /** After a crash: the same folders, another boot. */
  boot(): Promise<void>;
  /** Which network containerd and the agent find from now on. */
  setNetwork(network: NetworkName): Promise<void>;
  /** Number of a process of the pod, as this process's namespace has it; throws when it has none here. */
  findPodProcess(uid: string): Promise<number>;
  /** In the network namespace of the pod; throws when it has no process here. */
  execInPod(uid: string, argv: readonly string[]): Promise<CommandOutcome>;
  /** The kubelet's folder of static pods. */
  readonly manifests: string;
  remove(): Promise<void>;
}

/** Directory of networks of an installable node; the chart's default. */
const CONF_DIR = "/etc/cni/net.d";

/** As the object's name, and its account's. */
export const nodeName = (number: number): string => `node${number}`;
export const nodeAccount = (number: number) => ({ name: `system:node:${nodeName(number)}`, groups: ["system:nodes"] });

/** The Node object must exist, so that a token can be bound to it. When something fails, nothing is left. */
export async function addRealNode(site: Site, options: RealNodeOptions): Promise<RealNode> {
  const stack = new AsyncDisposableStack();
  try {
    return await openNode(site, options, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function openNode(site: Site, { number, network }: RealNodeOptions, stack: AsyncDisposableStack) {
  const name = nodeName(number);
  const address = `10.99.0.${10 + number}`;
  const directory = join(site.directory, name);
  const cgroup = `berth-${process.pid}-${name}`;
  await mkdir(directory, { recursive: true });
  await makeCgroups(cgroup);
  stack.defer(() => removeCgroups(cgroup));
  const netns = await plugIn(site.switch, name, address);
  stack.defer(() => netns.delete());
  const kubeconfig = await site.plane.writeKubeconfig(`kubelet-${name}`, { account: nodeAccount(number).name });
  const running = new RunningNode({ site, name, address, directory, cgroup, netns, kubeconfig });
  stack.defer(() => running.crash());
  await running.bootMachine();
  const { confDir } = running;
  await running.machine.run(["mkdir", "-p", confDir]);
  const setNetwork = (wanted: NetworkName) =>
    writeNetwork(join(running.machine.root, confDir), networkList(wanted, { ...site, number }));
  if (network !== undefined) await setNetwork(network);
  const agent = site.isInstallable ? undefined : await startNodeAgent(site, running, confDir);
  stack.defer(async () => agent?.delete());
  running.pluginEnv = agent?.env ?? {};
  await running.startPrograms();
  const node: RealNode = {
    name,
    address,
    get agent() {
      if (agent === undefined) throw new Error(`The agent of ${name} is no process of the lab`);
      return agent;
    },
    get machine() {
      return running.machine;
    },
    stop: (program, signal) => running.stop(program, signal),
    start: (program) => running.start(program),
    restart: async (program, signal) => {
      await running.stop(program, signal);
      await running.start(program);
    },
    signal: (program, signal) => running.signal(program, signal),
    restartAgent: async () => {
      await node.agent.kill("SIGKILL");
      await node.agent.start();
    },
    crash: async () => {
      await agent?.kill("SIGKILL");
      await running.crash();
    },
    boot: async () => {
      await running.bootMachine();
      await agent?.start();
      await running.startPrograms();
    },
    setNetwork,
    findPodProcess: async (uid) => {
      const [pid] = await findPodProcesses(cgroup, uid);
      if (pid === undefined) throw new Error(`The pod with UID ${uid} has no process on ${name}`);
      return pid;
    },
    execInPod: async (uid, argv) =>
      runCommand(["nsenter", `--net=/proc/${await node.findPodProcess(uid)}/ns/net`, ...argv]),
    manifests: staticPodFolder({ directory }),
    remove: () => stack.disposeAsync(),
  };
  return node;
}

/** A machine with a cable from its `eth0` to the switch. */
export async function plugIn(wires: Netns, name: string, address: string): Promise<Netns> {
  const netns = await createNetns(`${wires.name}-${name}`);
  try {
    await netns.ip(`link add eth0 type veth peer name ${name} netns ${wires.name}`);
    await netns.ip("link set eth0 up");
    await netns.ip(`addr add ${address}/16 dev eth0`);
    await netns.ip("route add default via 10.99.0.1");
    await wires.ip(`link set ${name} master lan up`);
    return netns;
  } catch (error) {
    await netns.delete();
    throw error;
  }
}

async function writeNetwork(confDir: string, list: object): Promise<void> {
  const path = join(confDir, "10-lan.conflist");
  const temporary = `${path}.tmp`;
  await writeFile(temporary, JSON.stringify(list));
  await rename(temporary, path);
}

/**
 * With the rights of deploy/rbac.yaml, under the seccomp profile of the agent's containers. It ends with the process
 * that entered the machine for it.
 */
async function startNodeAgent({ plane, binDir }: Site, running: RunningNode, confDir: string): Promise<Agent> {
  const { name, netns } = running.place;
  const kubeconfig = await plane.writeKubeconfig(`agent-${name}`, {
    token: await createHostToken(plane.client, name, TOKEN_S),
  });
  const enter = (argv: readonly string[]): string[] =>
    running.machine.enter(["setpriv", "--pdeathsig", "KILL", "--", ...argv]);
  const env = { BERTH_CNI_CONF_DIR: confDir, BERTH_CNI_BIN_DIR: binDir };
  const wrapper = compileSeccomp("berth-agent.json", running.place.directory);
  return startAgent({ kubeconfig, node: { ...netns, enter }, args: ["--node", name], env, wrapper });
}

interface NodePlace {
  readonly site: Site;
  readonly name: string;
  readonly address: string;
  readonly directory: string;
  readonly cgroup: string;
  readonly netns: Netns;
  readonly kubeconfig: string;
}

/** From one boot to the next. */
class RunningNode {
  readonly place: NodePlace;
  readonly #programs = new Map<NodeProgram, MachineProcess>();
  /** Environment by which the plugins find the agent. */
  pluginEnv: Readonly<Record<string, string>> = {};
  #machine: Machine | undefined;

  constructor(place: NodePlace) {
    this.place = place;
  }

  get machine(): Machine {
    if (this.#machine === undefined) throw new Error(`${this.place.name} is switched off`);
    return this.#machine;
  }

  async bootMachine(): Promise<void> {
    const { isInstallable } = this.place.site;
    this.#machine = await bootMachine({ ...this.place, isInstallable });
  }

  /** Directory in which containerd looks for networks, as a path of the machine. */
  get confDir(): string {
    const { site, directory } = this.place;
    return site.isInstallable ? CONF_DIR : join(directory, "net.d");
  }

  async startPrograms(): Promise<void> {
    await this.start("containerd");
    await this.start("kubelet");
  }

  async stop(program: NodeProgram, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.#programs.get(program)?.end(signal);
  }

  signal(program: NodeProgram, signal: NodeJS.Signals): void {
    this.#programs.get(program)?.signal(signal);
  }

  async crash(): Promise<void> {
    const machine = this.#machine;
    this.#machine = undefined;
    await machine?.powerOff();
    await Promise.all([...this.#programs.values()].map((program) => program.end("SIGKILL")));
    this.#programs.clear();
    await rm(join(this.place.directory, "containerd.sock"), { force: true });
  }

  async start(program: NodeProgram): Promise<void> {
    const { site, name, address, kubeconfig, cgroup } = this.place;
    const startRuntime = site.runtime === "crio" ? startCrio : startContainerd;
    const started =
      program === "containerd"
        ? await startRuntime(this.machine, { ...site, confDir: this.confDir, env: this.pluginEnv })
        : await startKubelet(this.machine, { node: name, address, kubeconfig, cgroup, kubernetes: site.kubernetes });
    this.#programs.set(program, started);
  }
}
