/**
 * A simulated cluster: the API server, machines with agents, kubelets and pods, two controller processes of the
 * product, and further parts of Kubernetes: StatefulSets and other workloads, the life of nodes, owner garbage
 * collection.
 */

import { hash } from "node:crypto";
import type { ControllerProcess } from "../../host/controller/controller-process.ts";
import { NOTICE_REST_MS } from "../../host/controller/notices/notice-controller.ts";
import type { Credentials } from "../../host/kubernetes/credentials.ts";
import { BACKGROUND_ATTEMPT_MS, POD_ATTEMPT_MS } from "../../host/kubernetes/http/retry.ts";
import { REGISTRY_KINDS } from "../../host/registry/epoch/kubernetes-epoch.ts";
import { LOOK_AGAIN_MS } from "../../host/registry/kubernetes/object-sync.ts";
import { NOTICE_ANNOTATION } from "../../host/resources/allocation-notice.ts";
import { type Admission, CONTROLLER } from "../fakes/admission/admission.ts";
import { ALLOCATIONS, MemoryApiServer, type StoredObject } from "../fakes/memory-api-server.ts";
import type { Seeded } from "../world/seeded.ts";
import {
  CLAIMS,
  CONFIG_MAPS,
  COORDINATORS,
  CUSTOM_KINDS,
  DEFINITIONS,
  DEPLOYMENTS,
  inNamespace,
  LEASES,
  LISTED_SETS,
  NAMESPACES,
  NODES,
  PODS,
  POOLS,
  REPLICA_SETS,
  RESERVED,
  SERVES,
  SETS,
  SUBNETS,
  TENANT,
} from "./collections.ts";
import { Kubelet, type KubeletApi, type KubeletFaults, type PodObject } from "./kubelet.ts";
import { addressOf, Ledger } from "./ledger.ts";
import { type Call, Machine, plainConf } from "./machine.ts";
import type { Nic, Paths } from "./namespaces.ts";
import { LATE_MS, Network } from "./network.ts";
import { NicLife } from "./nic-life.ts";
import { type Product, THIS_PRODUCT } from "./product.ts";
import { Replacements } from "./replacements.ts";
import { RESTED_MS, Reservations } from "./reservations.ts";
import { type Process, pause, type SimulatedTime } from "./simulated-time.ts";
import { generatedOf, SubnetLedger } from "./subnet-ledger.ts";
import { Tenant, type TenantLimits } from "./tenant.ts";
import { Thief } from "./thief.ts";
import type { Timeline } from "./timeline.ts";
import { VirtualMachines } from "./virtual-machines.ts";
import {
  annotationsOf,
  claimName,
  controllerOf,
  deploymentObject,
  LISTED,
  namesOf,
  networksOf,
  pinsOf,
  replicaSetObjects,
  STATUS_OF_BERTH,
  setObject,
  uidOf,
  type Workload,
} from "./workload.ts";

/** The cluster has no EndpointSlices of Services and no scheduling gates. */
function simulatedControllers({ CONTROLLERS }: Product): Product["CONTROLLERS"] {
  const { services: _services, gates: _gates, ...simulated } = CONTROLLERS;
  return simulated;
}

interface SimulatedControllerOptions {
  readonly time: SimulatedTime;
  readonly process: Process;
  readonly network: Network;
  readonly controllers: Product["CONTROLLERS"];
  readonly poolEventsPerSecond?: number;
}

/** A controller in that process, which has its name. */
export function openSimulatedController(
  product: Product,
  { time, process, network, ...own }: SimulatedControllerOptions,
): ControllerProcess {
  const random = (): number => process.random.u32() / 2 ** 32;
  return time.inside(process, () => {
    const api = product.openKubeClient({
      credentials: {} as Credentials,
      userAgent: "berth-controller",
      random,
      send: network.connect(process, process.name, CONTROLLER),
    });
    return product.openController({
      api,
      random,
      configNamespace: "kube-system",
      lease: {
        namespace: "kube-system",
        name: "berth-controller",
        identity: process.name.replace(" ", "_"),
        timings: { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 },
      },
      clock: { nowMs: () => time.nowMs + 7_000_000, pause: (waitMs, signal) => pause(waitMs, signal) },
      now: () => new Date(),
      log: product.openLog("simulation", "silent"),
      ...own,
    });
  });
}

/** The NIC of pods whose addresses another IPAM plugin gives. */
export const FOREIGN_NIC = "san0";
const MIRROR = "kubernetes.io/config.mirror";

function isEmpty(taints: unknown): boolean {
  return Array.isArray(taints) && taints.length === 0;
}

export const FAMILIES = ["blue", "six"] as const;
/** Family of a pool: 10.6.0.0/16 or fd00::/64. */
type Family = (typeof FAMILIES)[number];
const POOL_NETWORKS: Readonly<Record<Family, string>> = { blue: "10.6.0.0/16", six: "fd00::/64" };

/**
 * Short, so that much happens in little time. With virtual machines a ready node's agent counts as inactive only
 * after it has compared its allocations without a controller's notice, as with the default settings.
 */
function settings({ cooldown, tenant, virtualMachines, workloads }: ClusterShape): string {
  const listed = workloads.some(({ isListed }) => isListed) ? `retainByName: [${JSON.stringify(LISTED)}]\n` : "";
  const own = Object.entries(tenant ?? {}).map(([key, value]) => `${key}: ${value}\n`);
  return `
allocationCooldown: ${cooldown}
garbageCollection: { interval: 20s, grace: 5s, nodeLost: ${virtualMachines === undefined ? 40 : 200}s }
${own.join("")}${listed}`;
}

/** Longest silence of a machine before it counts as not ready: milliseconds. */
const NODE_GRACE_MS = 10_000;
/** Time for which it may be not ready before its pods are evicted: milliseconds. */
const EVICTION_MS = 20_000;
const TICK_MS = 250;
/**
 * A claim that was under way when its agent was told of a pool or a reservation is answered within: milliseconds; where
 * answers are lost, and ADDs wait for several things in turn, within the second.
 */
const CLAIMED_MS = 3_000;
const CLAIMED_LATE_MS = 20_000;
/** Time for which a roll-out waits for a new controller, and ticks for which it waits for a new agent. */
const READY_MS = 2_000;
const READY_WAITS = 40;
/**
 * While a started agent's reads are answered at once, it has compared its journal with the API server within:
 * milliseconds (undo).
 */
const COMPARED_MS = 2_500;
/**
 * While a webhook keeps each write, a waiting pod has its addresses within: milliseconds. Time in which each write
 * needs two attempts counts half.
 */
const SLOW_ADD_MS = 60_000;
/** Most copies of deleted allocations that an administrator keeps; and of those that were Bound to another pod. */
const COPIES_MOST = 20;

export interface ClusterShape {
  readonly machines: number;
  readonly workloads: readonly Workload[];
  /** Addresses of each pool. */
  readonly poolSize: number;
  readonly selection: "hash" | "ascending";
  /** `allocationCooldown` */
  readonly cooldown: string;
  /** `detectIPConflict`, with NICs that exist before their addresses. */
  readonly isDetecting: boolean;
  /** Each machine has a static pod. */
  readonly hasStaticPods: boolean;
  /** See {@link Ledger}. */
  readonly isStrict: boolean;
  /** Subnets by name, with the number of addresses that each offers; absent: none. */
  readonly subnets?: ReadonlyMap<string, number>;
  /** A hostile tenant, with these limits of every namespace; absent: none. */
  readonly tenant?: TenantLimits;
  /** Number of virtual machines; absent: none. */
  readonly virtualMachines?: number;
  /** The controller's rate of pool events; absent: its default. */
  readonly poolEventsPerSecond?: number;
  /** A write is carried out at most so long after its caller ended: milliseconds; absent: LATE_MS. */
  readonly lateMs?: number;
  /** Spooled DELs are files. */
  readonly hasSpool?: boolean;
  /** Node objects say which machine they are of. */
  readonly hasNodeInfo?: boolean;
  /** Paths of namespaces, in turn for each machine; absent: containers. */
  readonly paths?: readonly Paths[];
  /** Virtual machines have the addresses themselves, behind a bridge in their pod. */
  readonly hasBridges?: boolean;
  /** So many addresses of each family are only their owners'; Services and Nodes have some, too. */
  readonly owned?: number;
  /** A network `red` has pools of the same prefixes in an address space of its own. */
  readonly hasSpaces?: boolean;
}

