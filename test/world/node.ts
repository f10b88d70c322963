/**
 * A node in memory: the world of the unit and property tests that are about more than one part of the agent.
 *
 *   const node = await openNode({ snapshot: snapshotOf(pool("blue", "10.6.0.0/24")) });   // the embedded registry
 *   const node = await openClusterNode({ server });   // a cluster's, on an API server in memory
 *
 * Registry, pool cache and inventory are the product's; the disk is SQLite in memory, and time stands still until the
 * test moves it. The part that a test is about is opened on the node by the test: a collector, a prefetcher,
 * detection on a {@link Segment}.
 */

import type { DatabaseSync } from "node:sqlite";
import { openDetection } from "../../host/agent/detection/open-detection.ts";
import type { AddDeps } from "../../host/agent/ipam/add.ts";
import { openManifestIdentifier } from "../../host/agent/ipam/pod-identity.ts";
import { cooldownsOf, PoolInventory } from "../../host/agent/ipam/pool-inventory.ts";
import type { AddressDemand } from "../../host/agent/ipam/sources/source.ts";
import { type AttachRequest, decodeRequest } from "../../host/cni/request.ts";
import type { Proposal } from "../../host/ipam/pick.ts";
import { PoolCache } from "../../host/ipam/pool-cache.ts";
import type { KubeApi } from "../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { equalIp, formatIp } from "../../host/net/ip.ts";
import type { Journal } from "../../host/registry/journal.ts";
import type { LiveStatus } from "../../host/registry/kubernetes/decide.ts";
import { KubernetesRegistry } from "../../host/registry/kubernetes/kubernetes-registry.ts";
import type { LostObserver } from "../../host/registry/kubernetes/object-sync.ts";
import type { Allocation, Claim, FileRegistry, Registry } from "../../host/registry/registry.ts";
import type { SqliteRegistryOptions } from "../../host/registry/sqlite/sqlite-registry.ts";
import { decodeIpAllocation, type IpAllocation } from "../../host/resources/ip-allocation.ts";
import type { Snapshot } from "../../host/resources/snapshot.ts";
import { type Gate, MemoryApiServer, type StoredObject } from "../fakes/memory-api-server.ts";
import { openDisk, openMemoryJournal } from "../fakes/memory-journal.ts";
import { TestClock } from "./clock.ts";
import { nicSettings } from "./nic-settings.ts";
import { NO_AUDIT } from "./no-audit.ts";
import { recordLog } from "./recorded-log.ts";
import { claim, claimAndRetain, demandOf, EMPTY_SNAPSHOT, type NicRequest, openCore, proposal } from "./subjects.ts";
import { ip } from "./values.ts";

/** Stands around the operations of the registry's store: calls `run` when it likes. */
type Around = (method: string, args: readonly never[], run: () => unknown) => unknown;

export interface NodeOptions {
  readonly name?: string;
  readonly clock?: TestClock;
  /** Storage that outlives the agent. */
  readonly disk?: DatabaseSync;
  readonly snapshot?: Snapshot;
  readonly bootId?: string;
  readonly around?: Around;
  readonly gate?: Gate;
  /** Nodes of one cluster share it. */
  readonly server?: MemoryApiServer;
}

export interface ClusterNodeOptions extends NodeOptions, Partial<Omit<LiveStatus, "node"> & LostObserver> {
  readonly random?: () => number;
  /** Addresses of each pool; default: as the pool cache has it. */
  readonly poolSize?: number;
}

/** Parts of a test's ADD beside its pod and NICs. */
export interface DemandOptions extends Partial<Omit<AddressDemand["claimant"], "pod">> {
  readonly requested?: string | undefined;
  readonly seedText?: string;
  readonly coversPod?: boolean;
  readonly signal?: AbortSignal;
}

interface RequestParts {
  /** Name of a pod in namespace `shop`. */
  readonly pod?: string;
  readonly uid?: string | undefined;
  readonly containerId?: string;
  /** Body of the network configuration. */
  readonly body?: object;
}

