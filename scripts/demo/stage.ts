/**
 * The place of the story: a node in a small data centre, an agent on it, and pods that come and go. Everything is in
 * namespaces of a name of its own; the machine's network is not touched.
 *
 *   node: eth0 ── segment 0 ── router ── outside      the pods' macvlan NICs are on eth0 and eth1;
 *         eth1 ── segment 1 ──┘                       pods0 10.10.0.1 is the node's own bridge for pods
 *
 * The fabric in test/lab/fabric.ts has the whole picture. Called by demo.ts; the scenes use it.
 * Effects: namespaces, an agent; all removed by the stack that it is given.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { cnitool, forgetNetwork, type PluginOutcome, runPlugin } from "../../test/lab/cnitool.ts";
import { type Fabric, makeFabric } from "../../test/lab/fabric.ts";
import { podArgs } from "../../test/lab/manifests.ts";
import type { Netns } from "../../test/lab/netns.ts";
import {
  type NetworkList,
  type NetworkName,
  networkLists,
  type PodSpec,
  podManifest,
  poolManifests,
  settings,
} from "./manifests.ts";
import { openMapWindow } from "./map-window.ts";

export interface Nic {
  readonly network: NetworkName;
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
  readonly fabric: Fabric;
  /** The namespace of the node on which the agent runs. */
  readonly node: Netns;
  /** URL of the agent's address map for a browser on this machine. */
  readonly mapUrl: string;
  /** The pods that live, by name. */
  readonly pods: Map<string, Pod>;
  /** Writes the pod's manifest and makes its namespace; no NIC yet. */
  createPod(spec: PodSpec): Promise<Pod>;
  /** A container runtime's ADD, CHECK or DEL of one NIC, through cnitool. Never throws for what the plugins say. */
  call(command: "add" | "check" | "del", pod: Pod, nic: Pick<Nic, "network" | "ifName">): Promise<PluginOutcome>;
  /**
   * The same of the network's main plugin alone, in a sandbox of its own: its error has a code, which cnitool leaves
   * out.
   */
  callMain(command: "ADD" | "DEL", pod: Pod, nic: Pick<Nic, "network" | "ifName">): Promise<PluginOutcome>;
  /** ADD that has to succeed; the NIC is noted in the pod. */
  attach(pod: Pod, network: Nic["network"], ifName: string): Promise<Nic>;
}

/** Builds the stage; what has been made is undone by `stack`, also when something here fails. */
export async function openStage(stack: AsyncDisposableStack): Promise<Stage> {
  const networks = networkLists(`demo${process.pid}`);
  const requireList = (name: NetworkName): NetworkList => {
    const list = networks.get(name);
    if (list === undefined) throw new Error(`There is no network ${name}`);
    return list;
  };
  for (const { name } of networks.values()) stack.defer(() => forgetNetwork(name));
  const fabric = await makeFabric("demo");
  stack.defer(() => fabric.delete());
  const node = fabric.node1;
  const directory = await mkdtemp(join(tmpdir(), "berth-demo-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const mapSocket = join(directory, "map.sock");
  const agent = await startAgent({
    config: { "pools.yaml": poolManifests(), "settings.yaml": settings },
    args: ["--map-listen", `unix:${mapSocket}`],
    node,
  });
  stack.defer(() => agent.delete());
  const mapUrl = await openMapWindow(mapSocket, stack);
  await writeNetworks(agent.cniConfDir, [...networks.values()]);
  const pods = new Map<string, Pod>();

  const call: Stage["call"] = (command, { spec, netns }, { network, ifName }) =>
    cnitool(command, requireList(network).name, netns.path, {
      ...{ confDir: agent.cniConfDir, node, ifName, env: agent.env, args: podArgs("shop", spec.name, spec.uid) },
    });
  return {
    agent,
    fabric,
    node,
    mapUrl,
    pods,
    call,
    callMain: (command, { spec, netns }, { network, ifName }) => {
      const { cniVersion, name, plugins } = requireList(network);
      const attachment = {
        containerId: `main-${spec.name}`,
        netns: netns.path,
        ifName,
        args: podArgs("shop", spec.name, spec.uid),
      };
      const stdin = { ...plugins[0], cniVersion, name };
      return runPlugin({ plugin: "macvlan", command, ...attachment, stdin, env: agent.env, node });
    },
    createPod: async (spec) => {
      await agent.write(`pod-${spec.name}.yaml`, podManifest(spec));
      const pod = { spec, netns: await fabric.addNetns(spec.name), nics: [] };
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

async function writeNetworks(directory: string, lists: readonly NetworkList[]): Promise<void> {
  for (const list of lists) await writeFile(join(directory, `${list.name}.conflist`), JSON.stringify(list));
}
