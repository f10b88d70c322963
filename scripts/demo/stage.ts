/**
 * The place of the story: a node in a small data centre, an agent on it, and pods that come and go. Everything is in
 * namespaces of a name of its own; the machine's network is not touched.
 *
 *   node: eth0 ── segment 0 ── router ── outside      the pods' macvlan NICs are on eth0 and eth1;
 *         eth1 ── segment 1 ──┘                       pods0 10.10.0.1 is the node's own bridge for pods
 *
 * The fabric in test/lab/netns/fabric.ts has the whole picture. Called by demo.ts; the scenes use it.
 * Effects: namespaces, an agent; all removed by the stack that it is given.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "../../test/lab/agent.ts";
import { berthBin, type PluginOutcome, requireSuccess } from "../../test/lab/cnitool.ts";
import type { Fabric } from "../../test/lab/netns/fabric.ts";
import { type CniAnswer, type LabPod, NetnsWorld } from "../../test/lab/netns/world.ts";
import type { Netns } from "../../test/lab/netns.ts";
import {
  type NetworkList,
  type NetworkName,
  networkLists,
  type PluginConf,
  type PodSpec,
  podManifest,
  poolManifests,
  settings,
} from "./manifests.ts";
import { openMapWindow } from "./map-window.ts";

/** The main plugins are those of Debian's package. */
const CNI_PATH = [berthBin, "/usr/lib/cni"];

/** For which a plugin waits for an agent, by default. */
const CONNECT_WAIT_S = "20";

export interface Nic {
  readonly network: NetworkName;
  readonly ifName: string;
  /** As the plugin's result says, with prefix length: `10.10.0.10/24`. */
  readonly addresses: readonly string[];
}

export interface Pod {
  readonly spec: PodSpec;
  readonly inLab: LabPod;
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
  /** A container runtime's ADD or DEL of one NIC: the answer of the last plugin. Never throws for what they say. */
  call(command: "ADD" | "DEL", pod: Pod, nic: Pick<Nic, "network" | "ifName">): Promise<PluginOutcome>;
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
  const world = stack.use(new NetnsWorld("demo"));
  const fabric = await world.addFabric();
  const directory = await mkdtemp(join(tmpdir(), "berth-demo-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const mapSocket = join(directory, "map.sock");
  const config = { "pools.yaml": poolManifests(), "settings.yaml": settings };
  const node = await world.addNode(fabric.node1, config, { args: ["--map-listen", `unix:${mapSocket}`] });
  const mapUrl = await openMapWindow(mapSocket, stack);
  // The agent reads there which plugins follow a main plugin.
  for (const { name, plugins, cniVersion } of networks.values()) await world.define(name, plugins, cniVersion);
  const pods = new Map<string, Pod>();
  return {
    ...{ agent: node.agent, fabric, node: node.netns, mapUrl, pods },
    call: (command, { inLab }, { network, ifName }) =>
      callPlugins(command, inLab, { ifName, list: requireList(network) }),
    createPod: async (spec) => {
      await node.agent.write(`pod-${spec.name}.yaml`, podManifest(spec));
      const inLab = await world.addPod(node, spec.name, { uid: spec.uid, connectWait: CONNECT_WAIT_S });
      const pod = { spec, inLab, netns: inLab.netns, nics: [] };
      pods.set(spec.name, pod);
      return pod;
    },
    attach: async (pod, network, ifName) => {
      const outcome = await callPlugins("ADD", pod.inLab, { ifName, list: requireList(network) });
      const { ips }: CniAnswer = requireSuccess(outcome, `ADD of ${network} for ${pod.spec.name}`);
      const nic = { network, ifName, addresses: ips.map(({ address }) => address) };
      pod.nics.push(nic);
      return nic;
    },
  };
}

/**
 * Calls a network's plugins as runtimes do: each gets the answer of the one before, the first one that refuses is the
 * last, and DEL goes backwards with the answer of the ADD.
 */
async function callPlugins(
  command: "ADD" | "DEL",
  pod: LabPod,
  { ifName, list: { cniVersion, name, plugins } }: { readonly ifName: string; readonly list: NetworkList },
): Promise<PluginOutcome> {
  const call = (plugin: PluginConf, prevResult: CniAnswer | undefined): Promise<PluginOutcome> =>
    pod.run(plugin.type, command, { ifName, prevResult, cniPath: CNI_PATH, conf: { ...plugin, cniVersion, name } });
  let outcome: PluginOutcome | undefined;
  for (const plugin of command === "ADD" ? plugins : plugins.toReversed()) {
    outcome = await call(plugin, command === "ADD" ? outcome?.stdout : pod.resultOf(ifName));
    if (outcome.exitCode !== 0) return outcome;
  }
  if (outcome === undefined) throw new Error(`Network ${name} has no plugin`);
  if (command === "ADD") pod.adopt(ifName, outcome.stdout);
  return outcome;
}
