/**
 * A small cluster whose time a transcript moves: the simulation's machines, on which the product's agents run as they
 * are, and an API server with the product's kinds and policies. There is no kubelet and no controller: a transcript
 * commands their actions.
 */
import { formatIp } from "../../../../host/net/ip.ts";
import { REGISTRY_KINDS } from "../../../../host/registry/epoch/kubernetes-epoch.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { decodeRow } from "../../../../host/registry/sqlite/schema.ts";
import { readRows } from "../../../../host/registry/sqlite/session.ts";
import { formatNotice, NOTICE_ANNOTATION } from "../../../../host/resources/allocation-notice.ts";
import { EPOCH_MAP, markOf } from "../../../../host/resources/registry-epoch.ts";
import { ALLOCATIONS, MemoryApiServer, type StoredObject } from "../../../fakes/memory-api-server.ts";
import {
  CONFIG_MAPS,
  COORDINATORS,
  CUSTOM_KINDS,
  DEFINITIONS,
  INSTANCES,
  MACHINES,
  NODES,
  PODS,
  POOLS,
  SERVES,
  SETS,
} from "../../../simulation/collections.ts";
import { type Call, Machine, plainConf } from "../../../simulation/machine.ts";
import type { Nic, Segment } from "../../../simulation/namespaces.ts";
import { networkDirectory } from "../../../simulation/network-directory.ts";
import { THIS_PRODUCT } from "../../../simulation/product.ts";
import { installTime, SimulatedTime } from "../../../simulation/simulated-time.ts";
import { Timeline } from "../../../simulation/timeline.ts";
import { textOf, Wire } from "./wire.ts";

export interface ClusterShape {
  /** Last address of pool blue, the first of which is 10.6.0.1. */
  readonly size?: number;
  /** Pods have addresses of pool six, too. */
  readonly dual?: boolean;
  /** Addresses are claimed ahead of ADDs. */
  readonly prefetch?: boolean;
  /** Addresses are probed before they are used. */
  readonly detect?: boolean;
  readonly cooldown?: string;
  /** Most addresses of a namespace. */
  readonly limit?: number;
}

export interface PodShape {
  /** It is a member of this StatefulSet. */
  readonly set?: string;
  /** It runs this virtual machine. */
  readonly vm?: string;
  /** Number of the run. Default: 1. */
  readonly run?: number;
  /** The virtual machine migrates to it. */
  readonly target?: boolean;
  /** Number of its NICs: eth0, net1. Default: 1. */
  readonly nics?: number;
  /** The first ADD claims for all NICs. */
  readonly together?: boolean;
  /** It asks for this address. */
  readonly ip?: string;
}

export interface Pod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly nics: readonly string[];
  readonly ip: string | undefined;
  sandboxes: number;
}

/** Returns the letter of a pod's last sandbox. */
function lastOf({ sandboxes }: Pod): string {
  return String.fromCharCode(96 + sandboxes);
}

function callOf(command: Call["command"], pod: Pod, ifName: string, sandbox = lastOf(pod)): Call {
  const { name, uid, ip } = pod;
  const nic = { containerId: `${uid}-${sandbox}`, ifName, network: ifName === "eth0" ? "lan" : "lan2" };
  return { command, namespace: "shop", pod: name, uid, ip, ...nic };
}

/** No path: nothing tells of a pod's NICs before its ADDs. */
const NO_DEFINITIONS = "/nonexistent/net.d";

export class CommandedCluster {
  readonly server: MemoryApiServer;
  readonly wire: Wire;
  readonly machines = new Map<string, Machine>();
  /** The last one of each name. */
  readonly pods = new Map<string, Pod>();
  /** Events since they were last taken. */
  readonly notes: string[] = [];
  readonly #globals = installTime();
  readonly #time = new SimulatedTime(1);
  readonly #timeline = new Timeline(() => this.#time.nowMs);
  readonly #plane = this.#time.process("the transcript");
  readonly #adds = new Map<string, AbortController>();
  readonly #uids = new Map<string, number>();
  /** Times at which wall clocks of machines have stopped. */
  readonly #stopped = new Map<string, number>();
  #shape: ClusterShape = {};
  #notices = 0;
  #generation = 0;
  #backup: ReturnType<MemoryApiServer["snapshot"]> | undefined;

