/**
 * The place of the cluster's story: a control plane, two nodes with an agent each, and pods that a Deployment or a
 * StatefulSet wants. Everything is in namespaces of a name of its own; the machine's network is not touched.
 *
 *   control 10.60.0.5 ── segment 0 ── node1 eth0, node2 eth0      the pods' macvlan NICs are on eth0 of their node
 *
 * There are no controllers but Berth's own, and no kubelets: this file makes the pods that the manifests ask for and
 * plays their runtime.
 * Effects: namespaces, etcd, an API server, agents; all removed by the stack that it is given.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Agent } from "../../../test/lab/agent.ts";
import { readDocuments } from "../../../test/lab/apply.ts";
import { writeControllerKubeconfig } from "../../../test/lab/cluster/in-process.ts";
import { requestNodeToken } from "../../../test/lab/cluster/rights.ts";
import { cnitool, type PluginOutcome } from "../../../test/lab/cnitool.ts";
import { type ControlPlane, startControlPlane } from "../../../test/lab/control-plane.ts";
import { type Daemon, startDaemon } from "../../../test/lab/daemon.ts";
import { followHistory, type History } from "../../../test/lab/history/follow.ts";
import { STORED_AS_JSON } from "../../../test/lab/history/stored.ts";
import type { KubeClient, KubeObject } from "../../../test/lab/kube-client.ts";
import { createKubeClient } from "../../../test/lab/kube-client.ts";
import { podArgs } from "../../../test/lab/manifests.ts";
import type { Fabric } from "../../../test/lab/netns/fabric.ts";
import { NodePods } from "../../../test/lab/netns/node-pods.ts";
import { addressesOf, NetnsWorld } from "../../../test/lab/netns/world.ts";
import type { Netns } from "../../../test/lab/netns.ts";
import { root } from "../../setup/paths.mjs";

export const EXAMPLES = join(root, "deploy", "examples");
export const NAMESPACE = "shop";
export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
export const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
export const IF_NAME = "eth0";

const CONTROL = { host: 5, address: "10.60.0.5", port: 6443 };

export interface Node {
  readonly name: string;
  readonly netns: Netns;
  readonly agent: Agent;
  readonly pods: NodePods;
}

export interface Pod {
  readonly name: string;
  readonly uid: string;
  readonly node: Node;
  readonly netns: Netns;
  /** As the plugin's result says, without prefix length; none before the ADD. */
  addresses: readonly string[];
}

export interface Stage {
  readonly plane: ControlPlane;
  readonly fabric: Fabric;
  readonly history: History;
  readonly nodes: readonly Node[];
  /** The live pods, by name. */
  readonly pods: Map<string, Pod>;
  /** A client with the agents' rights and no more. */
  openAgentClient(): Promise<KubeClient>;
  /** Starts an agent on each of the two nodes; it has a token of the account that names the node. */
  startNodes(): Promise<void>;
  /** Starts the controller beside the control plane, as its Deployment in deploy/controller.yaml would. */
  startController(): Promise<void>;
  /** A pod as the workload of that file wants it, bound to the node: its object and its empty namespace. */
  createPod(file: string, name: string, node: Node): Promise<Pod>;
  /**
   * Calls the plugins as the runtime does. Never throws for what the plugins say; of an ADD that succeeds the pod's
   * addresses are noted.
   */
  call(command: "add" | "check" | "del", pod: Pod): Promise<PluginOutcome>;
  /** The object and the namespace go; the DEL was before. */
  removePod(pod: Pod): Promise<void>;
}

/**
 * The control plane without anything of Berth's; what has been made is undone by `stack`, also when something here
 * fails.
 */
