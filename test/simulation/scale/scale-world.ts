/**
 * A large simulated cluster: the product's controller, full agents (the product's) on as many nodes as fit into a
 * process, and light nodes, which make an agent's requests and nothing else. Deployments whose pools are generated
 * out of Subnets; each pod has one NIC.
 */
import type { ControllerProcess } from "../../../host/controller/controller-process.ts";
import { CONTROLLERS } from "../../../host/controller/controllers.ts";
import { sizeOf, spansOf } from "../../../host/core/spans.ts";
import type { Send } from "../../../host/kubernetes/http/request.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { ADMINISTRATOR } from "../../fakes/admission/admission.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { allocationObject, allocationSpec, podTemplate } from "../../lab/cluster/objects.ts";
import { openSimulatedController } from "../cluster.ts";
import {
  CONFIG_MAPS,
  COORDINATORS,
  DEPLOYMENTS,
  LEASES,
  NODES,
  PODS,
  POOLS,
  REPLICA_SETS,
  RESERVED,
  SERVES,
  SUBNETS,
} from "../collections.ts";
import { type Call, Machine, type MainPlugin } from "../machine.ts";
import type { Segment } from "../namespaces.ts";
import { Network, type NetworkOptions, type Request } from "../network.ts";
import { networkDirectory } from "../network-directory.ts";
import { THIS_PRODUCT } from "../product.ts";
import type { Process, SimulatedTime } from "../simulated-time.ts";
import { Timeline } from "../timeline.ts";
import { ServerModel } from "./server-model.ts";

const NAMESPACE = "shop";
const COOLDOWN_S = 5;
const SETTINGS = `
enableIPv6: false
allocationCooldown: ${COOLDOWN_S}s
maxAddressesPerNamespace: 0
maxGeneratedAddressesPerNamespace: 0
`;
/** Pools of one Subnet: below the kind's limit. */
const POOLS_OF_SUBNET = 2_000;
/** A runtime takes so long from the pod's binding to its ADD: milliseconds. */
const SANDBOX_MS = 300;
const NEVER = new AbortController().signal;
/** Time that a light node's agent needs for an ADD beside its requests: milliseconds. */
const LIGHT_ADD_MS = 2;
/** Older events are forgotten after as long again at most. */
const KEPT_EVENTS_MS = 300_000;
/** Writes of Kubernetes itself for a pod's life: creation, binding, statuses, deletion. */
const WRITES_OF_POD = 6;

export interface ScaleShape {
  readonly nodes: number;
  readonly full: number;
  readonly pods: number;
  readonly pools: number;
  readonly processors: number;
}

export interface ScalePod {
  readonly name: string;
  readonly uid: string;
  readonly workload: number;
  node: ScaleNode;
  createdMs: number;
  /** Address of its allocation; undefined until its ADD is answered. */
  address: string | undefined;
  isEnding: boolean;
}

export interface ScaleNode {
  readonly name: string;
  readonly index: number;
  readonly machine: Machine | undefined;
  isDown: boolean;
  /** The agent answers from then on: milliseconds. */
  readyAtMs: number;
  readonly pods: Set<ScalePod>;
}

/** Where requests wait for the server's processors, and events for their distribution. */
class ScaleNetwork extends Network {
  readonly #model: ServerModel;
  readonly #time: SimulatedTime;

  constructor(parts: NetworkOptions, model: ServerModel) {
    super(parts);
    this.#time = parts.time;
    this.#model = model;
  }

  override loadMs(request: Request): number {
    return this.#model.request(request, this.#time.nowMs);
  }
}

/** The pool from which a workload's pods get their addresses. */
interface WorkloadPool {
  readonly name: string;
  readonly ips: readonly string[];
  /** Place of the next one to try. */
  next: number;
}

/** Full agents' pods have no NICs. */
const NO_SEGMENT: Segment = {
  onUp: () => {},
  onDown: () => {},
  onTaken: () => {},
  onReleasing: () => {},
  onReleased: () => {},
  macOf: () => undefined,
  loseJournal: () => {},
  copyJournal: () => {},
  restoreJournal: () => {},
  boot: () => {},
};

export class ScaleWorld {
  readonly server: MemoryApiServer;
  readonly model: ServerModel;
  readonly network: ScaleNetwork;
  readonly nodes: readonly ScaleNode[];
  readonly pods = new Set<ScalePod>();
  /** Times of the phase's ADDs: milliseconds. */
  addMs: number[] = [];
  /** ADDs that were refused and tried again, by reason. */
  readonly failures = new Map<string, number>();
  controller: ControllerProcess | undefined;
  readonly controllerProcess: Process;
  readonly plane: Process;
  readonly #time: SimulatedTime;
  readonly #shape: ScaleShape;
  /** By workload. */
  readonly #pools: (WorkloadPool | undefined)[] = [];
  /** The connections of all light nodes. */
  readonly #light: Send;
  #count = 0;

