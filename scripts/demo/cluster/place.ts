/**
 * The place of the cluster's story: a control plane, two nodes with an agent each, and pods that a workload of
 * deploy/examples wants. There are no controllers but Berth's own, and no kubelets: this file makes the pods, and
 * plays their runtime.
 *
 *   control 10.60.0.5 ── segment 0 ── node1 eth0, node2 eth0      the pods' macvlan NICs are on eth0 of their node
 *
 * Effects: namespaces, etcd, an API server, agents; all removed by the stack that the place is opened with.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeControllerKubeconfig } from "../../../test/lab/cluster/in-process.ts";
import { startPlane } from "../../../test/lab/cluster/plane.ts";
import { writeAgentKubeconfig } from "../../../test/lab/cluster/rights.ts";
import type { PluginOutcome } from "../../../test/lab/cnitool.ts";
import type { ControlPlane } from "../../../test/lab/control-plane.ts";
import { startDaemon } from "../../../test/lab/daemon.ts";
import { attachmentOf, followHistory, type History } from "../../../test/lab/history/follow.ts";
import { STORED_AS_JSON } from "../../../test/lab/history/stored.ts";
import type { KubeClient, KubeObject } from "../../../test/lab/kube-client.ts";
import { NodePods } from "../../../test/lab/netns/node-pods.ts";
import { addressesOf, type LabNode, type LabPod, NetnsWorld } from "../../../test/lab/netns/world.ts";
import { root } from "../../setup/paths.mjs";
import { addressesOn, type Narrator } from "../engine.ts";

export const EXAMPLES = join(root, "deploy", "examples");
export const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
const PODS = "/api/v1/namespaces/shop/pods";
const NETWORK = `democ${process.pid}`;

interface Node extends LabNode {
  readonly name: string;
  readonly pods: NodePods;
}

export interface Place {
  readonly plane: ControlPlane;
  readonly client: KubeClient;
  readonly history: History;
  readonly nodes: readonly Node[];
  readonly pods: Map<string, Pod>;
  /** Starts the controller beside the control plane, as its Deployment would. */
  readonly startController: () => Promise<void>;
  readonly world: NetnsWorld;
}

export async function open(stack: AsyncDisposableStack): Promise<Place> {
  const world = stack.use(new NetnsWorld("democ"));
  const { addHost, node1, node2 } = await world.addFabric();
  const machine = await addHost("control", 5);
  const plane = await startPlane({ machine, address: "10.60.0.5", serverArgs: [STORED_AS_JSON] });
  world.defer(() => plane.stop());
  const history = await followHistory(plane.etcdUrl, { netnsPath: machine.path, minReuseMs: 2_000 });
  world.defer(() => history.close());
  const nodes: Node[] = [];
  for (const [name, netns] of Object.entries({ node1, node2 })) {
    const metadata = { name, labels: { "kubernetes.io/hostname": name } };
    await plane.client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata });
    const pods = await NodePods.open(name);
    world.defer(() => pods.close());
    const kubeconfig = await writeAgentKubeconfig(plane, name);
    const options = { config: {}, kubeconfig, node: netns, args: ["--node", name], wrapper: pods.wrapper };
    nodes.push({ name, netns, pods, agent: await world.addAgent(options) });
  }
  await world.define(NETWORK, JSON.parse(await readFile(join(EXAMPLES, "lan.conflist"), "utf8")).plugins);
  const startController = async () => {
    const words = ["--kubeconfig", await writeControllerKubeconfig(plane), "--identity", "demo"];
    const argv = [process.execPath, join(root, "dist", "berth-controller.mjs"), ...words];
    const controller = await startDaemon("berth-controller", argv, machine);
    world.defer(() => controller.kill());
  };
  return { plane, client: plane.client, history, nodes, pods: new Map(), startController, world };
}

/** A pod as its workload wants it (web-0 of web), bound to node 1 or 2: its object and its empty namespace. */
export async function createPod(place: Place, name: string, number: 1 | 2): Promise<Pod> {
  const node = place.nodes[number - 1];
  if (node === undefined) throw new Error(`There is no node ${number}`);
  const kind = name.startsWith("db-") ? "StatefulSet" : "Deployment";
  const [owner = ""] = name.split("-");
  const path = `/apis/apps/v1/namespaces/shop/${kind.toLowerCase()}s/${owner}`;
  const { metadata, spec } = await place.client.get(path);
  const ownerReferences = [{ apiVersion: "apps/v1", kind, name: owner, uid: metadata.uid, controller: true }];
  const created = await place.client.create(PODS, {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { ...spec.template.metadata, name, ownerReferences } },
    spec: { ...spec.template.spec, nodeName: node.name },
  });
  const { uid } = created.metadata;
  const lab = await place.world.addPod(node, `${name}-${uid.slice(0, 4)}`, { name, uid, connectWait: "20" });
  await node.pods.add(lab.netns);
  const pod = new Pod(place, { name, uid, node, lab });
  place.pods.set(name, pod);
  return pod;
}

