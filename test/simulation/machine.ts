/**
 * One machine: its disk, and the agent, which is the product's ClusterBackend, plugin and maintenance. A small version
 * of the shim's behaviour without an agent (retry, spool) is here.
 */
import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Maintenance } from "../../host/agent/agent.ts";
import type { ClusterBackend } from "../../host/agent/cluster/backend.ts";
import type { IpamPlugin } from "../../host/agent/ipam/plugin.ts";
import type { Credentials } from "../../host/kubernetes/credentials.ts";
import { formatIp } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import type { RegistryHealth } from "../../host/registry/registry.ts";
import type { RegistryPoint } from "../../host/registry/sqlite/identity.ts";
import type { SqliteRegistry, SqliteRegistryOptions } from "../../host/registry/sqlite/sqlite-registry.ts";
import { agentOf } from "../fakes/admission/admission.ts";
import { copyDisk } from "../fakes/memory-journal.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { addressIn, Namespaces, type Nic, type Paths, type Segment, spaceOfNetwork } from "./namespaces.ts";
import type { Network } from "./network.ts";
import { type Product, THIS_PRODUCT } from "./product.ts";
import { SimulatedSpool } from "./simulated-spool.ts";
import { type DamagedPart, type DiskSpace, emptyDisk, pointOf, SimulatedStore } from "./simulated-store.ts";
import type { Process, SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

/** Time for which the shim tries to reach an agent with an ADD: milliseconds (native/shim-limits.h). */
const CONNECT_MS = 20_000;
/** The same of a DEL, before it is spooled without a file. */
const DEL_CONNECT_MS = 2_000;
const RETRY_MS = 250;
/** After how long an agent that has ended by itself is started again: milliseconds. */
const RESTART_MS = 1_000;
/** No credentials are read: requests are sent past them. */
const NO_CREDENTIALS = {} as Credentials;

export interface Call {
  readonly command: "ADD" | "DEL";
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly network: string;
  /** An address that the pod asks for. */
  readonly ip?: string | undefined;
}

interface MachineOptions {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly segment: Segment;
  readonly cniConfDirectory: string;
  /** Version of the first agent; absent: this one. */
  readonly product?: Product;
  /**
   * The main plugin creates the NIC before it calls the IPAM plugin, as macvlan does: addresses can be probed on it.
   */
  readonly hasEarlyNics: boolean;
  /** Spooled DELs are files, which the product's own code replays, also before each ADD. */
  readonly hasSpool: boolean;
  /** Paths of the namespaces of its sandboxes. */
  readonly paths: Paths;
  readonly plugin: MainPlugin;
}

/** The main plugin, which configures a NIC with the addresses of the answer. */
export interface MainPlugin {
  /** Returns the name of the link that will have the addresses; undefined: none, a guest behind it has them. */
  linkOf(call: Call): string | undefined;
  /** Returns the time that it takes from the answer until the NIC has the addresses: milliseconds. */
  delayOf(nic: Nic): number;
  /** Returns whether it goes on though the runtime has given up. */
  goesOn(nic: Nic): boolean;
  /** Returns whether the API server has no such pod. */
  isOrphan(nic: Nic): boolean;
}

/** One life of an agent. */
interface Agent {
  readonly process: Process;
  readonly product: Product;
  backend: ClusterBackend | undefined;
  plugin: IpamPlugin | undefined;
  maintenance: Maintenance | undefined;
  registryWatch: { close(): void } | undefined;
  beforeAdd: ((call: Call) => Promise<void>) | undefined;
  /** Whether it has compared its journal with the API server once. */
  isCompared: boolean;
  /** Calls under way: the shim's errors when the agent ends. */
  readonly calls: Set<(error: Error) => void>;
}

type ServingAgent = Agent & { readonly plugin: IpamPlugin };

class NoAgent extends Error {}

export class Machine {
  /** Its node's name, which other machines may have had before it. */
  readonly name: string;
  /** Its own name, which no other machine has. */
  readonly host: string;
  readonly #options: MachineOptions;
  /** Version of the agent that starts next. */
  product: Product;
  disk: DatabaseSync;
  #copy: DatabaseSync | undefined;
  /** Its agents' knowledge of the registry's epochs: beside the journal. */
  #epochText: string | undefined;
  /** Of the agent that runs. */
  #store: SimulatedStore | undefined;
  /** No call has found that yet. */
  #isDamaged = false;
  /** In memory: the journal's last commit since the machine started. */
  /** When its journal was lost last. */
  #lostMs = Number.NEGATIVE_INFINITY;
  #witness: RegistryPoint | undefined;
  readonly space: DiskSpace = { isFull: false, isBroken: false, delayMs: 0 };
  readonly namespaces: Namespaces;
  readonly spool: Call[] = [];
  /** In place of `spool`. */
  readonly #files: SimulatedSpool | undefined;
  isOff = false;
  #wallOffsetMs = 0;
  #boot = 1;
  #lives = 0;
  #bootedAtMs: number;
  #agent: Agent | undefined;

  constructor(name: string, options: MachineOptions, host = name) {
    this.name = name;
    this.host = host;
    this.#options = options;
    this.namespaces = new Namespaces({ ...options, machine: host });
    this.product = options.product ?? THIS_PRODUCT;
    this.disk = emptyDisk(this.product);
    if (options.hasSpool) this.#files = new SimulatedSpool(options.time, host, (call) => this.#shimRequestOf(call));
    this.#bootedAtMs = -1_000_000 - options.time.process(`clock of ${host}`).random.below(1_000_000);
  }

  get bootId(): string {
    return `${this.host}-boot-${this.#boot}`;
  }

  get isServing(): boolean {
    return this.#agent?.plugin !== undefined;
  }

  /** Whether its agent serves, and receives events. */
  get isActing(): boolean {
    const { time, network } = this.#options;
    const process = this.#agent?.process;
    const isHeld = process !== undefined && (process.pausedUntilMs > time.nowMs || network.isStalled(process));
    return this.isServing && !isHeld && !this.space.isBroken;
  }

  /** Its agent, while ADDs wait for the first comparison of its journal with the API server. */
  get comparing(): Process | undefined {
    return this.#agent?.isCompared === false ? this.#agent.process : undefined;
  }

  get backend(): ClusterBackend | undefined {
    return this.#agent?.backend;
  }

  start(): void {
    if (this.isOff || this.#agent !== undefined) return;
    const { time, timeline } = this.#options;
    const { product } = this;
    const process = time.process(`agent of ${this.host} (${++this.#lives})`);
    process.wallOffsetMs = this.#wallOffsetMs;
    process.isOfLastRelease = product !== THIS_PRODUCT;
    const parts = {
      backend: undefined,
      plugin: undefined,
      maintenance: undefined,
      registryWatch: undefined,
      beforeAdd: undefined,
      isCompared: false,
    };
    const agent: Agent = { process, product, ...parts, calls: new Set() };
    this.#agent = agent;
    timeline.note(`${this.host}: the agent starts${product === THIS_PRODUCT ? "" : ` (${product.version})`}`);
    time.inside(process, () => void this.#open(agent).catch((error: unknown) => this.#startAgain(agent, error)));
  }

  /** An agent that cannot open its journal, or refuses its format, ends and is started again. */
  #startAgain(agent: Agent, error: unknown): void {
    const { time } = this.#options;
    const isRefused = this.space.isBroken && error instanceof agent.product.RegistryError;
    if (!isRefused && !agent.process.isOfLastRelease) {
      time.uncaught.push(error);
      return;
    }
    if (this.#agent !== agent) return;
    this.kill();
    time.schedule(RESTART_MS, "an agent is started again", time.current, () => this.start());
  }

  async #open(agent: Agent): Promise<void> {
    const { time, network, cniConfDirectory } = this.#options;
    const { process, product } = agent;
    const log = product.openLog("simulation", "silent");
    const random = (): number => process.random.u32() / 2 ** 32;
    const api = product.openKubeClient({
      credentials: NO_CREDENTIALS,
      userAgent: "berth-agent",
      random,
      send: network.connect(process, this.host, agentOf(this.name)),
    });
    const bootedAtMs = this.#bootedAtMs;
    const nowMs = (): number => Math.floor(time.nowMs - bootedAtMs);
    const backend = await product.openClusterBackend({
      api,
      random,
      nowMs,
      coreWasm: product.coreWasm,
      cniConfDirectory,
      node: this.name,
      stateDirectory: "/simulated",
      configNamespace: "kube-system",
      bootId: this.bootId,
      lockWaitMs: 0,
      faultCounter: product.createFaultCounter(),
      log,
      audit: NO_AUDIT,
      onDeath: (error) => {
        throw error;
      },
      openJournal: async (options) => this.#openJournal(product, options),
      epochFile: {
        read: () => this.#epochText,
        write: (text) => {
          this.#epochText = text;
        },
      },
      newUuid: () => `epoch-${process.random.u32()}`,
      links: this.namespaces.links,
      nics: product === THIS_PRODUCT ? this.namespaces.access : this.namespaces.accessOfLastRelease,
    });
    backend.fenceWith(async () => {});
    agent.backend = backend;
    backend.allocations.reconciled(new AbortController().signal).then(
      () => {
        agent.isCompared = true;
      },
      // It ends.
      () => {},
    );
    const plugin = new product.IpamPlugin(backend.ipam, backend);
    const files = this.#files?.open(plugin);
    const spool = files ?? { drain: () => this.#drain(product, plugin) };
    await spool.drain();
    if (files !== undefined)
      agent.beforeAdd = (call) => {
        backend.resources.flush();
        return files.clear(this.#headersOf(call));
      };
    const { probeQuarantined } = backend.ipam.detection;
    const { registry } = backend;
    const forLastRelease = { nowMs };
    agent.maintenance = product.startMaintenance({ registry, spool, probeQuarantined, log, ...forLastRelease });
    agent.registryWatch = product.watchRegistry(healthOf(backend), log);
    agent.plugin = plugin;
  }

  #openJournal(product: Product, options: SqliteRegistryOptions): SqliteRegistry {
    const { bootId, cooldowns, onFreed, onRowsLost, nowMs } = options;
    if (this.#isDamaged) this.#replaceDisk(emptyDisk(product));
    product.prepareSchema(this.disk);
    const point = pointOf(this.disk, 0);
    const seen = { point, witness: this.#witness, wasInUse: this.#witness !== undefined };
    if (product.findLoss({ file: this.host, isNew: point.generation === 0, ...seen }) !== undefined) {
      this.#options.timeline.note(`${this.host}: the journal is set aside`);
      this.disk = emptyDisk(product);
    }
    const onCommit = (): void => {
      this.#witness = { ...pointOf(this.disk, 1), lastVersion: this.#store?.lastVersion };
    };
    const onReplaced = (disk: DatabaseSync, reason: string, lost: number): void => {
      this.#options.timeline.note(`${this.host}: ${reason}; the journal is created again without ${lost} rows`);
      this.#replaceDisk(disk, lost > 0);
      onRowsLost?.(reason);
    };
    const lastVersion = this.#witness?.lastVersion;
    const described = { product, isJournal: true, disk: this.disk, bootId, cooldowns, lastVersion };
    const given = { ...described, onFreed, onCommit, onReplaced };
    this.#store = new SimulatedStore(this.#options.time, this.space, { ...given, openedAtMs: nowMs() });
    return new product.SqliteRegistry(this.#store, nowMs);
  }

  #noteLoss(): void {
    this.#lostMs = this.#options.time.nowMs;
    this.#options.segment.loseJournal(this.name);
  }

  #replaceDisk(disk: DatabaseSync, isLoss = true): void {
    this.disk = disk;
    this.#isDamaged = false;
    this.#witness = { ...pointOf(disk, 0), lastVersion: this.#witness?.lastVersion };
    if (isLoss) this.#noteLoss();
  }

  /** A page of the journal is overwritten under the running agent. Returns whether one runs. */
  damageJournal(part: DamagedPart): boolean {
    if (!this.isServing || this.#isDamaged || this.#store === undefined) return false;
    this.#options.timeline.note(`${this.host}: the journal is damaged (${part})`);
    this.disk = this.#store.damage(part);
    this.#isDamaged = true;
    return true;
  }

  async #drain(product: Product, plugin: IpamPlugin): Promise<void> {
    for (const call of this.spool.splice(0)) {
      try {
        await this.#delete(product, plugin, call);
      } catch {
        this.spool.push(call);
      }
    }
  }

  /** `kill -9`. */
  kill(): void {
    const agent = this.#agent;
    if (agent === undefined) return;
    this.#options.time.end(agent.process);
    this.#agent = undefined;
    for (const hearOf of agent.calls) hearOf(new NoAgent("The connection broke"));
    this.#options.timeline.note(`${this.host}: the agent is killed`);
  }

  /**
   * SIGTERM, as for an upgrade or a rollback: it answers the calls under way, ends in order, and one of the other
   * version starts after `forMs`.
   */
  async upgrade(forMs: number, product = this.product): Promise<void> {
    this.product = product;
    const agent = this.#agent;
    if (agent?.plugin === undefined) {
      if (agent === undefined || agent.product === product) return;
      this.kill();
      this.start();
      return;
    }
    const { time, timeline } = this.#options;
    timeline.note(`${this.host}: the agent is upgraded`);
    agent.plugin = undefined;
    await time.inside(agent.process, async () => {
      while (agent.calls.size > 0) await time.sleep(10, "the last answers");
      agent.maintenance?.close();
      agent.registryWatch?.close();
      await agent.backend?.close();
    });
    if (this.#agent !== agent) return;
    this.kill();
    await time.sleep(forMs, "the upgrade goes on");
    this.start();
  }

  /** A backup of the journal, as of now. */
  copyDisk(): void {
    this.#copy = copyDisk(this.disk);
    this.#options.segment.copyJournal(this.name);
  }

  /**
   * The journal of the last backup takes the place of the journal. The agent finds out by the witness of this boot,
   * and sets it aside; a machine that has booted since has none (docs/recovery.md).
   */
  restoreDisk(): void {
    if (this.#copy === undefined) return;
    this.disk = this.#copy;
    this.#copy = undefined;
    this.#noteLoss();
    if (this.isOff) this.#options.segment.restoreJournal(this.name);
    this.#options.timeline.note(`${this.host}: an older journal is restored`);
  }

  pause(milliseconds: number): void {
    if (this.#agent === undefined) return;
    const { time, network } = this.#options;
    time.pause(this.#agent.process, milliseconds);
    network.noteSilence(this.host, time.nowMs + milliseconds);
  }

  /** The power goes: the sandboxes are gone, the disk stays. */
  powerOff(): void {
    this.kill();
    this.isOff = true;
    this.namespaces.clear();
    this.#options.timeline.note(`${this.host}: the power is off`);
  }

  powerOn(): void {
    this.isOff = false;
    this.#witness = undefined;
    this.#boot++;
    this.#bootedAtMs = this.#options.time.nowMs - 5_000;
    this.#options.segment.boot(this.name);
    this.#options.timeline.note(`${this.host}: boots`);
  }

  /** Amount by which its wall clock is ahead: milliseconds. */
  setWallClock(offsetMs: number): void {
    this.#wallOffsetMs = offsetMs;
    if (this.#agent !== undefined) this.#agent.process.wallOffsetMs = offsetMs;
    this.#options.timeline.note(`${this.host}: the wall clock is ${offsetMs / 1000} s ahead`);
  }

  loseDisk(): void {
    this.#epochText = undefined;
    this.disk = emptyDisk(this.product);
    this.#noteLoss();
    this.#options.timeline.note(`${this.host}: the journal is lost`);
  }

  /** Nothing uses it any more. */
  close(): void {
    this.disk.close();
    this.#files?.close();
  }

  /**
   * An ADD as the runtime makes it: the addresses, which the NIC then has. Rejects as the plugin would. `onAnswer`: the
   * main plugin has the addresses, and configures the NIC.
   */
  async add(
    call: Call,
    signal: AbortSignal,
    onAnswer: (addresses: readonly string[]) => void = () => {},
  ): Promise<readonly string[]> {
    const { hasEarlyNics, plugin } = this.#options;
    const { containerId, ifName, network } = call;
    const nic = this.#nicOf(call);
    const nics = this.namespaces.sandboxes.get(containerId);
    if (hasEarlyNics) nics?.set(ifName, nic);
    let answered: readonly string[];
    try {
      answered = await this.#addresses(call, signal);
    } catch (error) {
      if (hasEarlyNics) nics?.delete(ifName);
      throw error;
    }
    nics?.set(ifName, nic);
    const addresses = answered.map((each) => addressIn(spaceOfNetwork(network), each));
    onAnswer(addresses);
    const delayMs = plugin.delayOf(nic);
    if (delayMs > 0) await this.#configureLate(nic, addresses, { delayMs, signal });
    else this.namespaces.bringUp(nic, addresses);
    return addresses;
  }

  #nicOf(call: Call): Nic {
    const { uid, containerId, ifName, network } = call;
    const { time, plugin } = this.#options;
    const pod = call.namespace === "shop" ? call.pod : `${call.namespace}/${call.pod}`;
    return {
      ...{ machine: this.host, pod, uid, containerId, ifName, network, mac: macOfNic(uid, containerId, ifName) },
      ...{ addresses: new Set(), sinceMs: time.nowMs, link: plugin.linkOf(call), isReleased: false },
    };
  }

  /** Rejects when the runtime gives up before, or the NIC is gone. */
  async #configureLate(
    nic: Nic,
    addresses: readonly string[],
    { delayMs, signal }: { readonly delayMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { time, plugin } = this.#options;
    const answeredMs = time.nowMs;
    this.namespaces.pending.set(nic, { answeredMs, upMs: answeredMs + delayMs });
    let isKilled = false;
    const configured = time.sleep(delayMs, "main plugin").then(() => {
      // Nothing on the node knows of an orphan's sandbox whose journal was lost, until its NIC has addresses.
      if (answeredMs <= this.#lostMs && plugin.isOrphan(nic)) this.namespaces.pending.delete(nic);
      else if (isKilled || this.namespaces.bringUp(nic, addresses)) return;
      throw new Error(`The main plugin finds no ${nic.ifName}`);
    });
    const { promise: givenUp, reject } = Promise.withResolvers<void>();
    const giveUp = (): void => {
      isKilled = !plugin.goesOn(nic);
      if (isKilled) this.namespaces.pending.delete(nic);
      reject(signal.reason);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      await Promise.race([configured, givenUp]);
    } finally {
      signal.removeEventListener("abort", giveUp);
      configured.catch(() => {});
    }
  }

  async #addresses(call: Call, signal: AbortSignal): Promise<readonly string[]> {
    const agent = await this.#connect(CONNECT_MS, signal);
    const added = await this.#ask(
      agent,
      async (plugin, hungUp) => {
        const request = agent.product.decodeRequest("berth", this.#headersOf(call), JSON.stringify(confOf(call)));
        if (request?.command !== "ADD") throw new Error("no ADD");
        if (agent.beforeAdd !== undefined) await agent.beforeAdd(call);
        const netnsCookie = this.namespaces.access.readCookie(request.netns);
        const { result, undo } = await plugin.add({ ...request, netnsCookie }, hungUp);
        return { addresses: result.ips.map(({ address }) => formatIp(address.ip)), undo };
      },
      { signal, onUndelivered: ({ undo }) => void undo().catch(() => {}) },
    );
    return added.addresses;
  }

  /** A DEL: carried out, or in the spool. Resolves with whether it was answered. */
  async del(call: Call): Promise<boolean> {
    const found = this.namespaces.sandboxes.get(call.containerId)?.get(call.ifName);
    const nic = found?.network === call.network ? found : undefined;
    if (nic !== undefined) {
      nic.isReleased = true;
      this.#options.segment.onReleasing(nic);
    }
    try {
      const withinMs = this.#files === undefined ? DEL_CONNECT_MS : 0;
      const agent = await this.#connect(withinMs, new AbortController().signal);
      await this.#ask(agent, (plugin) => this.#delete(agent.product, plugin, call));
      if (nic !== undefined) this.#options.segment.onReleased(nic);
      return true;
    } catch {
      if (this.#files === undefined) this.spool.push(call);
      else {
        await this.#files.write(call);
        this.#options.timeline.note(`${this.host}: DEL of ${call.ifName} of ${call.containerId} is spooled`);
      }
      return false;
    }
  }

  /** A GC of the runtime, which knows these attachments. */
  async collect(valid: readonly { containerID: string; ifname: string }[]): Promise<void> {
    const agent = await this.#connect(DEL_CONNECT_MS, new AbortController().signal);
    await this.#ask(agent, async (plugin) => {
      for (const name of ["lan", "lan2"]) {
        const conf = JSON.stringify({ ...plainConf(name), "cni.dev/valid-attachments": valid });
        const request = agent.product.decodeRequest("berth", { "cni-command": "GC", "cni-path": "/bin" }, conf);
        if (request?.command === "GC") await plugin.gc(request);
      }
    });
  }

  #delete = async ({ decodeRequest }: Product, plugin: IpamPlugin, call: Call): Promise<void> => {
    const request = decodeRequest("berth", this.#headersOf({ ...call, command: "DEL" }), JSON.stringify(confOf(call)));
    if (request?.command !== "DEL") throw new Error("no DEL");
    await plugin.del(request);
  };

  #headersOf(call: Call): Record<string, string> {
    const pod = `K8S_POD_NAMESPACE=${call.namespace};K8S_POD_NAME=${call.pod};K8S_POD_UID=${call.uid}`;
    const args = call.ip === undefined ? pod : `${pod};IP=${call.ip}`;
    return {
      "cni-command": call.command,
      "cni-containerid": call.containerId,
      "cni-netns": this.namespaces.pathOf(call.containerId),
      "cni-ifname": call.ifName,
      "cni-path": "/bin",
      "cni-args": args,
    };
  }

  #shimRequestOf(call: Call): { headers: Record<string, string>; body: string } {
    return { headers: this.#headersOf(call), body: JSON.stringify(confOf(call)) };
  }

  async #connect(withinMs: number, signal: AbortSignal): Promise<ServingAgent> {
    const { time } = this.#options;
    const untilMs = time.nowMs + withinMs;
    for (;;) {
      const agent = this.#agent;
      if (agent?.plugin !== undefined) return agent as ServingAgent;
      if (time.nowMs >= untilMs || this.isOff) throw new NoAgent("No agent answers");
      signal.throwIfAborted();
      await time.sleep(RETRY_MS, "shim retries");
    }
  }

  /**
   * Runs the call in the agent's process; its result or error comes over the socket. `signal`: the caller hangs up; an
   * answer that it no longer takes is given to `onUndelivered`.
   */
  #ask<T>(
    agent: ServingAgent,
    work: (plugin: IpamPlugin, hungUp: AbortSignal) => Promise<T>,
    { signal, onUndelivered }: { signal?: AbortSignal; onUndelivered?: (value: T) => void } = {},
  ): Promise<T> {
    const { time } = this.#options;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const caller = time.current;
    // An agent that ends in order answers connected callers.
    const { plugin } = agent;
    const hangingUp = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fail = (error: Error): void => void time.schedule(0, "broken socket", caller, () => reject(error));
    agent.calls.add(fail);
    const hangUp = (): void => {
      reject(signal?.reason);
      time.schedule(0, "hang-up", agent.process, () => hangingUp.abort(new Error("The caller hung up")));
    };
    signal?.addEventListener("abort", hangUp, { once: true });
    const deliver = (value: T): void => {
      signal?.removeEventListener("abort", hangUp);
      if (signal?.aborted === true) time.schedule(0, "undelivered", agent.process, () => onUndelivered?.(value));
      else resolve(value);
    };
    time.schedule(0, "socket", agent.process, () => {
      work(plugin, hangingUp.signal).then(
        (value) => {
          agent.calls.delete(fail);
          if (hangingUp.signal.aborted) onUndelivered?.(value);
          else time.schedule(0, "answer of the agent", caller, () => deliver(value));
        },
        (error) => {
          agent.calls.delete(fail);
          const isBug = agent.product.isBug(error) && !agent.process.isOfLastRelease;
          if (!hangingUp.signal.aborted && isBug) time.uncaught.push(error);
          time.schedule(0, "refusal of the agent", caller, () => reject(error));
        },
      );
    });
    return promise;
  }
}

/** That of the last release is the registry itself. */
function healthOf({ health, registry }: ClusterBackend): RegistryHealth {
  return health ?? (registry as unknown as RegistryHealth);
}

function macOfNic(...names: readonly string[]): Mac {
  const digits = hash("sha256", names.join(" ")).slice(0, 10);
  return `02:${digits.replace(/..(?!$)/g, "$&:")}` as Mac;
}

export function plainConf(name: string): object {
  const space = spaceOfNetwork(name);
  const pools = { default_ipv4_ippool: [`${space}4`], default_ipv6_ippool: [`${space}6`] };
  const ipam = { type: "berth", ...(space === "" ? {} : pools) };
  return { cniVersion: "1.1.0", name, type: "macvlan", ipam };
}

function confOf({ network }: Call): object {
  return plainConf(network);
}