interface ClusterOptions {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly shape: ClusterShape;
  readonly cniConfDirectory: string;
  /** Of packages. */
  readonly controllers?: Product["CONTROLLERS"];
  /** Versions of agents and controllers, the newest one first; absent: this one. */
  readonly products?: readonly Product[];
}

interface Controller {
  readonly process: Process;
  readonly running: ControllerProcess;
}

/** One machine with its kubelet. */
export interface Node {
  machine: Machine;
  kubelet: Kubelet | undefined;
  lives: number;
  /** Containers of an earlier life of the kubelet. */
  left: readonly Call[];
  /** Since when it has been silent; undefined while it reports. */
  silentSinceMs: number | undefined;
  /** It has no Node object, whether its machine reports or not. */
  isUnregistered: boolean;
  /** Number of its Node objects that were deleted so that another one follows. */
  registrations: number;
}

export class Cluster {
  readonly server: MemoryApiServer;
  readonly network: Network;
  readonly ledger: Ledger;
  /** Undefined without Subnets. */
  readonly subnetLedger: SubnetLedger | undefined;
  /** Undefined without one. */
  readonly tenant: Tenant | undefined;
  readonly thief: Thief | undefined;
  /** Undefined without any. */
  readonly virtualMachines: VirtualMachines | undefined;
  /** Undefined unless addresses are reserved for owners. */
  readonly reservations: Reservations | undefined;
  readonly nodes: readonly Node[];
  readonly replacements: Replacements;
  /** With those that have lost their names to others. */
  readonly #machines: Machine[] = [];
  readonly nics: NicLife;
  readonly workloads: Workload[];
  kubeletFaults: KubeletFaults = { hangUp: 0, lateDel: 0, twice: 0 };
  readonly #options: ClusterOptions;
  readonly #plane: Process;
  readonly #controllers: Controller[] = [];
  /** Decides which versions run. */
  readonly #versions: Process;
  /** The version whose definitions and policies were applied last. */
  #definitions: Product;
  #rollOuts = 0;
  #controllerLives = 0;
  #lastUid = 0;
  /** No UID is given out again, also when etcd goes back. */
  #lastLife = 1;
  #isByHand = false;
  /** Lot drawn for {@link deleteAllocationLater}. */
  #lot: number | undefined;
  #lastFile = 0;
  #lastPool = 0;
  /** By name, the last one last. */
  readonly #deleted = new Map<string, StoredObject>();
  /** The same, as they were before their pod was gone. */
  readonly #former = new Map<string, StoredObject>();
  #restored = 0;
  /** Number of times that another controller has become the leader. */
  leaders = 0;
  ledSinceMs = 0;
  /** Time for which each agent has been comparing its journal for the first time, while it could act: milliseconds. */
  readonly #comparingMs = new WeakMap<Process, number>();
  /** The longest of these times. */
  mostComparingMs = 0;
  /** Time for which each pod has waited while a webhook keeps writes, by UID: milliseconds. */
  #waitingMs: ReadonlyMap<string, number> = new Map();
  /** When a record was last written. */
  #recordedMs = 0;
  readonly #staticPods = new Map<string, PodObject>();
  /** Workloads' objects as they were last written, by path. */
  readonly #objects = new Map<string, string>();
  /** Of pools, by node. */
  readonly #nodeAddresses = new Map<string, string | undefined>();
  /** Each family's pool as it was last named. */
  readonly pools: Record<Family, string> = { blue: "blue", six: "six" };