  constructor(time: SimulatedTime, shape: ScaleShape) {
    this.#time = time;
    this.#shape = shape;
    this.plane = time.process("control plane");
    this.controllerProcess = time.process("controller");
    const timeline = new Timeline(() => time.nowMs);
    this.server = new MemoryApiServer({ serves: SERVES, isOpen: true, nowMs: () => Date.now() });
    this.model = new ServerModel(shape.processors);
    const wire = time.process("wire");
    const network = new ScaleNetwork({ time, timeline, server: this.server, wire }, this.model);
    this.network = network;
    this.#light = network.connect(this.plane, "light nodes", ADMINISTRATOR);
    this.server.onWritten = ({ collection, after }) => {
      network.deliveryMs = this.model.written(collection, time.nowMs);
      if (collection === POOLS && after !== undefined) this.#onPool(after);
    };
    const never = { goesOn: () => false, isOrphan: () => false };
    const plugin: MainPlugin = { linkOf: ({ ifName }) => ifName, delayOf: () => 0, ...never };
    const nics = { hasEarlyNics: false, hasSpool: false, paths: "containers", plugin } as const;
    const parts = { time, timeline, network, segment: NO_SEGMENT, cniConfDirectory: networkDirectory(), ...nics };
    // Full agents are spread evenly, so that every zone has some.
    const step = Math.max(1, Math.floor(shape.nodes / Math.max(1, shape.full)));
    this.nodes = Array.from({ length: shape.nodes }, (_, index): ScaleNode => {
      const isFull = index % step === 0 && index / step < shape.full;
      const name = `n${index}`;
      const machine = isFull ? new Machine(name, parts) : undefined;
      return { name, index, machine, isDown: false, readyAtMs: Number.POSITIVE_INFINITY, pods: new Set() };
    });
  }

  inside<T>(work: () => T): T {
    return this.#time.inside(this.plane, work);
  }