  constructor() {
    const nowMs = (): number => Date.UTC(2026, 0, 1) + this.#time.nowMs;
    this.server = new MemoryApiServer({ serves: SERVES, isOpen: true, nowMs, admission: THIS_PRODUCT.admission });
    this.wire = new Wire(this.#time, this.server, this.#timeline);
    this.wire.onRefused = (text) => void this.notes.push(text);
  }

  async open(nodes: readonly string[], shape: ClusterShape): Promise<void> {
    const { server } = this;
    this.#shape = shape;
    const { size = 9, dual = false, cooldown = "30s", limit = 0 } = shape;
    const rest = [`allocationCooldown: ${cooldown}`, `maxAddressesPerNamespace: ${limit}`];
    const settings = [`enableIPv6: ${dual}`, ...rest].join("\n");
    server.put(CONFIG_MAPS, "vendor-conf", { metadata: { namespace: "kube-system" }, data: { "conf.yml": settings } });
    server.put(CONFIG_MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" } });
    for (const kind of REGISTRY_KINDS) server.put(CUSTOM_KINDS, kind, { metadata: { uid: kind } });
    this.fill(0);
    server.put("/api/v1/namespaces", "shop", {});
    const config = JSON.stringify({ cniVersion: "1.1.0", name: "lan2", plugins: [plainConf("lan2")] });
    server.put(DEFINITIONS, "lan2", { metadata: { namespace: "shop" }, spec: { config } });
    this.putPool("blue", `10.6.0.1-10.6.${size >> 8}.${size & 255}`);
    this.putPool("six", "fd00::1-fd00::9");
    for (const name of nodes) this.taint(name, []);
    for (const name of nodes) this.#addMachine(name).start();
    await this.pass(3_000);
  }

  #addMachine(name: string): Machine {
    const ignore = (): void => {};
    const segment: Segment = {
      ...{ onUp: ignore, onDown: ignore, onReleasing: ignore, onReleased: ignore },
      ...{ loseJournal: ignore, copyJournal: ignore, restoreJournal: ignore, boot: ignore },
      onTaken: (nic, from) => this.#noteTaken(nic, from),
      macOf: (address) => this.#nics.find(({ addresses }) => addresses.has(address))?.mac,
    };
    const { prefetch = false, detect = false } = this.#shape;
    const machine = new Machine(name, {
      ...{ time: this.#time, timeline: this.#timeline, network: this.wire, segment, hasSpool: false },
      cniConfDirectory: prefetch ? networkDirectory() : NO_DEFINITIONS,
      ...{ hasEarlyNics: detect, paths: "containers" },
      plugin: { linkOf: ({ ifName }) => ifName, delayOf: () => 0, goesOn: () => false, isOrphan: () => false },
    });
    this.machines.set(name, machine);
    return machine;
  }

  get #nics(): Nic[] {
    return [...this.machines.values()].flatMap(({ namespaces }) => namespaces.nics);
  }

  #noteTaken(nic: Nic, from: Parameters<Segment["onTaken"]>[1]): void {
    this.notes.push(
      `${[...nic.addresses].join(" ")} is taken off ${nic.containerId}${from === "an orphan" ? "" : ", too"}`,
    );
  }

  machine(name: string): Machine {
    const found = this.machines.get(name);
    if (found === undefined) throw new Error(`There is no node ${name}`);
    return found;
  }

  pod(name: string): Pod {
    const found = this.pods.get(name);
    if (found === undefined) throw new Error(`There is no pod ${name}`);
    return found;
  }