/** An ADD as the shim sends it. */
export function addRequest(ifName: string, parts: RequestParts = {}): AttachRequest {
  const { pod = "web-0", uid, containerId = "c1", body } = parts;
  const args = `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod}${uid === undefined ? "" : `;K8S_POD_UID=${uid}`}`;
  const headers = {
    ...{ "cni-command": "ADD", "cni-containerid": containerId, "cni-netns": "/run/netns/x" },
    ...{ "cni-ifname": ifName, "cni-path": "/bin", "cni-args": args },
  };
  const conf = { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth" }, ...body };
  const request = decodeRequest("berth", headers, JSON.stringify(conf));
  if (request?.command !== "ADD") throw new Error("no ADD");
  return request;
}

/** As the node opens it. */
type Opened = Registry & Pick<FileRegistry, "close">;

type OpenRegistry<R extends Opened> = (
  node: TestNode<R>,
  options: SqliteRegistryOptions,
  isDead: () => boolean,
) => Promise<R>;

export class TestNode<R extends Opened = Opened> {
  readonly name: string;
  readonly clock: TestClock;
  readonly server: MemoryApiServer;
  readonly disk: DatabaseSync;
  /** Addresses reported as free, as text. */
  readonly freed: string[] = [];
  /** Calls to the API server: `GET /api/v1/pods`. */
  readonly calls: string[] = [];
  readonly lost: Allocation[] = [];
  readonly #recorded = recordLog();
  readonly log = this.#recorded.log;
  readonly lines = this.#recorded.lines;
  /** Stands before each call to the API server. */
  gate: Gate;
  around: Around;
  snapshot: Snapshot;
  /** The server as the agent has it. */
  api!: KubeApi;
  registry!: R;
  poolCache!: PoolCache;
  inventory!: PoolInventory;
  readonly #openRegistry: OpenRegistry<R>;
  #bootId: string;
  #life = { isDead: true };

  constructor(options: NodeOptions, openRegistry: OpenRegistry<R>) {
    this.name = options.name ?? "n1";
    this.clock = options.clock ?? new TestClock();
    this.server = options.server ?? new MemoryApiServer();
    this.disk = options.disk ?? openDisk();
    this.snapshot = options.snapshot ?? EMPTY_SNAPSHOT;
    this.around = options.around ?? ((_method, _args, run) => run());
    this.gate = options.gate ?? (async (_call, commit) => commit());
    this.#bootId = options.bootId ?? "boot-1";
    this.#openRegistry = openRegistry;
  }

  /** Starts an agent on the disk. An earlier one ends as after `kill -9`. */
  async open(bootId = this.#bootId): Promise<this> {
    this.crash();
    this.#bootId = bootId;
    const life = { isDead: false };
    this.#life = life;
    const poolCache = new PoolCache(openCore());
    const options: SqliteRegistryOptions = {
      ...{ directory: "", bootId, nowMs: this.clock.nowMs, lockWaitMs: 0 },
      ...{ cooldowns: cooldownsOf(this.snapshot), faultCounter: createFaultCounter() },
      onFreed: (space, address) => {
        this.freed.push(formatIp(address));
        poolCache.unmark(space, address);
      },
      onDeath: (error) => {
        throw error;
      },
    };
    this.api = this.server.client((call, commit) => {
      if (life.isDead) return new Promise(() => {});
      this.calls.push(`${call.method} ${call.path}${call.query?.continue === undefined ? "" : " continued"}`);
      return this.gate(call, commit);
    });
    this.poolCache = poolCache;
    this.registry = await this.#openRegistry(this, options, () => life.isDead);
    this.inventory = new PoolInventory(poolCache, this.registry, this.snapshot);
    this.follow(this.snapshot);
    await this.inventory.loaded();
    return this;
  }

  /** `kill -9`: nothing is written and nothing is answered any more. */
  crash(): void {
    this.#life.isDead = true;
  }

  get isDead(): boolean {
    return this.#life.isDead;
  }

  /** The pools and the settings are these now. */
  follow(snapshot: Snapshot): void {
    this.snapshot = snapshot;
    this.inventory.follow(snapshot);
  }

  /** Returns the dependencies of the agent's IPAM. */
  ipam(changes: Partial<AddDeps> = {}): AddDeps {
    const { registry, inventory, clock, log } = this;
    const snapshot = (): Snapshot => this.snapshot;
    return {
      ...{ inventory, clock, log, networks: nicSettings, node: { name: this.name, labels: {} } },
      identifier: openManifestIdentifier(snapshot),
      detection: openDetection({ registry, pools: () => snapshot().pools, nowMs: clock.nowMs, log, audit: NO_AUDIT }),
      ...changes,
    };
  }

  /** Returns the demand of an ADD of the pod, of namespace `shop`, on the search for addresses. */
  demand(pod: string, nics: readonly NicRequest[], options: DemandOptions = {}): AddressDemand {
    const { requested, seedText = pod, coversPod, signal, ...claimant } = options;
    return {
      nics: nics.map((nic) => demandOf(nic, this.snapshot.pools)),
      requested: requested === undefined ? [] : [{ ip: ip(requested), source: "CNI_ARGS IP" }],
      claimant: {
        ...{ owner: `uid-${pod}`, namespace: "shop", pod, ifName: nics[0]?.ifName ?? "eth0" },
        ...{ containerId: `c-${pod}`, network: "net", ...claimant },
      },
      ...{ seedText, deadline: { clock: this.clock, signal: signal ?? new AbortController().signal } },
      ...(coversPod === undefined ? {} : { coversPod }),
    };
  }

  /** The address is Bound to the pod. */
  async bind(address: string, pod: string, changes: Partial<Proposal & Claim> = {}): Promise<Allocation> {
    const { space, prefixLength, pool, replaces, ...rest } = changes;
    const place = Object.entries({ space, prefixLength, pool, replaces, ifName: rest.ifName });
    const wanted = Object.fromEntries(place.filter(([, value]) => value !== undefined));
    const claimant = { pod, containerId: `c-${pod}`, ...rest };
    const outcome = await claimAndRetain(this.registry, claim(`uid-${pod}`, [proposal(address, wanted)], claimant));
    const [first] = outcome.kind === "bound" ? outcome.held : [];
    if (first === undefined) throw new Error(`${address} was not bound: ${outcome.kind}`);
    return first;
  }

  /** `free`: it has no row. */
  async stateOf(address: string, space = ""): Promise<string> {
    return (await this.registry.findAddress(space, ip(address)))?.state ?? "free";
  }

  /** The addresses of each state. */
  async states(): Promise<Record<string, string[]>> {
    const grouped = Object.groupBy(await this.registry.list(undefined, 10_000), ({ state }) => state);
    return Object.fromEntries(
      Object.entries(grouped).map(([state, rows]) => [state, rows.map((row) => formatIp(row.ip))]),
    );
  }

  /** Advances the clock; then the maintenance frees the due addresses. */
  async pass(milliseconds: number): Promise<void> {
    await idle(this.registry);
    await this.clock.advance(milliseconds);
    await this.registry.expire();
    await idle(this.registry);
  }

  async close(): Promise<void> {
    await this.registry.close();
  }
}

async function idle(registry: Registry & Partial<Pick<KubernetesRegistry, "objects">>): Promise<void> {
  await registry.objects?.idle();
}

/** The registry, whose answers come when the API server has been told. */
export function afterIdle(registry: KubernetesRegistry): Registry {
  return new Proxy<Registry>(registry, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        const answer: unknown = found.apply(target, args);
        return answer instanceof Promise ? answer.finally(() => registry.objects.idle()) : answer;
      };
    },
  });
}

