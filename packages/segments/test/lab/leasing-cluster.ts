/**
 * One of several clusters on a segment: a control plane on a machine of that segment, a controller beside it, and a
 * node with a built agent. There is no kubelet: starting a pod makes its object, its namespace and the runtime's calls.
 *
 *   const place = { machine, address: "10.60.0.5", node };
 *   const east = await LeasingCluster.open(world, { name: "east", ...place, network: "lan1" });
 *   await createRange(east.client, "lan", spec, { east: 4, west: 4 });
 *   await east.lease({ hub: east, pool: { subnet, gateway }, speed: 60 });
 *   const { pod, refusal } = await east.start("web-0");
 *   await east.end("web-0");
 *
 * Effects: a control plane, processes, namespaces; removed with the world.
 */
import { join } from "node:path";
import type { Agent } from "../../../../test/lab/agent.ts";
import { writeControllerKubeconfig } from "../../../../test/lab/cluster/in-process.ts";
import * as objects from "../../../../test/lab/cluster/objects.ts";
import { startPlane } from "../../../../test/lab/cluster/plane.ts";
import { requestNodeToken } from "../../../../test/lab/cluster/rights.ts";
import { cnitool, type PluginOutcome } from "../../../../test/lab/cnitool.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import { type Daemon, startDaemon } from "../../../../test/lab/daemon.ts";
import { STORED_AS_JSON } from "../../../../test/lab/history/stored.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";
import { podArgs } from "../../../../test/lab/manifests.ts";
import { NodePods } from "../../../../test/lab/netns/node-pods.ts";
import { addressesOf, type NetnsWorld } from "../../../../test/lab/netns/world.ts";
import type { Netns } from "../../../../test/lab/netns.ts";
import { addMember, applyHubRights, MEMBERS } from "./hub.ts";

const NAMESPACE = "shop";
const SETTINGS = { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "2s", grace: "2s" } };
const STARTED_MS = 60_000;

export interface LeasingOptions {
  readonly name: string;
  /** Of the control plane, with that address. */
  readonly machine: Netns;
  readonly address: string;
  /** Its `eth0` is on the segment. */
  readonly node: Netns;
  /** Name of the CNI network, which the world defines. */
  readonly network: string;
}

export interface StartedPod {
  readonly name: string;
  readonly uid: string;
  readonly netns: Netns;
  readonly address: string;
}

/** The pool that leases, as its status has it. */
export interface LeasedPool {
  readonly blocks: readonly { readonly block: string; readonly state: string }[];
  readonly problem?: string;
}

interface Parts extends LeasingOptions {
  readonly world: NetnsWorld;
  readonly plane: ControlPlane;
  readonly agent: Agent;
  readonly nodePods: NodePods;
}

export class LeasingCluster {
  readonly #parts: Parts;
  /** Those that have an address. */
  readonly pods = new Map<string, StartedPod>();

  /** Without a pool: that comes with {@link lease}. */
  static async open(world: NetnsWorld, options: LeasingOptions): Promise<LeasingCluster> {
    const { name, machine, address, node } = options;
    const plane = await startPlane({ machine, address, serverArgs: [STORED_AS_JSON] });
    world.defer(() => plane.stop());
    for (const namespace of [objects.SYSTEM, NAMESPACE])
      await plane.client.apply(`${objects.NAMESPACES}/${namespace}`, objects.namespaceObject(namespace));
    await plane.client.create(`${objects.NAMESPACES}/${objects.SYSTEM}/configmaps`, {
      ...objects.settingsObject(SETTINGS),
    });
    await plane.client.create(objects.NODES, objects.nodeObject(name));
    const nodePods = await NodePods.open(name);
    world.defer(() => nodePods.close());
    const kubeconfig = await plane.writeKubeconfig(`agent-${name}`, {
      token: await requestNodeToken(plane.client, name),
    });
    const agent = await world.addAgent({
      ...{ config: {}, kubeconfig, node, args: ["--node", name], wrapper: nodePods.wrapper },
    });
    return new LeasingCluster({ ...options, world, plane, agent, nodePods });
  }

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  get name(): string {
    return this.#parts.name;
  }
  get plane(): ControlPlane {
    return this.#parts.plane;
  }
  get client(): KubeClient {
    return this.plane.client;
  }

