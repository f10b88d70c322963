/**
 * Where the story happens: a node, the network that it is plugged into, an agent, and pods that come and go.
 * Everything is in namespaces of a name of its own; the machine's network is not touched.
 *
 *   "lan" namespace: bridge lan0 10.20.0.1, fd00:20::1 ── veth ── "node" namespace: uplink ── macvlan ── pods
 *                                                                                  cni0 10.10.0.1 ── veth ── pods
 *
 * Called by demo.ts; the scenes use it.
 * Effects: namespaces, an agent, a temporary folder; all removed by the stack that it is given.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, startAgent } from "../lab/agent.ts";
import { cnitool, forgetNetwork, type PluginOutcome } from "../lab/cnitool.ts";
import { addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { networkLists, type PodSpec, podManifest, poolManifests, settings } from "./manifests.ts";

export interface Nic {
  readonly network: "bridge" | "lan";
  readonly ifName: string;
  /** As the plugin's result says, with prefix length: `10.10.0.10/24`. */
  readonly addresses: readonly string[];
}

export interface Pod {
  readonly spec: PodSpec;
  readonly netns: Netns;
  readonly nics: Nic[];
}

export interface Stage {
  readonly agent: Agent;
  readonly node: Netns;
  readonly lan: Netns;
  /** The pods that live, by name. */
  readonly pods: Map<string, Pod>;
  /** Writes the pod's manifest and makes its namespace; no NIC yet. */
  createPod(spec: PodSpec): Promise<Pod>;
  /** A container runtime's ADD, CHECK or DEL of one NIC, through cnitool. Never throws for what the plugins say. */
  call(command: "add" | "check" | "del", pod: Pod, nic: Pick<Nic, "network" | "ifName">): Promise<PluginOutcome>;
  /** ADD that has to succeed; the NIC is noted in the pod. */
  attach(pod: Pod, network: Nic["network"], ifName: string): Promise<Nic>;
}

/** Builds the stage; what has been made is undone by `stack`, also when something here fails. */
export async function openStage(stack: AsyncDisposableStack): Promise<Stage> {
  const prefix = `demo${process.pid}`;
  const networks = { bridge: `${prefix}-bridge`, lan: `${prefix}-lan` };
  const confDir = await writeNetworks(stack, networks);
  const [node, lan] = [await keptNetns(stack, `${prefix}-node`), await keptNetns(stack, `${prefix}-net`)];
  await plugIn(node, lan);
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(), "settings.yaml": settings }, node });
  stack.defer(() => agent.delete());
  const pods = new Map<string, Pod>();

  const call: Stage["call"] = (command, { spec, netns }, { network, ifName }) =>
    cnitool(command, networks[network], netns.path, { confDir, node, ifName, env: agent.env, args: podArgs(spec) });
  return {
    agent,
    node,
    lan,
    pods,
    call,
    createPod: async (spec) => {
      await agent.write(`pod-${spec.name}.yaml`, podManifest(spec));
      const pod = { spec, netns: await keptNetns(stack, `${prefix}-${spec.name}`), nics: [] };
      pods.set(spec.name, pod);
      return pod;
    },
    attach: async (pod, network, ifName) => {
      const { exitCode, stdout, stderr } = await call("add", pod, { network, ifName });
      if (exitCode !== 0) throw new Error(`ADD of ${pod.spec.name} ${ifName} failed: ${stderr.trim()}`);
      const nic = { network, ifName, addresses: stdout.ips.map(({ address }: { address: string }) => address) };
      pod.nics.push(nic);
      return nic;
    },
  };
}

async function keptNetns(stack: AsyncDisposableStack, name: string): Promise<Netns> {
  const netns = await createNetns(name);
  stack.defer(() => netns.delete());
  return netns;
}

async function writeNetworks(stack: AsyncDisposableStack, names: { bridge: string; lan: string }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "berth-demo-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  for (const name of Object.values(names)) stack.defer(() => forgetNetwork(name));
  const confDir = join(directory, "net.d");
  await mkdir(confDir);
  for (const [name, list] of Object.entries(networkLists(names))) {
    await writeFile(join(confDir, `${name}.conflist`), JSON.stringify(list, undefined, 2));
  }
  return confDir;
}

/** The node's uplink into the data-centre's network, whose gateway is the other end. */
async function plugIn(node: Netns, lan: Netns): Promise<void> {
  await addVeth({ netns: node, name: "uplink" }, { netns: lan, name: "lan0" });
  await lan.ip("addr add 10.20.0.1/24 dev lan0");
  await lan.ip("addr add fd00:20::1/64 dev lan0 nodad");
}

/** What kubelet's runtime tells the plugins about a pod. */
function podArgs({ name, uid }: PodSpec): string {
  return `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${uid}`;
}