/** The store of the node, with `node.around` around its operations. */
function journalOf(
  node: Pick<TestNode, "disk" | "around">,
  options: SqliteRegistryOptions,
  isDead: () => boolean,
  isEmbedded = false,
): Journal {
  return new Proxy(openMemoryJournal(node.disk, { ...options, isDead, isEmbedded }), {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: never[]): unknown => node.around(String(name), args, () => Reflect.apply(found, target, args));
    },
  });
}

/** A node without a cluster. */
export function openNode(options: NodeOptions = {}): Promise<TestNode> {
  return new TestNode(options, async (...given) => journalOf(...given, true)).open();
}

/** A node with nothing but the journal of a cluster's node. */
export function openJournalNode(options: NodeOptions = {}): Promise<TestNode<Journal>> {
  return new TestNode<Journal>(options, async (...given) => journalOf(...given)).open();
}

export type ClusterNode = TestNode<KubernetesRegistry>;

/** A node of a cluster. By default no pod is alive. */
export function openClusterNode(options: ClusterNodeOptions = {}): Promise<ClusterNode> {
  const { poolSize, random = () => 0.5, onLost, onOrphan, ...readers } = options;
  const node: ClusterNode = new TestNode(options, async (self, registryOptions, isDead) => {
    const registry = new KubernetesRegistry(journalOf(self, registryOptions, isDead), {
      ...{ api: self.api, journal: registryOptions, random, log: openLog("berth", "silent") },
      live: { isLivePod: async () => false, ...readers, node: self.name },
      lost: {
        onLost: onLost ?? ((row) => void self.lost.push(row)),
        isLost: (row) => self.lost.some((each) => equalIp(each.ip, row.ip)),
        onOrphan,
      },
      pools: {
        counts: (pool) => {
          const total = BigInt(poolSize ?? self.poolCache.counts(pool)?.total ?? 1_000);
          return { total, free: total };
        },
      },
    });
    await registry.resume();
    return registry;
  });
  return node.open();
}

/** The node's reconciler has read the object, now or earlier. */
export function observe({ registry }: ClusterNode, object: StoredObject | undefined): void {
  if (object === undefined) throw new Error("There is no such object");
  registry.objects.observe(decodeStored(object));
}

export function decodeStored(object: StoredObject): IpAllocation {
  return decodeIpAllocation({ ...object, apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" }, "the test");
}

/** `10.0.0.1 Bound n1` for each object of an allocation. */
export function allocationLines({ objects }: MemoryApiServer): string[] {
  return [...objects.values()].map(({ metadata, spec }) => `${metadata.name} ${spec.state} ${spec.node}`);
}