  /** The controller leases for the pool `lan` from the hub's range of that name. `speed`: of its clock of blocks. */
  async lease({ pool, ...options }: Omit<HastyOptions, "name" | "machine"> & { readonly pool: object }): Promise<void> {
    const { world, plane } = this.#parts;
    const controller = await startHastyController(plane, { ...this.#parts, ...options });
    world.defer(() => controller.kill());
    await this.client.create(
      objects.POOLS,
      objects.berthObject("IPPool", "lan", { ...pool, source: { range: "lan" } }),
    );
  }

  async pool(): Promise<LeasedPool> {
    return leasedPool(this.client);
  }

  /** The pod's object, its namespace and its ADD: its address, or the refusal. */
  async start(
    name: string,
  ): Promise<{ readonly pod?: StartedPod; readonly refusal?: string; readonly tookMs: number }> {
    const { world, nodePods } = this.#parts;
    const spec = { name, node: this.name, annotations: { ippool: { ipv4: ["lan"] } } };
    const { uid } = await objects.createPod(this.client, spec);
    const netns = await world.addNetns(`${this.name}-${name}`);
    await nodePods.add(netns);
    const startMs = performance.now();
    const outcome = await this.#call("add", { name, uid, netns });
    const tookMs = performance.now() - startMs;
    if (outcome.exitCode !== 0) {
      await this.#remove({ name, uid, netns });
      return { refusal: outcome.stderr.trim() || outcome.stdout.trim(), tookMs };
    }
    const [address = ""] = addressesOf(outcome.stdout);
    const pod = { name, uid, netns, address };
    this.pods.set(name, pod);
    return { pod, tookMs };
  }

  /** DEL, and the pod goes. Throws when the DEL fails. */
  async end(name: string): Promise<void> {
    const pod = this.pods.get(name);
    if (pod === undefined) throw new Error(`There is no pod ${name} in ${this.name}`);
    this.pods.delete(name);
    const { exitCode, stderr } = await this.#call("del", pod);
    if (exitCode !== 0) throw new Error(`DEL of ${name} failed: ${stderr}`);
    await this.#remove(pod);
  }

  #call(command: "add" | "del", { name, uid, netns }: Omit<StartedPod, "address">): Promise<PluginOutcome> {
    const { agent, node, network } = this.#parts;
    const options = { confDir: agent.cniConfDir, node, ifName: "eth0", env: agent.env };
    return cnitool(command, network, netns.path, { ...options, args: podArgs(NAMESPACE, name, uid) });
  }

  async #remove({ name, netns }: Omit<StartedPod, "address">): Promise<void> {
    await this.client.delete(`${objects.NAMESPACES}/${NAMESPACE}/pods/${name}?gracePeriodSeconds=0`);
    await this.#parts.nodePods.remove(netns);
    await netns.delete();
  }
}

interface HastyOptions {
  /** In the members of the range. */
  readonly name: string;
  readonly hub: Pick<ControlPlane, "client" | "writeKubeconfig">;
  /** Where it runs, and reaches both API servers. */
  readonly machine: Netns;
  /** Of its clock of blocks. */
  readonly speed: number;
}

/** The controller of a cluster that has blocks of a hub, as hasty-controller.ts has it. */
export async function startHastyController(plane: ControlPlane, options: HastyOptions): Promise<Daemon> {
  const { name, hub, machine, speed } = options;
  await applyHubRights(plane.client);
  const hubKubeconfig = await hub.writeKubeconfig(`member-${name}`, { token: await addMember(hub.client, name) });
  const program = join(import.meta.dirname, "hasty-controller.ts");
  const argv = [process.execPath, program, await writeControllerKubeconfig(plane), hubKubeconfig, name, String(speed)];
  const controller = await startDaemon(`controller of ${name}`, argv, machine);
  try {
    await controller.until(async () => controller.output().includes("Started"), STARTED_MS);
  } catch (error) {
    await controller.kill();
    throw error;
  }
  return controller;
}

/** The leased blocks in the status of the pool `lan`. */
export async function leasedPool(client: KubeClient): Promise<LeasedPool> {
  const { status } = await client.get(`${objects.POOLS}/lan`);
  return { blocks: [], ...status?.source };
}

/** `10.60.1.0/29 east, …`: as the hub has it, in the order of the addresses. */
export async function leasesOf(hub: KubeClient, range = "lan"): Promise<ReadonlyMap<string, string>> {
  const { items } = await hub.get(MEMBERS);
  const leases = items
    .filter(({ spec }: KubeObject) => spec.range === range)
    .flatMap(({ spec, status }: KubeObject) => Object.keys(status?.blocks ?? {}).map((block) => [block, spec.member]));
  const numberOf = (block: string) => Number(block.split("/")[0]?.split(".").at(-1));
  return new Map(leases.sort(([a]: [string], [b]: [string]) => numberOf(a) - numberOf(b)));
}