  /** Pods of the namespace have so many addresses, as the controller has counted. */
  fill(addresses: number): void {
    const spec = { detectIPConflict: this.#shape.detect === true };
    const status = { fullNamespaces: [{ name: "shop", addresses }] };
    this.server.put(COORDINATORS, "default", { spec, status });
  }

  putPool(name: string, ips: string): void {
    const subnet = name === "six" ? "fd00::/64" : "10.6.0.0/16";
    const spec = { subnet, ips: [ips], default: true, selection: "ascending" };
    const generation = ++this.#generation;
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const ready = { type: "Ready", status: "True", observedGeneration: generation, lastTransitionTime };
    const conditions = [{ ...ready, reason: "Ready", message: "" }];
    this.server.put(POOLS, name, { metadata: { generation }, spec, status: { conditions } });
  }

  taint(name: string, keys: readonly string[]): void {
    const taints = keys.map((key) => ({ key: `node.kubernetes.io/${key}`, effect: "NoExecute" }));
    const status = { conditions: [{ type: "Ready", status: keys.length === 0 ? "True" : "Unknown" }] };
    this.server.put(NODES, name, { metadata: { uid: `node-${name}` }, spec: { taints }, status });
  }

  notify(name: string, addresses: readonly string[]): void {
    const node = this.server.collection(NODES).get(name);
    const annotations = { [NOTICE_ANNOTATION]: formatNotice(`${++this.#notices}`, addresses) };
    this.server.put(NODES, name, { ...node, metadata: { ...node?.metadata, annotations } });
  }

  createPod(name: string, node: string, shape: PodShape): void {
    const { set, vm, run = 1, target = false, nics = 1, together = false, ip } = shape;
    const number = (this.#uids.get(name) ?? 0) + 1;
    this.#uids.set(name, number);
    const uid = `${name}.${number}`;
    const names = ["eth0", "net1"].slice(0, nics);
    const owner = this.#putOwner(set, vm, run);
    const networks = names.slice(1).map((each) => ({ name: "lan2", namespace: "shop", interface: each }));
    const six = this.#shape.dual === true ? { ipv6: ["six"] } : {};
    const pools = names.map((each) => ({ interface: each, ipv4: ["blue"], ...six }));
    const annotations = {
      ...(networks.length > 0 ? { "k8s.v1.cni.cncf.io/networks": JSON.stringify(networks) } : {}),
      ...(together ? { "ipam.vendor.io/ippools": JSON.stringify(pools) } : {}),
    };
    const labels = {
      ...(vm === undefined ? {} : { "kubevirt.io": "virt-launcher" }),
      ...(target ? { "kubevirt.io/migrationJobUID": "migration" } : {}),
    };
    const metadata = { uid, namespace: "shop", labels, annotations, ...owner };
    this.pods.set(name, { name, uid, node, nics: names, ip, sandboxes: 0 });
    this.server.put(PODS, name, { metadata, spec: { nodeName: node }, status: { phase: "Pending" } });
  }

  /** The pod has succeeded. */
  finish(name: string): void {
    this.server.put(PODS, name, { ...this.server.collection(PODS).get(name), status: { phase: "Succeeded" } });
  }

  #putOwner(set: string | undefined, vm: string | undefined, run: number): object {
    if (set !== undefined) {
      const uid = `set-${set}`;
      this.server.put(SETS, set, { metadata: { uid, namespace: "shop" }, spec: { replicas: 9 } });
      return { ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: set, uid, controller: true }] };
    }
    if (vm === undefined) return {};
    const kubevirt = { apiVersion: "kubevirt.io/v1", name: vm, controller: true };
    const owner = { ...kubevirt, kind: "VirtualMachine", uid: `vm-${vm}` };
    const uid = `run-${vm}-${run}`;
    this.server.put(MACHINES, vm, { metadata: { uid: owner.uid, namespace: "shop" }, spec: {} });
    const metadata = { uid, namespace: "shop", ownerReferences: [owner] };
    this.server.put(INSTANCES, vm, { metadata, spec: {}, status: { phase: "Running" } });
    return { ownerReferences: [{ ...kubevirt, kind: "VirtualMachineInstance", uid }] };
  }

  /** `isNew`: in a new sandbox. */
  add(name: string, ifName: string, isNew: boolean): void {
    const pod = this.pod(name);
    const machine = this.machine(pod.node);
    if (isNew) machine.namespaces.remove(callOf("DEL", pod, ifName).containerId);
    if (isNew || pod.sandboxes === 0) pod.sandboxes++;
    const call = callOf("ADD", pod, ifName);
    if (!machine.namespaces.sandboxes.has(call.containerId)) machine.namespaces.add(call.containerId);
    const caller = new AbortController();
    this.#adds.set(name, caller);
    const title = `${call.containerId} ${ifName}`;
    this.#inside(() => machine.add(call, caller.signal)).then(
      (addresses) => this.notes.push(`${title}: ${addresses.join(" ")}`),
      (error) => this.notes.push(`${title}: ${error.code === undefined ? "" : `error ${error.code} `}${error.message}`),
    );
  }

  hangUp(name: string): void {
    this.#inside(() => this.#adds.get(name)?.abort(new Error("the caller hung up")));
  }

  /** The runtime ends a sandbox of the pod. Default: the last one. */
  async delete(name: string, sandbox?: string): Promise<void> {
    const pod = this.pod(name);
    const machine = this.machine(pod.node);
    for (const ifName of pod.nics) {
      const call = callOf("DEL", pod, ifName, sandbox);
      let isEnded = false;
      this.#inside(() => machine.del(call)).then((isAnswered) => {
        isEnded = true;
        if (!isAnswered) this.notes.push(`DEL ${call.containerId} ${ifName} is spooled`);
      });
      while (!isEnded) await this.pass(100);
      machine.namespaces.removeNic(call.containerId, ifName);
    }
    machine.namespaces.remove(callOf("DEL", pod, "eth0", sandbox).containerId);
  }

  clear(name: string): void {
    const pod = this.pod(name);
    this.machine(pod.node).namespaces.remove(callOf("DEL", pod, "eth0").containerId);
  }

  #inside<T>(work: () => T): T {
    return this.#time.inside(this.#plane, work);
  }

  /** All nodes have written for the epoch. */
  settle(): void {
    const { data, ...map } = Object(this.server.collection(CONFIG_MAPS).get(EPOCH_MAP));
    this.server.put(CONFIG_MAPS, EPOCH_MAP, { ...map, data: { ...data, settled: data.epoch } });
  }

  /** `history, open; n1 has written`. */
  epoch(): string {
    const { data = {} } = Object(this.server.collection(CONFIG_MAPS).get(EPOCH_MAP));
    const marks = [...this.server.collection(NODES)].map(([name, { metadata }]) => {
      return `${name} ${markOf({ annotations: metadata.annotations ?? {} }, data.epoch)}`;
    });
    return [`${data.cause}, ${data.settled === data.epoch ? "settled" : "open"}`, ...marks].join("; ");
  }

  stopClock(name: string): void {
    this.#stopped.set(name, this.#time.nowMs);
  }

  backUp(): void {
    this.#backup = this.server.snapshot();
  }

  /** The objects of addresses are as they were at the backup. */
  restore(): void {
    if (this.#backup === undefined) throw new Error("There is no backup");
    this.server.restore(this.#backup, [ALLOCATIONS]);
    this.wire.breakWatches();
  }

  /** Time goes on, and all happens that is due. */
  async pass(milliseconds: number): Promise<void> {
    const untilMs = this.#time.nowMs + milliseconds;
    await new Promise((resolve) => setImmediate(resolve));
    for (let nextMs = this.#time.nextMs; nextMs !== undefined && nextMs <= untilMs; nextMs = this.#time.nextMs) {
      for (const [name, atMs] of this.#stopped) this.machine(name).setWallClock(atMs - nextMs);
      await this.#time.step();
    }
    this.#time.nowMs = untilMs;
    const [error] = this.#time.uncaught.splice(0);
    if (error !== undefined) throw error;
  }

  /** Each address that has an object: `Bound n1 web-0.1`. */
  objects(): Map<string, string> {
    return new Map([...this.server.objects].map(([name, object]) => [textOf(name), this.#describe(object)]));
  }

  readonly #claims = new Map<string, string>();

  /** In the order in which they appear: A, B, … */
  #claimOf(name: string): string {
    return this.#claims.getOrInsertComputed(name, () => String.fromCharCode(65 + this.#claims.size));
  }

  #describe({ metadata, spec }: StoredObject): string {
    const { state, node, holders = [], lastHolder, workload, number, quarantine } = Object(spec);
    const held = holders.map((holder: object) => this.#describeHolder(holder, node));
    return [
      ...[state, node, ...held],
      ...(quarantine === undefined ? [] : [quarantine.reason]),
      ...(quarantine?.holder === undefined ? [] : [`of ${this.#describeHolder(quarantine.holder, node)}`]),
      ...(lastHolder === undefined ? [] : [`last ${this.#describeHolder(lastHolder, node)}`]),
      ...(workload === undefined ? [] : [`for ${workload.member}`]),
      ...(number === undefined ? [] : [`number ${number}`]),
      ...(metadata.deletionTimestamp === undefined ? [] : ["(being deleted)"]),
    ].join(" ");
  }

  #describeHolder(holder: object, home: string): string {
    const { podUID, interface: ifName, node, claim } = Object(holder);
    return [
      `${podUID}${ifName === "eth0" ? "" : `/${ifName}`}${node === home ? "" : `@${node}`}`,
      ...(claim === undefined ? [] : [`claim ${this.#claimOf(claim)}`]),
    ].join(" ");
  }

  /** Each row of each journal: `n1 10.6.0.1` with `Bound web-0.1-a`. */
  rows(): Map<string, string> {
    const all = [...this.machines].flatMap(([name, { disk }]) =>
      readRows(disk).rows.map((raw): [string, string] => {
        const row = decodeRow(raw);
        return [`${name} ${placeOf(row)}`, describeRow(row)];
      }),
    );
    return new Map(all);
  }

  /** Addresses that several NICs have. */
  shared(): string[] {
    const all = this.#nics.flatMap((nic) => [...nic.addresses].map((address) => ({ address, nic })));
    return [...Map.groupBy(all, ({ address }) => address)].flatMap(([address, nics]) =>
      nics.length < 2 ? [] : [`${address} is on ${nics.map(({ nic }) => nic.containerId).join(" and ")}`],
    );
  }

  async close(): Promise<void> {
    for (const machine of this.machines.values()) {
      machine.kill();
      machine.close();
    }
    this.#globals[Symbol.dispose]();
  }
}

function placeOf({ ip, space }: Allocation): string {
  return `${formatIp(ip)}${space === "" ? "" : `/${space}`}`;
}

function describeRow({ state, owner, containerId, ifName, isConfirmed, quarantine }: Allocation): string {
  const container = containerId === UNKNOWN_CONTAINER ? `${owner}-?` : containerId || owner;
  return [
    ...[state, `${container}${ifName === "eth0" || ifName === "" ? "" : `/${ifName}`}`].filter((text) => text !== ""),
    ...(state === "Bound" && isConfirmed !== true ? ["unconfirmed"] : []),
    ...(quarantine === undefined ? [] : [quarantine.reason]),
  ].join(" ");
}