  constructor(options: ClusterOptions) {
    const { time, timeline, shape, cniConfDirectory } = options;
    this.#options = options;
    const { poolSize, isStrict } = shape;
    const numbers = Array.from({ length: poolSize }, (_, index) => index + 1);
    const addresses = numbers.flatMap((each) => [fourth(each), sixth(each)]);
    const isRunning = (podUID: string): boolean =>
      this.#allPods.some(({ uid, isFinished }) => uid === podUID && !isFinished);
    const facts = {
      isStrict,
      keepsOwn: shape.hasStaticPods && shape.subnets === undefined,
      hasLastRelease: options.products?.some((product) => product !== THIS_PRODUCT) === true,
      isRunning,
      lateMs: shape.lateMs ?? LATE_MS,
      knownMs: (node: string, atMs: number) => this.knownMs(node, atMs),
      mayChange: (key: string, address?: string) => this.reservations?.mayChange(key, address) === true,
      sharing: {
        identityOf: (pod: string) => this.virtualMachines?.identityOf(pod) ?? pod,
        mayShare: (one: Nic, other: Nic) => this.virtualMachines?.mayShare(one, other) === true,
      },
    };
    this.ledger = new Ledger({ nowMs: () => time.nowMs, addresses, ...facts });
    this.#plane = time.process("control plane");
    this.#versions = time.process("versions");
    this.#definitions = this.#pickProduct();
    this.server = new MemoryApiServer({
      ...{ serves: SERVES, isOpen: true, nowMs: () => Date.now() },
      admission: this.#admission,
    });
    this.network = new Network({
      ...{ time, timeline, server: this.server, wire: time.process("wire") },
    });
    this.network.onRefused = (text) => {
      // Policies of the release before do not know records without a pod.
      const isUnknown = this.#definitions !== this.#newest && text.includes("would go from absent to Kept");
      if (!isUnknown) this.ledger.problems.push(text);
    };
    this.network.onVeryLate = ({ method, path, body }, lateMs) => {
      if (method !== "POST" || path !== ALLOCATIONS || lateMs < Math.max(...LOOK_AGAIN_MS)) return;
      this.ledger.createdVeryLate(addressOf((body as StoredObject).metadata.name));
    };
    this.server.onWritten = ({ collection, before, after }) => this.#written(collection, before, after);
    this.workloads = shape.workloads.map((workload) => ({
      ...workload,
      ...(workload.subnets === undefined ? {} : { subnets: { ...workload.subnets } }),
    }));
    if (shape.subnets !== undefined) this.subnetLedger = new SubnetLedger(this);
    const { problems } = this.ledger;
    if (shape.tenant !== undefined) {
      this.thief = new Thief({ server: this.server, random: time.process("thief").random, node: "n1", problems });
      this.tenant = new Tenant(this, shape.tenant);
    }
    if (shape.virtualMachines !== undefined) this.virtualMachines = new VirtualMachines(this, shape.virtualMachines);
    if (shape.owned !== undefined) {
      const last = poolSize - shape.owned;
      const all = FAMILIES.map((family) => numbers.map((each) => addressAt(family, each)));
      const addresses = all.map((each) => ({ open: each.slice(0, last), closed: each.slice(last) }));
      this.reservations = new Reservations(this, addresses);
    }
    const { paths = ["containers"], hasBridges = false } = shape;
    this.nics = new NicLife({
      ...{ time, timeline, hasBridges },
      machines: () => this.#machines,
      isRunning,
      isGuest: (pod) => this.virtualMachines?.isLauncher(pod) === true,
    });
    const newMachine = (name: string, host?: string): Machine => {
      const { network, ledger: segment, nics: plugin } = this;
      const parts = { time, timeline, network, segment, cniConfDirectory, product: this.#pickProduct() };
      const own = {
        paths: paths[this.#machines.length % paths.length] ?? "containers",
        hasEarlyNics: shape.isDetecting,
        hasSpool: shape.hasSpool === true,
      };
      const machine = new Machine(name, { ...parts, ...own, plugin }, host);
      this.#machines.push(machine);
      return machine;
    };
    this.nodes = Array.from({ length: shape.machines }, (_, index) => ({
      machine: newMachine(`n${index + 1}`),
      kubelet: undefined,
      lives: 0,
      left: [],
      silentSinceMs: undefined,
      isUnregistered: false,
      registrations: 0,
    }));
    this.replacements = new Replacements({ time, process: this.#plane, cluster: this, newMachine });
  }

  get nowMs(): number {
    return this.#options.time.nowMs;
  }

  /** The Node's status says that it has the address, or none. */
  setAddress(name: string, address: string | undefined): void {
    this.#nodeAddresses.set(name, address);
    const before = this.server.collection(NODES).get(name);
    if (before !== undefined) this.server.put(NODES, name, { ...before, status: this.#statusOf(name, before) });
  }

  /** When a node's agent knows of a pool or reservation that was written then, and nothing of before is under way. */
  knownMs(node: string, atMs: number): number {
    const toldMs = [POOLS, RESERVED].map((path) => this.network.toldMs(node, path, atMs));
    return Math.max(...toldMs) + (this.#options.shape.owned === undefined ? CLAIMED_MS : CLAIMED_LATE_MS);
  }

  /** A launcher's machine or IPAMClaim, a Deployment, or the pod; none for a pod that requests another address. */
  ownerOf(pod: PodObject, ifName: string): string | undefined {
    if (this.virtualMachines?.isLauncher(pod.name) === true) return this.virtualMachines.ownerOf(pod, ifName);
    const workload = this.workloads.find(({ name }) => pod.name.startsWith(`${name}-`));
    if (workload === undefined || workload.annotations !== undefined) return undefined;
    if (workload.hasClaim === true && ifName !== "eth0") return claimName(pod.name, ifName);
    return workload.isGenerated === true ? workload.name : pod.name;
  }

  /** Addresses of each family. */
  get poolSize(): number {
    return this.#options.shape.poolSize;
  }

  newUid(): string {
    return `p${++this.#lastUid}`;
  }

  /** Whether the pod with this UID runs, with all of its NICs. */
  runs(uid: string): boolean {
    return this.nodes.some(({ kubelet }) => kubelet?.runs(uid) === true);
  }

  get random(): Seeded {
    return this.#plane.random;
  }

  /** Does work with the whole cluster, as its control plane. */
  inside<T>(work: () => T): T {
    return this.#options.time.inside(this.#plane, work);
  }

  start(): void {
    this.inside(() => {
      const { shape } = this.#options;
      const { server } = this;
      // Its status names the namespaces that have as many addresses as they may.
      if (shape.isDetecting || shape.tenant !== undefined)
        server.put(COORDINATORS, "default", { spec: { detectIPConflict: shape.isDetecting } });
      if (shape.hasStaticPods) for (const { machine } of this.nodes) this.changeStaticPod(machine.name);
      server.put("/api/v1/namespaces", "shop", shape.tenant === undefined ? {} : { metadata: { labels: TEAM } });
      if (shape.tenant !== undefined) this.#guard();
      for (const kind of REGISTRY_KINDS) server.put(CUSTOM_KINDS, kind, { metadata: { uid: `${kind}-0` } });
      server.put(CONFIG_MAPS, "berth-registry", { metadata: { namespace: "kube-system" } });
      server.put(CONFIG_MAPS, "vendor-conf", {
        metadata: { namespace: "kube-system" },
        data: { "conf.yml": settings(shape) },
      });
      for (const family of FAMILIES) this.#putPool(family, this.#specOf(family));
      if (shape.virtualMachines !== undefined) this.#putWishes();
      if (shape.hasSpaces === true) this.#putSpace("red");
      if (shape.owned !== undefined) {
        this.reserve(
          Array.from({ length: shape.owned }, (_, at) => shape.poolSize - at),
          false,
        );
        this.#putPool("pin-blue", { subnet: POOL_NETWORKS.blue, ips: ["10.6.254.1-10.6.254.20"] });
        this.#putPool("pin-six", { subnet: POOL_NETWORKS.six, ips: ["fd00::fe01-fd00::fe14"] });
      }
      for (const name of shape.virtualMachines === undefined ? ["lan2"] : ["lan", "lan2"]) this.#define(name);
      this.#define("san", { type: "macvlan", ipam: { type: "host-local" } });
      for (const { machine } of this.nodes) this.setReady(machine.name, true);
      for (const name of shape.subnets?.keys() ?? []) this.editSubnet(name);
      for (const workload of this.workloads) this.#putWorkload(workload);
      this.virtualMachines?.start();
      for (const node of this.nodes) this.startNode(node);
      this.startController();
      this.startController();
      void this.#run();
    });
  }

  /** The tenant's namespace, and pools that are for others. */
  #guard(): void {
    this.server.put("/api/v1/namespaces", TENANT, {});
    this.#define("lan2", plainConf("lan2"), TENANT);
    const four = { subnet: "10.8.0.0/24", ips: ["10.8.0.1-10.8.0.3"], namespaceName: ["shop"] };
    const six = { subnet: "fd08::/64", ips: ["fd08::1-fd08::3"], namespaceAffinity: { matchLabels: TEAM } };
    this.#putPool("vault4", four);
    this.#putPool("vault6", six);
  }

  /** A network with pools of the same addresses in another address space; both have the space's name. */
  #putSpace(space: string): void {
    this.#define(space);
    const own = { default: false, addressSpace: space };
    this.#putPool(`${space}4`, { ...this.#specOf("blue"), ...own });
    this.#putPool(`${space}6`, { ...this.#specOf("six"), ...own });
  }

  #define(name: string, plugin: object = plainConf(name), namespace = "shop"): void {
    const config = JSON.stringify({ cniVersion: "1.1.0", name, plugins: [plugin] });
    this.server.put(inNamespace(DEFINITIONS, namespace), name, { metadata: { namespace }, spec: { config } });
  }

  #putPool(name: string, spec: object): void {
    this.server.put(POOLS, name, { metadata: { generation: 1 }, spec });
  }

  /** Pools of addresses that IPAMClaims request, and the claims of other pods than launchers. */
  #putWishes(): void {
    const { server, workloads } = this;
    this.#putPool("wish4", { subnet: POOL_NETWORKS.blue, ips: ["10.6.255.1-10.6.255.99"] });
    this.#putPool("wish6", { subnet: POOL_NETWORKS.six, ips: ["fd00::ff01-fd00::ff63"] });
    for (const { name, nics, hasClaim } of workloads) {
      if (hasClaim !== true) continue;
      for (const [ifName, network] of nics.slice(1)) {
        const claim = claimName(`${name}-0`, ifName);
        const spec = { network, interface: ifName };
        const metadata = { uid: `claim-${claim}`, namespace: "shop", managedFields: STATUS_OF_BERTH };
        server.put(CLAIMS, claim, { metadata, spec });
      }
    }
  }

  startNode(node: Node): void {
    const { time, timeline } = this.#options;
    const { machine } = node;
    if (machine.isOff) return;
    machine.start();
    if (node.kubelet !== undefined) return;
    const faults = () => this.kubeletFaults;
    node.kubelet = new Kubelet({ time, timeline, machine, api: this.#kubeletApi, faults }, ++node.lives);
    node.kubelet.start(node.left);
    node.left = [];
  }

  endKubelet(node: Node): void {
    if (node.kubelet === undefined) return;
    node.left = [...node.left, ...node.kubelet.openCalls];
    node.kubelet.end();
    node.kubelet = undefined;
  }

  /** Another process of the controller; the Lease decides which leads. */
  startController(product = this.#pickProduct()): void {
    const { time, timeline } = this.#options;
    const { poolEventsPerSecond } = this.#options.shape;
    const name = `controller ${++this.#controllerLives}`;
    const process = time.process(name);
    process.isOfLastRelease = product !== THIS_PRODUCT;
    if (process.isOfLastRelease) timeline.note(`${name} is of ${product.version}`);
    const running = openSimulatedController(product, {
      ...{ time, process, network: this.network },
      controllers: { ...simulatedControllers(product), ...this.#options.controllers },
      ...(poolEventsPerSecond === undefined ? {} : { poolEventsPerSecond }),
    });
    this.#controllers.push({ process, running });
  }

  #pickProduct(): Product {
    return this.#versions.random.pick(this.#options.products ?? [THIS_PRODUCT]);
  }

  get #newest(): Product {
    return this.#options.products?.[0] ?? THIS_PRODUCT;
  }

  get #admission(): Admission {
    return {
      hasStatus: (...asked) => this.#definitions.admission.hasStatus(...asked),
      shape: (...written) => this.#definitions.admission.shape(...written),
      admit: (write) => this.#definitions.admission.admit(write),
    };
  }

  /** An agent that refuses a newer journal is replaced by one of this version (docs/upgrade.md). */
  goForward({ machine }: Node): void {
    if (!machine.isServing) machine.product = this.#newest;
  }

  /** One of a version that chance decides takes the place of an agent. */
  async upgrade({ machine }: Node, forMs: number): Promise<void> {
    await machine.upgrade(forMs, this.#pickProduct());
  }

  /**
   * `helm upgrade` or `helm rollback`: controllers and agents are replaced one by one, each after the one before
   * serves, until another roll-out begins. Only an upgrade replaces definitions (docs/upgrade.md).
   */
  async rollOut(forMs: number, product = this.#pickProduct()): Promise<void> {
    const { time, timeline } = this.#options;
    const number = ++this.#rollOuts;
    if (product === this.#newest) this.#definitions = product;
    timeline.note(`${product.version} is rolled out`);
    const olds = [...this.#controllers];
    for (const old of olds) {
      if (number !== this.#rollOuts) return;
      await this.#replaceController(old, product);
    }
    for (const { machine } of this.nodes) {
      if (number !== this.#rollOuts) return;
      await machine.upgrade(forMs, product);
      for (let waits = 0; waits < READY_WAITS && !machine.isServing; waits++) await time.sleep(TICK_MS, "roll-out");
    }
  }

  /** A fleet of two versions gets one, the newest where an agent refuses the journal as it is (docs/upgrade.md). */
  async finishRollOut(forMs: number): Promise<void> {
    if ((this.#options.products?.length ?? 1) === 1) return;
    await this.rollOut(forMs);
    if (!this.nodes.every(({ machine }) => machine.isServing)) await this.rollOut(forMs, this.#newest);
  }

  /** The new process runs before the old one ends in order, or another one if that was killed and replaced. */
  async #replaceController(old: Controller, product: Product): Promise<void> {
    const { time, timeline } = this.#options;
    if (old.process.isDead) return;
    this.startController(product);
    await time.sleep(READY_MS, "roll-out");
    const [leaving] = this.#controllers.splice(Math.max(0, this.#controllers.indexOf(old)), 1);
    if (leaving === undefined) return;
    timeline.note(`${leaving.process.name} ends`);
    await time.inside(leaving.process, () => leaving.running.close());
    time.end(leaving.process);
  }

  /** The leader, if there is one. */
  killController(): void {
    const found = this.#controllers.findIndex(({ running }) => running.status.isLeading);
    const [controller] = this.#controllers.splice(Math.max(0, found), 1);
    if (controller === undefined) return;
    this.#options.time.end(controller.process);
    this.#options.timeline.note(`${controller.process.name} is killed`);
    this.startController();
  }

  /** The sender of the write of that number from now on is killed when it has been carried out. */
  killAtWrite(number: number): void {
    let left = number;
    this.network.onWrite = ({ name }) => {
      if (--left > 0) return;
      this.network.onWrite = () => {};
      const [, host] = /^agent of (\S+)/.exec(name) ?? [];
      const { machine } = this.nodes.find((each) => each.machine.host === host) ?? {};
      if (machine === undefined) return this.killController();
      machine.kill();
      this.#options.time.schedule(1_000, "an agent starts again", this.#plane, () => machine.start());
    };
  }

  /** No machine and no controller reaches the API server for so long. */
  cutAll(forMs: number): void {
    const all = [
      ...this.nodes.map(({ machine }) => machine.host),
      ...this.#controllers.map(({ process }) => process.name),
    ];
    for (const each of all) this.cut(each);
    this.#options.time.schedule(forMs, "the API server is back", this.#plane, () => {
      for (const each of all) this.heal(each);
    });
  }

  /** Sets the amount by which one controller's wall clock is ahead: milliseconds. */
  setControllerClock(random: Seeded, offsetMs: number): void {
    random.pick(this.#controllers).process.wallOffsetMs = offsetMs;
  }

  /** All of them, and none starts. */
  endControllers(): void {
    for (const { process } of this.#controllers.splice(0)) this.#options.time.end(process);
  }

  /** Whether a controller leads, does not stand still, and has answers. */
  get hasLeader(): boolean {
    const isHeld = (process: Process): boolean =>
      process.isDead ||
      process.pausedUntilMs > this.#options.time.nowMs ||
      this.network.cutOff.has(process.name) ||
      this.network.isStalled(process);
    return this.#controllers.some(({ process, running }) => running.status.isLeading && !isHeld(process));
  }

  /** Whether a controller and all machines act. */
  get #isAllActing(): boolean {
    const { nowMs } = this.#options.time;
    const isActing = ({ machine, kubelet }: Node): boolean =>
      machine.isActing && (kubelet?.process.pausedUntilMs ?? nowMs) <= nowMs && !this.network.cutOff.has(machine.host);
    return this.hasLeader && this.nodes.every(isActing) && this.replacements.running.size === 0;
  }

  pauseController(milliseconds: number): void {
    for (const { process, running } of this.#controllers)
      if (running.status.isLeading) this.#options.time.pause(process, milliseconds);
  }

  get pods(): readonly PodObject[] {
    return [...this.server.collection(PODS).values()].filter((object) => !isMirror(object)).map(podOf);
  }

  get #allPods(): readonly PodObject[] {
    return [...this.pods, ...this.tenantPods];
  }

  get tenantPods(): readonly PodObject[] {
    const pods = [...this.server.collection(inNamespace(PODS, TENANT)).values()];
    return pods.filter((object) => !isMirror(object)).map(podOf);
  }

  /** Whatever the API server says. */
  get staticPods(): readonly PodObject[] {
    return [...this.#staticPods.values()];
  }

  /** The kubelet's file of the machine's static pod changes. */
  changeStaticPod(machine: string): void {
    const uid = hash("sha256", `${machine} ${++this.#lastFile}`).slice(0, 32);
    const facts = { namespace: "shop", isDeleting: false, isFinished: false, isStatic: true };
    this.#staticPods.set(machine, { name: `fix-${machine}`, uid, node: machine, nics: [["eth0", "lan"]], ...facts });
  }

  /** An administrator deletes the mirror; the kubelet will create it again. */
  deleteMirror(machine: string): void {
    this.server.remove(`fix-${machine}`, PODS);
  }

  /** Pods that should run, on machines that are there. */
  get expected(): readonly PodObject[] {
    return this.pods.filter(({ isDeleting, isFinished }) => !isDeleting && !isFinished);
  }

  /** Whether each workload has its pods, all on machines that report. */
  get isComplete(): boolean {
    const names = new Set(this.expected.map(({ name }) => name));
    return (
      this.pods.length === names.size &&
      this.virtualMachines?.isComplete !== false &&
      this.workloads.every((workload) => namesOf(workload).every((name) => names.has(name)))
    );
  }

  /**
   * Whether pods are on their way, or agents may have been told of a record so lately that they are not told of
   * another one at once.
   */
  get isChanging(): boolean {
    const running = this.nodes.reduce((sum, { kubelet }) => sum + (kubelet?.running.length ?? 0), 0);
    const isRecent = this.#options.time.nowMs - this.#recordedMs <= 2 * NOTICE_REST_MS;
    return isRecent || !this.isComplete || running !== this.pods.length;
  }

  deletePod(name: string): void {
    this.#delete(`${PODS}/${name}`);
  }

  /** Its object goes at once, whatever runs. */
  forceDeletePod(name: string): void {
    this.nics.orphan(this.#uidOf(name) ?? "");
    this.server.remove(name, PODS);
  }

  finishPod(name: string): void {
    const uid = this.#uidOf(name);
    if (uid !== undefined) {
      if (this.nics.isStarting(uid)) return;
      this.ledger.finish(uid);
      this.nics.finish(uid);
    }
    this.#patch(`${PODS}/${name}/status`, { status: { phase: "Succeeded" } });
  }

  scale(workload: Workload, replicas: number): void {
    const before = namesOf(workload);
    workload.replicas = replicas;
    if (workload.kind !== "StatefulSet" || workload.isListed) return;
    const after = new Set(namesOf(workload));
    for (const name of before) if (!after.has(name)) this.ledger.forgetMember(name);
    this.#putWorkload(workload);
  }

  /** The set is deleted, with its pods, and another one of its name is created later. */
  replaceSet(workload: Workload, afterMs: number): void {
    const { time } = this.#options;
    workload.isAbsent = true;
    for (const name of namesOf({ ...workload, isAbsent: false })) this.ledger.forgetMember(name);
    this.#removeWorkload(workload);
    time.schedule(afterMs, "a set is created again", this.#plane, () => {
      workload.life = ++this.#lastLife;
      workload.isAbsent = false;
      this.#putWorkload(workload);
    });
  }

  /**
   * The set is deleted and created again around its pods, which the new one adopts (`--cascade=orphan`). It has
   * nothing of those that are not there, have no address yet, or are on their way out.
   */
  recreateSet(workload: Workload): void {
    this.#removeWorkload(workload);
    workload.life = ++this.#lastLife;
    this.#putWorkload(workload);
    const ownerReferences = [{ ...controllerOf(workload), controller: true }];
    for (const name of namesOf(workload)) {
      const adopted = this.expected.find((pod) => pod.name === name);
      if (adopted !== undefined) this.#patch(`${PODS}/${name}`, { metadata: { ownerReferences } });
      this.ledger.forgetMember(name, adopted?.uid);
    }
  }

  /** `ippool-ip-number` of the workload's pods: another template. */
  setPoolNumber(workload: Workload, number: string): void {
    if (workload.subnets === undefined || workload.subnets.number === number) return;
    workload.subnets.number = number;
    workload.version = (workload.version ?? 1) + 1;
    this.#putWorkload(workload);
  }

  /** The Subnet offers its addresses without the first `lacking`; all by default. */
  editSubnet(name: string, lacking = 0): void {
    const size = this.#options.shape.subnets?.get(name);
    if (size === undefined) return;
    const before = this.server.collection(SUBNETS).get(name);
    const { generation = 0 } = before?.metadata ?? {};
    const prefix = prefixOf(name, [...(this.#options.shape.subnets?.keys() ?? [])].indexOf(name));
    const ips = [`${prefix.at(lacking + 1)}-${prefix.at(size)}`];
    this.server.put(SUBNETS, name, {
      ...before,
      metadata: { ...before?.metadata, generation: generation + 1 },
      spec: { subnet: prefix.cidr, ips, ...(name.startsWith("guarded") ? { namespaceName: ["shop"] } : {}) },
    });
  }

  /** The users of Subnets want no more than there is. */
  satisfyRivals(): void {
    for (const name of this.#options.shape.subnets?.keys() ?? []) this.editSubnet(name);
    for (const workload of this.workloads) {
      if (workload.subnets === undefined) continue;
      if (workload.kind !== "Thing") this.setPoolNumber(workload, "+1");
      this.scale(workload, 1);
    }
    if (this.#options.shape.subnets !== undefined)
      this.#options.time.schedule(60_000, "pools that are kept go", this.#plane, () => this.#deleteKeptPools());
  }

  /** Those of workloads that are gone: where nothing is reclaimed they would fill their Subnets for good. */
  #deleteKeptPools(): void {
    const owners = new Set(this.workloads.filter(({ isAbsent }) => !isAbsent).map(uidOf));
    for (const { name, owner } of this.#generatedPools()) if (!owners.has(owner)) this.#delete(`${POOLS}/${name}`);
  }

  /** An administrator deletes a generated pool. */
  deleteGeneratedPool(random: Seeded): void {
    const pools = this.#generatedPools();
    if (pools.length > 0) this.#delete(`${POOLS}/${random.pick(pools).name}`);
  }

  #generatedPools() {
    const pools = [...this.server.collection(POOLS).values()].flatMap((pool) => generatedOf(pool) ?? []);
    return pools.filter(({ isDeleting }) => !isDeleting);
  }

  /** With all of its addresses. */
  #specOf(family: Family) {
    const { poolSize, selection } = this.#options.shape;
    return { default: true, selection, subnet: POOL_NETWORKS[family], ips: [rangeOf(family, 1, poolSize)] };
  }

  /**
   * The addresses of the family's pool become those from `first` to `last`, numbers, without `excluded`; all by
   * default.
   */
  editPool(
    family: Family,
    { first = 1, last = this.#options.shape.poolSize, excluded = [] as readonly number[], isDisabled = false } = {},
  ): void {
    const name = this.pools[family];
    const before = this.server.collection(POOLS).get(name);
    if (before === undefined) return;
    const { generation = 1 } = before.metadata as { generation?: number };
    const ips = [rangeOf(family, first, last)];
    const excludeIPs = excluded.filter((each) => each >= first && each <= last).map((each) => addressAt(family, each));
    const spec = { ...before.spec, ips, excludeIPs, disable: isDisabled };
    const after = { ...before, metadata: { ...before.metadata, generation: generation + 1 }, spec };
    if (describePool(after) !== describePool(before)) this.server.put(POOLS, name, after);
  }

  /** Another pool with all addresses takes the place of the family's pool, which is deleted. */
  renamePool(family: Family): void {
    const before = this.pools[family];
    this.pools[family] = `${family}-${++this.#lastPool}`;
    const metadata = { generation: 1, uid: `pool-${this.#lastPool}` };
    this.server.put(POOLS, this.pools[family], { metadata, spec: this.#specOf(family) });
    this.#deletePool(before);
  }

  /** A second pool of the family's subnet has some of the same addresses, for so long. */
  overlapPool(family: Family, numbers: { readonly first: number; readonly last: number }, forMs: number): void {
    const name = `${family}-${++this.#lastPool}`;
    const metadata = { generation: 1, uid: `pool-${this.#lastPool}` };
    const ips = [rangeOf(family, numbers.first, numbers.last)];
    this.server.put(POOLS, name, { metadata, spec: { ...this.#specOf(family), ips } });
    this.#options.time.schedule(forMs, "a pool overlaps no more", this.#plane, () => this.#deletePool(name));
  }

  #deletePool(name: string): void {
    this.#delete(`${POOLS}/${name}`);
  }

  #delete(path: string): void {
    void this.server
      .client()
      .call({ method: "DELETE", path })
      .catch(() => {});
  }

  /** No pod gets any of them until `isOver`. */
  reserve(numbers: readonly number[], isOver: boolean): void {
    for (const family of FAMILIES) {
      const ips = numbers.map((each) => addressAt(family, each));
      if (isOver) this.server.remove(`reserved-${family}`, RESERVED);
      else this.server.put(RESERVED, `reserved-${family}`, { metadata: { generation: 1 }, spec: { ips } });
    }
  }

  /** Gives owners their reserved addresses, unless other owners have them. */
  restReservations(): void {
    const { reservations } = this;
    if (reservations === undefined) return;
    for (const workload of this.workloads) if (workload.name === "lend") workload.replicas = 0;
    this.#options.time.schedule(RESTED_MS, "owners restart", this.#plane, () => {
      for (const { name } of reservations.giveUp()) this.deletePod(name);
    });
    this.#options.time.schedule(4 * RESTED_MS, "Services and Nodes have nothing", this.#plane, () =>
      reservations.rest(),
    );
  }

  /** The workload's template names other addresses. */
  pinAnew(workload: Workload): void {
    workload.version = (workload.version ?? 1) + 1;
    workload.annotations = pinsOf(workload);
    this.#putWorkload(workload);
  }

  /** All pools have all of their addresses again. */
  restorePools(): void {
    for (const family of FAMILIES) this.editPool(family);
    this.reserve([], true);
  }

  /** The addresses that pods may get now, if only their owners. */
  #usable(): ReadonlySet<string> {
    const usable = new Set<string>();
    for (const { metadata, spec } of this.server.collection(POOLS).values()) {
      if (!isShared(metadata.name)) continue;
      if (metadata.deletionTimestamp !== undefined || spec.disable === true) continue;
      const excluded = new Set(spec.excludeIPs as readonly string[] | undefined);
      for (const range of spec.ips as readonly string[]) {
        const [first = "", end = first] = range.split("-");
        const family = first.includes(":") ? "six" : "blue";
        for (let number = numberOf(first); number <= numberOf(end); number++) {
          const address = addressAt(family, number);
          if (!excluded.has(address)) usable.add(address);
        }
      }
    }
    const reserved = [...this.server.collection(RESERVED).values()];
    for (const isOwned of [false, true])
      for (const { spec } of reserved.filter(({ spec }) => (spec.owner !== undefined) === isOwned))
        for (const address of spec.ips as readonly string[])
          if (isOwned) usable.add(address);
          else usable.delete(address);
    return usable;
  }

  /** One of the Bound allocations, chosen by `lot`, is deleted by hand as soon as that is harmless. */
  deleteAllocationLater(lot: number): void {
    this.#lot = lot;
  }

  /**
   * A pod that claims the address before its record is made again would have it, too: that is documented (recreate).
   * Nor is an agent told of it while no controller leads (docs/controller.md).
   */
  #deleteByHand(): void {
    const isQuiet = this.nodes.every(({ kubelet, machine }) => kubelet?.isIdle === true && machine.isActing);
    if (this.#lot === undefined || !isQuiet || this.isChanging || !this.hasLeader) return;
    const bound = [...this.server.objects.values()].filter(({ spec }) => spec.state === "Bound");
    const chosen = bound[this.#lot % bound.length];
    this.#lot = undefined;
    if (chosen !== undefined) this.deleteAllocation(chosen.metadata.name);
  }

  deleteAllocation(name: string): void {
    const before = this.server.objects.get(name);
    if (before === undefined) return;
    this.byHand(() => this.server.remove(name, ALLOCATIONS));
  }

  /** Does work that changes allocations, which no process of the product has asked for. */
  byHand(work: () => void): void {
    this.#isByHand = true;
    work();
    this.#isByHand = false;
  }

  /** One of the allocations that were deleted lately is created again as it was, unless another pod has its address. */
  restoreAllocation(random: Seeded): void {
    const isFree = ({ metadata, spec }: StoredObject): boolean =>
      !this.server.objects.has(metadata.name) && this.ledger.mayRestore(metadata.name, spec);
    const found = [...this.#deleted.values()].filter(isFree);
    if (found.length > 0) this.#restore(random.pick(found));
  }

  /** Restores an allocation from a backup, if no pod has its address: Bound to a deleted pod. */
  restoreBackup(random: Seeded): void {
    const isFree = ({ metadata, spec }: StoredObject): boolean =>
      (this.server.objects.get(metadata.name)?.spec.state ?? "Kept") === "Kept" &&
      this.ledger.mayRestore(metadata.name, spec);
    const found = [...this.#former.values()].filter(isFree);
    if (found.length === 0) return;
    const object = random.pick(found);
    this.deleteAllocation(object.metadata.name);
    this.#restore(object);
  }

  #restore({ metadata, ...rest }: StoredObject): void {
    const { labels } = metadata as { labels?: Readonly<Record<string, string>> };
    const uid = `restored-${++this.#restored}`;
    this.byHand(() => this.server.put(ALLOCATIONS, metadata.name, { ...rest, metadata: { uid, labels } }));
  }

  setReady(name: string, isReady: boolean, taints: readonly object[] = []): void {
    const conditions = [{ type: "Ready", status: isReady ? "True" : "Unknown" }];
    const node = this.nodes.find(({ machine }) => machine.name === name);
    const uid = `node-${name}${"-again".repeat(node?.registrations ?? 0)}`;
    const status = this.#statusOf(name, { status: { conditions, ...this.#nodeInfoOf(node?.machine) } });
    const before = this.server.collection(NODES).get(name)?.metadata;
    const annotations = before?.uid === uid ? before.annotations : undefined;
    this.server.put(NODES, name, { metadata: { uid, labels: {}, annotations }, spec: { taints }, status });
  }

  #statusOf(name: string, { status }: Pick<StoredObject, "status">): object {
    const address = this.#nodeAddresses.get(name);
    return { ...status, addresses: address === undefined ? undefined : [{ type: "InternalIP", address }] };
  }

  #nodeInfoOf(machine: Machine | undefined): object {
    if (this.#options.shape.hasNodeInfo !== true || machine === undefined) return {};
    const { host, bootId: bootID } = machine;
    return { nodeInfo: { machineID: `machine ${host}`, systemUUID: `system ${host}`, bootID } };
  }

  removeNode(name: string): void {
    this.server.remove(name, NODES);
  }

  /** SQLite has the memory of their disks, which the garbage collector does not see. */
  close(): void {
    for (const machine of this.#machines) machine.close();
  }

  /** An administrator has made sure that the machine is off: its pods are deleted by force. */
  markOff(name: string): void {
    this.ledger.nodeOff(name);
    this.setReady(name, false, [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }]);
    this.forceDeletePodsOf(name);
  }

  forceDeletePodsOf(name: string): void {
    for (const pod of this.#allPods)
      if (pod.node === name) this.server.remove(pod.name, inNamespace(PODS, pod.namespace));
  }

  cut(host: string): void {
    this.network.cutOff.add(host);
    this.network.noteSilence(host);
    this.#options.time.schedule(150_000, "silent watches end", this.#plane, () => this.network.breakWatches(host));
  }

  /** One whose name another machine is to get stays cut off. */
  heal(host: string): void {
    if (this.replacements.givenUp.has(host)) return;
    this.network.cutOff.delete(host);
    this.network.hears(host);
    this.network.breakWatches(host);
  }

  get #kubeletApi(): KubeletApi {
    return {
      isConnected: (host) => !this.network.cutOff.has(host),
      podsOf: (machine) => this.#allPods.filter(({ node }) => node === machine),
      setRunning: ({ namespace, name, uid }) => {
        const conditions = [{ type: "PodReadyToStartContainers", status: "True" }];
        if (this.server.collection(inNamespace(PODS, namespace)).get(name)?.metadata.uid === uid)
          this.#patch(`${inNamespace(PODS, namespace)}/${name}/status`, { status: { phase: "Running", conditions } });
      },
      setFailed: ({ name, uid }) => {
        if (this.#uidOf(name) === uid) this.finishPod(name);
      },
      finish: ({ namespace, name, uid }) => {
        const path = inNamespace(PODS, namespace);
        const found = this.server.collection(path).get(name);
        if (found?.metadata.uid !== uid) return;
        if (found.metadata.deletionTimestamp !== undefined)
          this.#patch(`${path}/${name}`, { metadata: { finalizers: null } });
      },
      staticPodsOf: (machine) => [this.#staticPods.get(machine)].filter((pod) => pod !== undefined),
      hasMirror: ({ name, uid }) => mirroredHash(this.server.collection(PODS).get(name)) === uid,
      putMirror: (pod) => this.#putMirror(pod),
      refused: (pod, error) => {
        this.ledger.addEnded(pod.uid);
        if (pod.namespace === "shop") this.ledger.refused(pod, error, [...this.expected, ...this.staticPods]);
      },
      shown: (pod, ifName, addresses) => {
        this.reservations?.shown(pod, ifName, addresses);
        if (pod.namespace !== "shop")
          return this.ledger.shown({ ...pod, name: `${pod.namespace}/${pod.name}` }, ifName, addresses, false);
        if (this.virtualMachines?.isLauncher(pod.name) === true) {
          const { name, isCurrent } = this.virtualMachines.memberOf(pod, ifName);
          return this.ledger.shown({ ...pod, name }, ifName, addresses, isCurrent);
        }
        const workload = this.workloads.find(({ name }) => pod.name.startsWith(`${name}-`));
        if (workload?.hasClaim === true && ifName !== "eth0")
          return this.ledger.shown(
            { ...pod, name: claimName(pod.name, ifName) },
            ifName,
            addresses,
            this.#isThere(pod),
          );
        this.ledger.shown(pod, ifName, addresses, this.#isMember(pod));
        const owner = workload === undefined ? "" : uidOf(workload);
        if (pod.isStatic !== true && !this.#isFormer(pod, workload))
          this.subnetLedger?.shown({ ...pod, owner }, ifName, addresses);
      },
    };
  }

  #putMirror({ name, uid, node, nics }: PodObject): void {
    this.server.put(PODS, name, {
      metadata: {
        uid: `m${++this.#lastUid}`,
        namespace: "shop",
        annotations: { [MIRROR]: uid, "kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file" },
      },
      spec: { nodeName: node, nics },
      status: { phase: "Running" },
    });
  }

  #isThere({ name, uid }: PodObject): boolean {
    return this.#uidOf(name) === uid;
  }

  /** Whether a set that is there has the pod. */
  #isMember({ name, uid }: PodObject): boolean {
    const found = this.server.collection(PODS).get(name);
    const set = this.workloads.find((each) => each.kind === "StatefulSet" && namesOf(each).includes(name));
    return found?.metadata.uid === uid && set !== undefined && ownerOf(found) === uidOf(set);
  }

  /** A pod of the workload's earlier life. */
  #isFormer({ name, uid }: PodObject, workload: Workload | undefined): boolean {
    const found = this.server.collection(PODS).get(name);
    return found?.metadata.uid !== uid || (workload !== undefined && isOrphanOf(workload, found));
  }

  #uidOf(name: string): string | undefined {
    return this.server.collection(PODS).get(name)?.metadata.uid;
  }

  #patch(path: string, body: object): void {
    void this.server
      .client()
      .call({ method: "PATCH", path, body })
      .catch(() => {});
  }

  #putWorkload(workload: Workload): void {
    const { name, kind, isAbsent } = workload;
    if (isAbsent) return;
    if (kind === "StatefulSet") this.server.put(setsOf(workload), name, setObject(workload));
    else if (kind === "Deployment") this.#putDeployment(workload);
  }

  /** A Deployment and its ReplicaSets, with as many pods as there are. */
  #putDeployment(workload: Workload): void {
    const { name, version = 1, isAbsent } = workload;
    if (isAbsent) return;
    const pods = [...this.server.collection(PODS).values()].filter(
      (object) => object.metadata.name.startsWith(`${name}-`) && !isOrphanOf(workload, object),
    );
    const byVersion = new Map([...Map.groupBy(pods, versionOf)].map(([each, all]) => [each, all.length] as const));
    this.#putIfOther(DEPLOYMENTS, name, deploymentObject(workload, byVersion));
    const sets = replicaSetObjects(workload, byVersion);
    for (const [each, object] of sets) this.#putIfOther(REPLICA_SETS, each, object);
    for (const each of this.server.collection(REPLICA_SETS).keys())
      if (each.startsWith(`${name}-`) && !sets.has(each) && each !== `${name}-${version}`)
        this.server.remove(each, REPLICA_SETS);
  }

  #putIfOther(path: string, name: string, object: object): void {
    const text = JSON.stringify(object);
    if (this.#objects.get(`${path}/${name}`) === text) return;
    this.#objects.set(`${path}/${name}`, text);
    this.server.put(path, name, object);
  }

  #removeWorkload(workload: Workload): void {
    const { name, kind } = workload;
    if (kind === "StatefulSet") this.server.remove(name, setsOf(workload));
    if (kind !== "Deployment") return;
    this.server.remove(name, DEPLOYMENTS);
    for (const each of [...this.server.collection(REPLICA_SETS).keys()])
      if (each.startsWith(`${name}-`)) this.server.remove(each, REPLICA_SETS);
    for (const key of [...this.#objects.keys()]) if (key.includes(`/${name}`)) this.#objects.delete(key);
  }

  #written(collection: string, before: StoredObject | undefined, after: StoredObject | undefined): void {
    const { metadata } = (after ?? before) as StoredObject;
    const { timeline } = this.#options;
    timeline.mark(`${collection} ${metadata.name} ${JSON.stringify(after ?? null)}`);
    if (collection === ALLOCATIONS) {
      const writer = this.#isByHand ? "by hand" : this.network.writer;
      timeline.note(`  object ${metadata.name}: ${describe(after)} (${writer})`);
      this.#recordedMs = this.#options.time.nowMs;
      if (after === undefined && before !== undefined) keepCopy(this.#deleted, before);
      if (before?.spec.state === "Bound" && after?.spec.state !== "Bound") keepCopy(this.#former, before);
      this.ledger.written(before, after, this.#isByHand, this.network.writer);
      this.reservations?.recorded(addressOf(metadata.name), before, after);
      this.subnetLedger?.allocationWritten(addressOf(metadata.name), after);
      this.tenant?.allocationWritten(addressOf(metadata.name), before, after);
      if (after !== undefined && !this.#isByHand) this.#requireWanted(metadata.name, after);
    } else if (collection === POOLS || collection === RESERVED) {
      if (isSameSpec(before, after)) return;
      timeline.note(`pool ${metadata.name}: ${describePool(after)}`);
      if (isShared(metadata.name)) this.ledger.poolsChanged(this.#usable(), /blue/.test(metadata.name) ? 4 : 6);
      else {
        const pool = this.subnetLedger?.poolWritten(before, after);
        this.tenant?.poolWritten(metadata.name, pool && { ...pool, size: pool.addresses.length });
      }
    } else if (collection === LEASES) {
      const holder = String(after?.spec.holderIdentity ?? "");
      // A process that stood still leads anew under the same name, without its unsent notices.
      const isSame = holder === before?.spec.holderIdentity && after?.spec.acquireTime === before.spec.acquireTime;
      if (holder === "" || isSame) return;
      this.leaders++;
      this.ledSinceMs = this.#options.time.nowMs;
      timeline.note(`${holder} leads`);
    } else if (collection === SUBNETS) {
      timeline.note(
        `subnet ${metadata.name}: ${JSON.stringify({ ips: after?.spec.ips, ...after?.status, conditions: 0 })}`,
      );
      this.subnetLedger?.subnetWritten(metadata.name);
    } else if (collection === NODES) {
      const [was, is] = [noticeOf(before), noticeOf(after)];
      if (is !== undefined && is !== was) timeline.note(`${metadata.name} is told: ${is}`);
      this.ledger.nodeWritten(metadata.name, isEmpty(after?.spec.taints));
    } else if (collection === CLAIMS) timeline.note(`claim ${metadata.name}: ${JSON.stringify(after?.status ?? null)}`);
    else if (isPods(collection) && (before === undefined || after === undefined))
      timeline.note(
        `pod ${metadata.name} (${metadata.uid}) ${after === undefined ? "is gone" : `on ${after.spec.nodeName}`}`,
      );
    else if (isPods(collection) && before?.metadata.deletionTimestamp !== after?.metadata.deletionTimestamp)
      timeline.note(`pod ${metadata.name} (${metadata.uid}) is being deleted`);
  }

  /** Berth gives addresses only to NICs whose network is its own (prefetch). */
  #requireWanted(name: string, { spec }: StoredObject): void {
    const { holders = [] } = spec as { holders?: readonly { pod: string; interface: string }[] };
    for (const { pod, interface: ifName } of holders)
      if (ifName === FOREIGN_NIC)
        this.ledger.problems.push(`${name} is claimed for ${ifName} of ${pod}, which is another plugin's`);
  }

  async #run(): Promise<void> {
    const { time } = this.#options;
    for (;;) {
      this.#watchNodes();
      this.#deleteByHand();
      if (!this.ledger.lacksRecord) {
        this.#makePods();
        this.virtualMachines?.tick();
      }
      for (const workload of this.workloads) if (workload.kind === "Deployment") this.#putDeployment(workload);
      this.#checkComparisons();
      this.ledger.checkAwaited(this.#isAllActing && this.network.webhookMs === undefined, this.ledSinceMs);
      this.#checkWebhook();
      this.subnetLedger?.check();
      this.tenant?.check();
      const isLed = this.hasLeader && time.nowMs - this.ledSinceMs > COMPARED_MS;
      this.reservations?.check(isLed, this.#isAllActing);
      await time.sleep(TICK_MS, "control plane");
    }
  }

  /** ADDs do not wait longer for a started agent's first comparison than its calls had no prompt answer (undo). */
  #checkComparisons(): void {
    for (const { machine } of this.nodes) {
      const { comparing: process, isActing, host, space } = machine;
      if (process === undefined || !isActing || space.delayMs > 0 || this.network.cutOff.has(host)) continue;
      const tookMs = (this.#comparingMs.get(process) ?? 0) + TICK_MS;
      this.#comparingMs.set(process, tookMs);
      const bad = this.network.badCalls(process);
      this.mostComparingMs = Math.max(this.mostComparingMs, tookMs);
      if (tookMs <= COMPARED_MS + bad * (BACKGROUND_ATTEMPT_MS + COMPARED_MS)) continue;
      const text = `${process.name} has not compared its journal with the API server for ${tookMs / 1000} s`;
      this.ledger.problems.push(`${text}, although only ${bad} of its calls had no prompt answer`);
    }
  }

  /** A webhook that answers delays pods, and keeps none from its addresses. */
  #checkWebhook(): void {
    const isServed = this.network.webhookMs !== undefined && this.#isAllActing;
    const running = new Set(this.nodes.flatMap(({ kubelet }) => (kubelet?.running ?? []).map(({ uid }) => uid)));
    const stepMs = (this.network.webhookMs ?? 0) > POD_ATTEMPT_MS ? TICK_MS / 2 : TICK_MS;
    const waiting = isServed ? this.expected.filter(({ uid }) => !running.has(uid)) : [];
    this.#waitingMs = new Map(waiting.map(({ uid }) => [uid, (this.#waitingMs.get(uid) ?? 0) + stepMs]));
    for (const { name, uid } of waiting)
      if (this.#waitingMs.get(uid) === SLOW_ADD_MS)
        this.ledger.problems.push(
          `${name} (${uid}) waits for ${SLOW_ADD_MS / 1000} s while a webhook keeps each write`,
        );
  }

  #watchNodes(): void {
    const { nowMs } = this.#options.time;
    for (const node of this.nodes) {
      const { machine } = node;
      const { name } = machine;
      const reports =
        !machine.isOff && !this.network.cutOff.has(machine.host) && (node.kubelet?.process.pausedUntilMs ?? 0) <= nowMs;
      const object = this.server.collection(NODES).get(name);
      if (reports) {
        const isDue = node.silentSinceMs !== undefined || object === undefined;
        if (isDue && !node.isUnregistered) this.setReady(name, true);
        node.silentSinceMs = undefined;
        continue;
      }
      node.silentSinceMs ??= nowMs;
      const silentMs = nowMs - node.silentSinceMs;
      if (silentMs >= NODE_GRACE_MS && silentMs < NODE_GRACE_MS + TICK_MS && object !== undefined)
        this.setReady(name, false, [{ key: "node.kubernetes.io/unreachable", effect: "NoExecute" }]);
      if (silentMs >= EVICTION_MS && silentMs < EVICTION_MS + TICK_MS)
        for (const pod of this.#allPods)
          if (pod.node === name && !pod.isDeleting) this.#delete(`${inNamespace(PODS, pod.namespace)}/${pod.name}`);
    }
  }

  #makePods(): void {
    const pods = new Map(this.pods.map((pod) => [pod.name, pod]));
    for (const workload of this.workloads) {
      const wanted = new Set(namesOf(workload));
      for (const name of wanted) {
        const pod = pods.get(name);
        if (pod === undefined) this.#create(workload, name);
        else if (pod.isDeleting) continue;
        else if (pod.isFinished ? this.random.chance(0.1) : this.#isOutdated(workload, name)) this.deletePod(name);
      }
      for (const pod of pods.values())
        if (pod.name.startsWith(`${workload.name}-`) && !wanted.has(pod.name) && !pod.isDeleting)
          this.deletePod(pod.name);
    }
  }

  get readyNodes(): readonly string[] {
    const isReady = ({ silentSinceMs, isUnregistered }: Node): boolean =>
      silentSinceMs === undefined && !isUnregistered;
    return this.nodes.filter(isReady).map(({ machine }) => machine.name);
  }

  /** Its set is gone (owner garbage collection), or it is of a former template and its turn has come. */
  #isOutdated(workload: Workload, name: string): boolean {
    const found = this.server.collection(PODS).get(name);
    if (found === undefined) return false;
    if (isOrphanOf(workload, found)) return true;
    const { kind, version = 1 } = workload;
    return kind === "Deployment" && versionOf(found) !== version && this.random.chance(0.1);
  }

  #create(workload: Workload, name: string): void {
    const { nics } = workload;
    const ready = this.readyNodes;
    if (ready.length === 0) return;
    const nodeName = this.random.pick(ready);
    const controller = controllerOf(workload);
    this.server.put(PODS, name, {
      metadata: {
        uid: this.newUid(),
        namespace: "shop",
        finalizers: ["simulation/kubelet"],
        annotations: { ...annotationsOf(workload), ...networksOf(workload) },
        ...(controller === undefined ? {} : { ownerReferences: [{ ...controller, controller: true }] }),
      },
      spec: { nodeName, nics },
      status: { phase: "Pending" },
    });
  }
}

const TEAM = { team: "shop" };

function keepCopy(copies: Map<string, StoredObject>, object: StoredObject): void {
  const { name } = object.metadata;
  copies.delete(name);
  copies.set(name, object);
  const [oldest = name] = copies.keys();
  if (copies.size > COPIES_MOST) copies.delete(oldest);
}

function isPods(collection: string): boolean {
  return NAMESPACES.some((each) => collection === inNamespace(PODS, each));
}

function mirroredHash(object: StoredObject | undefined): string | undefined {
  const { annotations = {} } = (object?.metadata ?? {}) as { annotations?: Readonly<Record<string, string>> };
  return annotations[MIRROR];
}

function isMirror(object: StoredObject): boolean {
  return mirroredHash(object) !== undefined;
}

function ownerOf({ metadata }: StoredObject): string | undefined {
  const { ownerReferences = [] } = metadata as { ownerReferences?: readonly { readonly uid: string }[] };
  return ownerReferences[0]?.uid;
}

/** Whether the pod's controller is no life of the workload that is there. */
function setsOf({ isListed }: Workload): string {
  return isListed === true ? LISTED_SETS : SETS;
}

function isOrphanOf(workload: Workload, pod: StoredObject): boolean {
  const owner = ownerOf(pod);
  const { kind } = workload;
  if (kind === "plain") return false;
  return kind === "Deployment" ? owner?.startsWith(`${uidOf(workload)}-`) !== true : owner !== uidOf(workload);
}

/** Returns the version of the template of a Deployment's pod. */
function versionOf(pod: StoredObject): number {
  return Number(ownerOf(pod)?.split("-").at(-1));
}

/** Tells whether all pods may use the pool. */
function isShared(name: string): boolean {
  return /^(?:blue|six|reserved|owned)(?:-|$)/.test(name);
}

/** The network of the Subnet with this place in the list; a name that ends with 6 is of IPv6. */
function prefixOf(name: string, index: number): { readonly cidr: string; readonly at: (number: number) => string } {
  return name.endsWith("6")
    ? { cidr: `fd07:${index}::/64`, at: (number) => `fd07:${index}::${number.toString(16)}` }
    : { cidr: `10.7.${index}.0/24`, at: (number) => `10.7.${index}.${number}` };
}

function podOf({ metadata, spec, status }: StoredObject): PodObject {
  const phase = status?.phase;
  return {
    namespace: metadata.namespace ?? "shop",
    name: metadata.name,
    uid: metadata.uid,
    node: String(spec.nodeName),
    nics: spec.nics as PodObject["nics"],
    isDeleting: metadata.deletionTimestamp !== undefined,
    isFinished: phase === "Succeeded" || phase === "Failed",
    runsOnce: spec.restartPolicy === "Never",
  };
}

function describe(object: StoredObject | undefined): string {
  if (object === undefined) return "gone";
  const {
    state,
    node,
    holders = [],
    workload,
  } = object.spec as {
    state: string;
    node: string;
    holders?: { pod: string; podUID: string; interface: string }[];
    workload?: { member: string; interface?: string };
  };
  const who = holders.map(({ pod, podUID, interface: ifName }) => `${pod} (${podUID}) ${ifName}`).join(", ");
  return `${state}${who === "" ? "" : ` to ${who}`}${workload === undefined ? "" : ` for ${workload.member} ${workload.interface ?? ""}`} on ${node}`;
}

/** The controller's last notice to the node's agent. */
function noticeOf(node: StoredObject | undefined): string | undefined {
  const { annotations = {} } = (node?.metadata ?? {}) as { annotations?: Readonly<Record<string, string>> };
  return annotations[NOTICE_ANNOTATION];
}

/** Whether nothing that decides about addresses has changed. */
function isSameSpec(before: StoredObject | undefined, after: StoredObject | undefined): boolean {
  const key = (object: StoredObject | undefined): string =>
    JSON.stringify([object?.spec ?? null, object?.metadata.deletionTimestamp ?? null]);
  return key(before) === key(after);
}

function describePool(object: StoredObject | undefined): string {
  if (object === undefined) return "gone";
  const { ips, excludeIPs = [], disable = false } = object.spec as Record<string, unknown>;
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const { wanted, reason } = Object(object.spec.generated);
  return `${JSON.stringify({ ips, excludeIPs, disable, wanted, reason })}${isDeleting ? ", being deleted" : ""}`;
}

function addressAt(family: Family, number: number): string {
  return family === "blue" ? fourth(number) : sixth(number);
}

function rangeOf(family: Family, first: number, last: number): string {
  return `${addressAt(family, first)}-${addressAt(family, last)}`;
}

function numberOf(address: string): number {
  if (address.includes(":")) return Number.parseInt(address.slice("fd00::".length), 16);
  const [, , third = "0", last = "0"] = address.split(".");
  return Number(third) * 256 + Number(last);
}

function sixth(count: number): string {
  return `fd00::${count.toString(16)}`;
}

function fourth(count: number): string {
  return `10.6.${count >> 8}.${count & 255}`;
}