export class Pod {
  readonly name: string;
  readonly node: Node;
  readonly lab: LabPod;
  /** As the plugin's result says; none before the ADD. */
  addresses: readonly string[] = [];
  readonly #place: Place;
  readonly #uid: string;

  constructor(place: Place, { name, uid, node, lab }: Pick<Pod, "name" | "node" | "lab"> & { readonly uid: string }) {
    this.#place = place;
    this.#uid = uid;
    this.name = name;
    this.node = node;
    this.lab = lab;
  }

  /** The runtime's ADD, which may fail. */
  async add(): Promise<PluginOutcome> {
    const outcome = await this.lab.call("add", NETWORK);
    if (outcome.exitCode === 0) this.addresses = addressesOf(outcome.stdout).sort();
    return outcome;
  }

  /** ADD, and then: the plugin's result, the kernel and the API server agree. */
  async attach(narrator: Narrator): Promise<void> {
    const startMs = performance.now();
    const { exitCode, stderr } = await this.add();
    const tookMs = performance.now() - startMs;
    if (exitCode !== 0) throw new Error(`ADD of ${this.name} failed: ${stderr.trim()}`);
    const present = await addressesOn(this.lab.netns, "eth0", this.addresses.length);
    const objects = (await this.allocations()).map(({ spec }) => spec.address as string).sort();
    await this.judged();
    const isSo = [present, objects].every((each) => each.join() === this.addresses.join()) && objects.length > 0;
    const seen = `${this.addresses.join(", ")} (${tookMs.toFixed(0)} ms)`;
    narrator.claim(`${this.name} on ${this.node.name} has what the API server says`, isSo, seen);
  }

  /** The history hears of the pod's addresses. Resolves when it has checked them. */
  async judged(): Promise<void> {
    await Promise.all(this.#attachments.map((each) => this.#place.history.attached(each)));
  }

  /** The runtime's DEL. Returns the time that it took: milliseconds. Throws when it fails. */
  async detach(): Promise<number> {
    for (const each of this.#attachments) this.#place.history.leaving(each);
    const startMs = performance.now();
    const { exitCode, stderr } = await this.lab.call("del", NETWORK);
    if (exitCode !== 0) throw new Error(`DEL of ${this.name} failed: ${stderr.trim()}`);
    return performance.now() - startMs;
  }

  /** The object and the namespace go; the DEL was before. */
  async remove(): Promise<void> {
    await this.#place.client.delete(`${PODS}/${this.name}?gracePeriodSeconds=0`);
    await this.node.pods.remove(this.lab.netns);
    await this.lab.netns.delete();
    this.#place.pods.delete(this.name);
  }

  /** DEL, and the pod goes. */
  async end(): Promise<void> {
    await this.detach();
    await this.remove();
  }

  /** The objects of its addresses, whatever their state. */
  async allocations(): Promise<KubeObject[]> {
    const isOwn = ({ podUID }: KubeObject): boolean => podUID === this.#uid;
    return (await allocationsOf(this.#place)).filter(({ spec }) => spec.holders?.some(isOwn));
  }

  async reaches(narrator: Narrator, to: Pod): Promise<void> {
    const what = `${this.name} on ${this.node.name} reaches ${to.name} on ${to.node.name}`;
    for (const address of to.addresses) await narrator.reaches(what, this.lab.netns, address);
  }

  get #attachments() {
    return this.addresses.map((address) => attachmentOf(address, this.#uid));
  }
}

/** Throws when it does not live. */
export function podOf(place: Place, name: string): Pod {
  const pod = place.pods.get(name);
  if (pod === undefined) throw new Error(`There is no pod ${name}`);
  return pod;
}

/** The objects in the order of their names. */
export async function allocationsOf({ client }: Place): Promise<KubeObject[]> {
  return (await client.get(ALLOCATIONS)).items;
}

/** Prints the output of `kubectl get ipallocations.ipam.vendor.io`. */
export async function showAllocations(place: Place, narrator: Narrator): Promise<void> {
  const rows = (await allocationsOf(place)).map(({ metadata: { name }, spec }) => {
    return [name, spec.state, spec.pool, spec.node, spec.holders?.[0]?.pod ?? spec.workload?.member ?? ""];
  });
  narrator.table("NAME STATE POOL NODE POD", rows);
}