export async function openStage(stack: AsyncDisposableStack): Promise<Stage> {
  const world = stack.use(new NetnsWorld("democ"));
  const fabric = await world.addFabric();
  const machine = await fabric.addHost("control", CONTROL.host);
  const plane = await startControlPlane({ machine, address: CONTROL.address, serverArgs: [STORED_AS_JSON] });
  world.defer(() => plane.stop());
  const history = await followHistory(plane.etcdUrl, { netnsPath: machine.path, minReuseMs: 2_000 });
  world.defer(() => history.close());
  const network = `democ${process.pid}`;
  const nodes: Node[] = [];
  const pods = new Map<string, Pod>();
  const sets = new Map<string, KubeObject>();
  return {
    ...{ plane, fabric, history, nodes, pods },
    openAgentClient: async () => {
      const { cert } = await plane.pair();
      return createKubeClient({
        netnsPath: machine.path,
        ...CONTROL,
        token: await requestNodeToken(plane.client, "node1"),
        ca: cert,
      });
    },
    startNodes: async () => {
      for (const [index, netns] of [fabric.node1, fabric.node2].entries()) {
        const name = `node${index + 1}`;
        const pods = await NodePods.open(name);
        world.defer(() => pods.close());
        nodes.push({ name, netns, pods, agent: await startAgent(plane, world, { name, netns, pods }) });
      }
      const { plugins } = JSON.parse(await readFile(join(EXAMPLES, "lan.conflist"), "utf8"));
      await world.define(network, plugins);
    },
    startController: async () => {
      const controller = await startController(plane, machine);
      world.defer(() => controller.kill());
    },
    createPod: async (file, name, node) => {
      const workload = sets.get(file) ?? (await findWorkload(plane, file));
      sets.set(file, workload);
      const { metadata } = await plane.client.create(PODS, podObject(workload, name, node));
      const netns = await world.addNetns(`${name}-${metadata.uid.slice(0, 4)}`);
      await node.pods.add(netns);
      const pod: Pod = { name, uid: metadata.uid, node, netns, addresses: [] };
      pods.set(name, pod);
      return pod;
    },
    call: async (command, pod) => {
      const { agent, netns: node } = pod.node;
      const args = podArgs(NAMESPACE, pod.name, pod.uid);
      const options = { confDir: agent.cniConfDir, node, ifName: IF_NAME, env: agent.env, args };
      const outcome = await cnitool(command, network, pod.netns.path, options);
      if (command === "add" && outcome.exitCode === 0) {
        pod.addresses = addressesOf(outcome.stdout);
      }
      return outcome;
    },
    removePod: async (pod) => {
      await plane.client.delete(`${PODS}/${pod.name}?gracePeriodSeconds=0`);
      await pod.node.pods.remove(pod.netns);
      await pod.netns.delete();
      pods.delete(pod.name);
    },
  };
}

async function startController(plane: ControlPlane, machine: Netns): Promise<Daemon> {
  const kubeconfig = await writeControllerKubeconfig(plane);
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs")];
  return startDaemon("berth-controller", [...program, "--kubeconfig", kubeconfig, "--identity", "demo"], machine);
}

async function startAgent(
  plane: ControlPlane,
  world: NetnsWorld,
  { name, netns, pods }: Omit<Node, "agent">,
): Promise<Agent> {
  const labels = { "kubernetes.io/hostname": name };
  await plane.client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } });
  const token = await requestNodeToken(plane.client, name);
  const kubeconfig = await plane.writeKubeconfig(`agent-${name}`, { token });
  return world.addAgent({ config: {}, kubeconfig, node: netns, args: ["--node", name], wrapper: pods.wrapper });
}

/** The object that the file's first document became. */
async function findWorkload(plane: ControlPlane, file: string): Promise<KubeObject> {
  const [document] = await readDocuments(join(EXAMPLES, file));
  const { apiVersion, kind, metadata } = document;
  return plane.client.get(`/apis/${apiVersion}/namespaces/${NAMESPACE}/${kind.toLowerCase()}s/${metadata.name}`);
}

function podObject({ apiVersion, kind, metadata, spec }: KubeObject, name: string, node: Node): object {
  const { name: owner, uid } = metadata;
  const { labels, annotations } = spec.template.metadata;
  const ownerReferences = [{ apiVersion, kind, name: owner, uid, controller: true }];
  return {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: { name, labels, annotations, ownerReferences },
    spec: { ...spec.template.spec, nodeName: node.name },
  };
}