  /** Settings, Subnets, workloads and nodes; then the controller. No agent yet. */
  furnish(): void {
    const { server } = this;
    server.put("/api/v1/namespaces", NAMESPACE, {});
    server.put(CONFIG_MAPS, "vendor-conf", {
      metadata: { namespace: "kube-system" },
      data: { "conf.yml": SETTINGS },
    });
    for (let index = 0; index * POOLS_OF_SUBNET < this.#shape.pools; index++)
      server.put(SUBNETS, `lan${index}`, {
        metadata: { generation: 1 },
        spec: { subnet: `10.${64 + 2 * index}.0.0/15` },
      });
    for (const node of this.nodes) this.setReady(node, true);
    this.#compactLater(0);
    const options = { time: this.#time, process: this.controllerProcess, network: this.network };
    this.controller = openSimulatedController(THIS_PRODUCT, { ...options, controllers: CONTROLLERS });
  }

  /** As the real server, which keeps the events of five minutes. */
  #compactLater(version: number): void {
    const now = this.server.version;
    this.#time.schedule(KEPT_EVENTS_MS, "compaction", this.plane, () => {
      this.server.compactTo(version);
      this.#compactLater(now);
    });
  }

  setReady({ name }: ScaleNode, isReady: boolean): void {
    const conditions = [{ type: "Ready", status: isReady ? "True" : "Unknown" }];
    this.server.put(NODES, name, { metadata: { uid: `node-${name}`, labels: {} }, spec: {}, status: { conditions } });
  }

  get #replicas(): number {
    return this.#shape.pods / this.#shape.pools;
  }

  /** A Deployment with its ReplicaSet, whose pool the controller makes. */
  putWorkload(index: number): void {
    const replicas = this.#replicas;
    // All of its pods may be on nodes that are lost: of thousands of workloads some have two thirds there.
    const annotations = { "ipam.vendor.io/ippool-ip-number": `+${replicas + 2}` };
    const template = podTemplate("web", { subnet: subnetOf(index), annotations });
    const spec = { replicas, selector: {}, template };
    const name = `web-${index}`;
    const metadata = { namespace: NAMESPACE, generation: 1, uid: `d-${index}` };
    const status = { observedGeneration: 1, replicas, updatedReplicas: replicas };
    this.server.put(DEPLOYMENTS, name, { metadata, spec, status });
    const owner = { apiVersion: "apps/v1", kind: "Deployment", name, uid: `d-${index}`, controller: true };
    this.server.put(REPLICA_SETS, `${name}-5d9c7f`, {
      metadata: { ...metadata, uid: `r-${index}`, ownerReferences: [owner] },
      spec,
      status: { replicas },
    });
  }

  /** Pools that have addresses for all pods of their workload. */
  get completePools(): number {
    return this.#pools.filter((pool) => pool !== undefined && pool.ips.length > this.#replicas).length;
  }

  #onPool(object: object): void {
    const { name, spec } = decodeIpPool(object, "simulation");
    const { application } = spec.generated ?? {};
    if (application === undefined) return;
    const workload = Number(application.uid.slice(2));
    const before = this.#pools[workload];
    if (before?.ips.length === Number(sizeOf(spansOf(spec.ranges)))) return;
    const ips = spec.ranges.flatMap(({ first, last }) =>
      Array.from({ length: Number(last.value - first.value) + 1 }, (_, at) =>
        formatIp({ family: 4, value: first.value + BigInt(at) }),
      ),
    );
    this.#pools[workload] = { name, ips, next: before?.next ?? 0 };
  }

  /** Starts an agent with its first reads and its eight watches; resolves when it serves. */
  startAgent(node: ScaleNode): void {
    const time = this.#time;
    this.model.agents++;
    if (node.machine !== undefined) {
      node.machine.start();
      node.readyAtMs = time.nowMs;
      return;
    }
    const list = (path: string, pages: number): number =>
      this.model.request({ method: "GET", path, query: { limit: 500 } }, time.nowMs, pages);
    const delays = [
      list(POOLS, Math.max(1, Math.ceil(this.#shape.pools / 500))),
      ...[ALLOCATIONS, "/api/v1/pods", NODES, "/api/v1/namespaces"].map((path) => list(path, 1)),
    ];
    for (const path of [RESERVED, COORDINATORS]) list(path, 1);
    this.model.request({ method: "GET", path: `${LEASES}/berth-controller` }, time.nowMs);
    for (let watch = 0; watch < 8; watch++) this.model.request({ method: "GET", path: ALLOCATIONS }, time.nowMs);
    node.readyAtMs = time.nowMs + Math.max(...delays);
  }

  stopAgent(node: ScaleNode): void {
    this.model.agents--;
    node.machine?.kill();
    node.readyAtMs = Number.POSITIVE_INFINITY;
    this.network.breakWatches(node.name);
  }

  pickNode(): ScaleNode {
    const { random } = this.plane;
    for (;;) {
      const node = random.pick(this.nodes);
      if (!node.isDown) return node;
    }
  }

  createPod(workload: number): ScalePod {
    const time = this.#time;
    const number = ++this.#count;
    const node = this.pickNode();
    const uid = `p${number}`;
    const name = `web-${workload}-5d9c7f-${number}`;
    const pod: ScalePod = { name, uid, workload, node, createdMs: time.nowMs, address: undefined, isEnding: false };
    this.pods.add(pod);
    node.pods.add(pod);
    for (let write = 0; write < WRITES_OF_POD; write++)
      this.model.request({ method: "PATCH", path: `${PODS}/${name}` }, time.nowMs);
    const set = { name: `web-${workload}-5d9c7f`, uid: `r-${workload}` };
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", ...set, controller: true };
    const { annotations } = podTemplate("web", { subnet: subnetOf(workload) }).metadata;
    this.server.put(PODS, name, {
      metadata: { uid, namespace: NAMESPACE, annotations, ownerReferences: [owner] },
      spec: { nodeName: node.name },
      status: { phase: "Pending" },
    });
    if (node.machine === undefined) this.#claim(pod);
    else time.schedule(SANDBOX_MS, "sandbox", this.plane, () => void this.#addFull(pod));
    return pod;
  }

  async #addFull(pod: ScalePod): Promise<void> {
    const time = this.#time;
    const { machine } = pod.node;
    if (machine === undefined || pod.isEnding || pod.node.isDown) return;
    const startMs = time.nowMs;
    machine.namespaces.add(pod.uid);
    try {
      const [address] = await machine.add(callOf("ADD", pod), new AbortController().signal);
      this.#added(pod, String(address), time.nowMs - startMs);
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
      time.schedule(1_000, "kubelet tries again", this.plane, () => void this.#addFull(pod));
    }
  }

  #fail(text: string): void {
    const reason = text.replaceAll(/[0-9]+/g, "N").slice(0, 160);
    this.failures.set(reason, (this.failures.get(reason) ?? 0) + 1);
  }

  /** As a prefetch: a create as soon as the node's watch has the pod. The ADD comes with the sandbox. */
  #claim(pod: ScalePod): void {
    const time = this.#time;
    const { node } = pod;
    if (pod.isEnding || node.isDown) return;
    const again = (afterMs: number): void => {
      time.schedule(afterMs, "claim", this.plane, () => this.#claim(pod));
    };
    if (node.readyAtMs > time.nowMs) {
      again(250);
      return;
    }
    const address = this.#findFree(pod.workload);
    if (address === undefined) {
      this.#fail("light: the pool has no free address");
      again(1_000);
      return;
    }
    const body = this.#objectOf(pod, address);
    void this.#send({ method: "POST", path: ALLOCATIONS, body }).then((status) => {
      const readyMs = pod.createdMs + SANDBOX_MS;
      if (status === 409) this.#claim(pod);
      else this.#added(pod, address, LIGHT_ADD_MS + Math.max(0, time.nowMs - readyMs));
    });
  }

  #objectOf(pod: ScalePod, address: string, state: IpAllocationSpec["state"] = "Bound", metadata: object = {}): object {
    const { name, uid, node, workload } = pod;
    const holder = { namespace: NAMESPACE, pod: name, podUid: uid, ifName: "eth0", node: node.name };
    const place = { prefixLength: 15, pool: this.#pools[workload]?.name ?? "", node: node.name };
    const spec = allocationSpec(address, { ...place, state, holders: state === "Bound" ? [holder] : [] });
    return allocationObject({ ...spec, since: "2026-01-01T00:00:00.000Z" }, metadata);
  }

  #findFree(workload: number): string | undefined {
    const pool = this.#pools[workload];
    for (let tried = 0; pool !== undefined && tried < pool.ips.length; tried++) {
      const address = pool.ips[pool.next++ % pool.ips.length];
      if (address !== undefined && !this.server.objects.has(address)) return address;
    }
    return undefined;
  }

  /** Sends a light node's request. */
  async #send(request: Request): Promise<number> {
    const { status } = await this.#light(request, NEVER);
    return status;
  }

  #added(pod: ScalePod, address: string, tookMs: number): void {
    pod.address = address;
    this.addMs.push(tookMs);
    if (pod.isEnding) this.#detach(pod);
  }

  /** The pod's object goes, and with it its sandbox. */
  endPod(pod: ScalePod): void {
    if (pod.isEnding) return;
    pod.isEnding = true;
    this.pods.delete(pod);
    if (pod.node.isDown) return;
    this.#finish(pod);
  }

  #finish(pod: ScalePod): void {
    this.server.remove(pod.name, PODS);
    if (pod.address !== undefined) this.#detach(pod);
    else pod.node.pods.delete(pod);
  }

  #detach(pod: ScalePod): void {
    const { node } = pod;
    node.pods.delete(pod);
    const { machine } = node;
    if (machine === undefined) this.#release(pod);
    else
      void machine.del(callOf("DEL", pod)).then(() => {
        machine.namespaces.remove(pod.uid);
      });
  }

  /** In a small pool a released address is shown as cooling, and deleted after the cooldown. */
  #release(pod: ScalePod): void {
    const time = this.#time;
    const { address = "", node } = pod;
    if (node.readyAtMs > time.nowMs) {
      time.schedule(500, "release", this.plane, () => this.#release(pod));
      return;
    }
    const found = this.server.objects.get(address);
    if (found === undefined) return;
    const path = `${ALLOCATIONS}/${address}`;
    const { resourceVersion, uid } = found.metadata;
    const body = this.#objectOf(pod, address, "Cooling", { resourceVersion, uid });
    void this.#send({ method: "PUT", path, body }).then(() =>
      time.schedule(COOLDOWN_S * 1_000, "cooled", this.plane, () => void this.#send({ method: "DELETE", path })),
    );
  }

  /** Power and network of the nodes fail. */
  cut(nodes: readonly ScaleNode[]): void {
    for (const node of nodes) {
      node.isDown = true;
      this.network.cutOff.add(node.name);
      this.stopAgent(node);
    }
  }

  /** The machines boot: no sandbox is left, and the kubelet removes evicted pods. */
  restoreNodes(nodes: readonly ScaleNode[]): void {
    for (const node of nodes) {
      node.isDown = false;
      this.network.cutOff.delete(node.name);
      node.machine?.namespaces.clear();
      this.startAgent(node);
      this.setReady(node, true);
      for (const pod of [...node.pods]) if (pod.isEnding) this.#finish(pod);
    }
  }

  /** Objects that say Bound for a pod that is gone. */
  get stale(): number {
    const live = new Set([...this.pods].map(({ uid }) => uid));
    let count = 0;
    for (const { spec } of this.server.objects.values()) {
      const holders = spec.holders as readonly { podUID: string }[] | undefined;
      if (spec.state === "Bound" && !holders?.some(({ podUID }) => live.has(podUID))) count++;
    }
    return count;
  }

  get waiting(): number {
    let count = 0;
    for (const { address } of this.pods) if (address === undefined) count++;
    return count;
  }
}

function subnetOf(workload: number): string {
  return `lan${Math.floor(workload / POOLS_OF_SUBNET)}`;
}

function callOf(command: Call["command"], { name, uid }: ScalePod): Call {
  return { command, namespace: NAMESPACE, pod: name, uid, containerId: uid, ifName: "eth0", network: "lan" };
}
