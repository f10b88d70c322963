/**
 * The cluster mode: resources from the API server's watches, addresses as objects there and in this node's journal.
 * It is everything of an agent but socket, spool and plugins, so that tests run many nodes in one process.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { PoolSpace } from "../../core/pool-space.ts";
import { isOwner, podFacts } from "../../ipam/leak.ts";
import { PoolCache } from "../../ipam/pool-cache.ts";
import { findAddressOwner } from "../../ipam/retention.ts";
import type { KubeClient } from "../../kubernetes/client.ts";
import { EventSender, type Events } from "../../kubernetes/events.ts";
import type { ApiError, KubeApi, KubeCall } from "../../kubernetes/kube-api.ts";
import { type Change, valueAfter } from "../../kubernetes/mirror.ts";
import { RefusedWrites } from "../../kubernetes/refused-writes.ts";
import type { Log } from "../../lib/log.ts";
import type { AgentMetrics } from "../../metrics/agent-metrics.ts";
import { collectApi, collectUnused, collectWatches } from "../../metrics/common-metrics.ts";
import { setTotal } from "../../metrics/metric.ts";
import type { Ip } from "../../net/ip.ts";
import { type EpochFile, epochFileIn, KnownEpoch } from "../../registry/epoch/known-epoch.ts";
import { KubernetesEpoch } from "../../registry/epoch/kubernetes-epoch.ts";
import { RegistryEpoch } from "../../registry/epoch/registry-epoch.ts";
import { listNodeAllocations, readAllocation } from "../../registry/kubernetes/allocation-objects.ts";
import type { LiveStatus } from "../../registry/kubernetes/decide.ts";
import type { KubernetesRegistry, KubernetesRegistryOptions } from "../../registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Attachment, RegistryHealth } from "../../registry/registry.ts";
import { CONTROLLER_LEASE } from "../../resources/allocation-notice.ts";
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import type { Pod } from "../../resources/pod.ts";
import { EPOCH_ANNOTATION } from "../../resources/registry-epoch.ts";
import type { LiveObjects } from "../backend.ts";
import { type Backend, type BackendOptions, problemsOf } from "../backend.ts";
import { type DetectionLinks, openDetection } from "../detection/open-detection.ts";
import { LastingFences } from "../fences/lasting-fences.ts";
import { type FenceDeps, fenceOrphan, KERNEL_NICS, type NicAccess } from "../fences/orphan-nics.ts";
import { Collector } from "../gc/collector.ts";
import { LostAddresses } from "../gc/lost-addresses.ts";
import type { AddDeps } from "../ipam/add.ts";
import { AttachingNics } from "../ipam/attaching-nics.ts";
import { cooldownsOf, PoolInventory } from "../ipam/pool-inventory.ts";
import { Prefetcher } from "../ipam/prefetch/prefetcher.ts";
import { findUnobserved } from "../ipam/wait-for-pool.ts";
import { readNodeStatus } from "../liveness/live-status.ts";
import { openNoticeTerm } from "../liveness/notice-term.ts";
import { OwnMachine } from "../liveness/own-machine.ts";
import { collectNodeAddresses, collectPrefetch } from "../metrics/collect.ts";
import { OwnEpochRows } from "../reconcile/epoch-rows.ts";
import { OwnAllocations } from "../reconcile/own-allocations.ts";
import { Definitions } from "../request/definitions.ts";
import { isOwnerThere, readHolderStatus } from "./address-owners.ts";
import { identityOfPod, openClusterIdentifier, readPod } from "./identity.ts";
import { KubernetesIpam } from "./ipam.ts";
import { announce, ClusterDefinitions } from "./networks.ts";
import { ClusterResources, openLiveObjects } from "./resources.ts";
import { followDefinitions, followEpoch, followWanted } from "./watches.ts";

/** The backend's own connection to the API server. */
interface ClusterConnection {
  readonly server: string;
  /** Current problems of the credentials: sentences. */
  readonly problems: readonly string[];
  readonly client: KubeClient;
  close(): Promise<void>;
}

export interface ClusterBackendOptions extends BackendOptions {
  readonly api: KubeApi;
  /** Closed with the backend. Default: `api` belongs to the caller. */
  readonly connection?: ClusterConnection | undefined;
  /** Default: the product's, on a thread of its own. */
  readonly openJournal?: KubernetesRegistryOptions["openJournal"];
  /** Default: a file in the state directory. */
  readonly epochFile?: EpochFile | undefined;
  /** Returns a new UUID. */
  readonly newUuid?: (() => string) | undefined;
  /** Default: the kernel's. */
  readonly links?: DetectionLinks | undefined;
  /** Default: the kernel's. */
  readonly nics?: NicAccess | undefined;
  /** The machine according to the host; absent: only the Node object says. */
  readonly hostMachine?: string | undefined;
  /** Namespace of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  /** Name of the controllers' Lease there. Default: {@link CONTROLLER_LEASE}. */
  readonly controllerLease?: string | undefined;
  /** From 0 to 1: spreads pauses so that nodes do not coincide. */
  readonly random: () => number;
}

/** Resolves when the journal is open: a DEL works from then on, an ADD waits for {@link Backend.synced}. */
export async function openClusterBackend(options: ClusterBackendOptions): Promise<ClusterBackend> {
  const opening = new AsyncDisposableStack();
  opening.defer(() => options.connection?.close());
  try {
    const parts = await openParts(options, opening);
    return new ClusterBackend(options, parts, opening.move());
  } catch (error) {
    await opening.disposeAsync();
    throw error;
  }
}

interface Parts {
  readonly resources: ClusterResources;
  readonly registry: KubernetesRegistry;
  readonly definitions: ClusterDefinitions;
  readonly ipam: AddDeps;
  readonly prefetcher: Prefetcher;
  readonly collector: Collector;
  readonly allocations: OwnAllocations;
  readonly fences: LastingFences;
  readonly machine: OwnMachine;
  readonly known: Known;
  readonly epoch: RegistryEpoch;
  readonly later: Later;
  readonly events: Events;
}

/** A pool without a controller's look for longer is a problem: milliseconds. */
const UNOBSERVED_MS = 30_000;

/** `addAddresses(backend.ipam, request, signal)` is the ADD, `backend.registry.release(attachment)` the DEL. */
export class ClusterBackend implements Backend {
  readonly mode = "cluster";
  readonly resources: ClusterResources;
  readonly ipam: AddDeps;
  readonly registry: KubernetesRegistry;
  readonly health: RegistryHealth;
  readonly collector: Collector;
  readonly allocations: OwnAllocations;
  readonly prefetcher: Prefetcher;
  readonly epoch: RegistryEpoch;
  readonly live: LiveObjects;
  readonly #options: Pick<ClusterBackendOptions, "api" | "node" | "audit" | "connection" | "nowMs">;
  readonly #parts: Parts;
  readonly #stack: AsyncDisposableStack;
  /** The pool without a controller's look, and since when health has known. */
  #unobserved: { readonly name: string; readonly sinceMs: number } | undefined;

  constructor(options: ClusterBackendOptions, parts: Parts, stack: AsyncDisposableStack) {
    this.resources = parts.resources;
    this.ipam = parts.ipam;
    this.registry = parts.registry;
    this.health = parts.registry.health;
    this.collector = parts.collector;
    this.allocations = parts.allocations;
    this.prefetcher = parts.prefetcher;
    this.epoch = parts.epoch;
    this.live = openLiveObjects(options.api);
    this.#options = options;
    this.#parts = parts;
    this.#stack = stack;
  }

  async synced(signal: AbortSignal): Promise<void> {
    if (this.#isKnown) return;
    await this.resources.within(
      signal,
      (bounded) => waitForAll(this.#parts, bounded),
      () => this.allocations.problems[0] ?? "they are being compared with its journal",
    );
  }

  get ready(): boolean {
    return this.#isKnown && this.resources.state.complete;
  }

  fenceWith(detach: (row: Allocation) => Promise<void>): void {
    this.#parts.later.detach = detach;
  }

  isReleased(attachment: Attachment): boolean {
    return this.#parts.fences.has(attachment);
  }

  reportNode(reason: string, note: string): void {
    const { node } = this.#options;
    const regarding = { kind: "Node", apiVersion: "v1", namespace: "", name: node, uid: node };
    this.#parts.events.emit({ regarding, reason, note, type: "Warning", action: "Restore" });
  }

  get client(): KubeClient | undefined {
    return this.#options.connection?.client;
  }

  async collectMetrics(metrics: AgentMetrics): Promise<void> {
    const { client } = this;
    if (client !== undefined) collectApi(metrics, client.stats, client.requests);
    collectWatches(metrics, this.resources.stats);
    collectUnused(metrics, this.resources.unused);
    collectPrefetch(metrics, this.prefetcher.stats());
    metrics.gcCandidates.set(this.collector.candidates);
    setTotal(metrics.gcCollected, this.collector.collected);
    metrics.publisherBacklog.set(this.registry.objects.size.backlog);
    metrics.lostAddresses.set(this.allocations.stats.lost);
    metrics.epochOpen.set(Number(this.epoch.isOpen));
    await collectNodeAddresses(this.registry, metrics);
  }

  readonly readPodsOf: Collector["readPodsOf"] = (rows) => this.collector.readPodsOf(rows);

  async readObjects(names: ReadonlySet<string>): Promise<readonly IpAllocation[]> {
    const { api, node } = this.#options;
    const terms = { lane: "background" } as const;
    const own = await listNodeAllocations(api, node, terms);
    const missing = [...names].filter((name) => !own.some((object) => object.name === name));
    const others = await Promise.all(missing.map((name) => readAllocation(api, name, terms)));
    return [...own, ...others.filter((each) => each !== undefined)];
  }

  stats(): Readonly<Record<string, unknown>> {
    return {
      node: this.#options.node,
      caches: this.resources.stats,
      prefetch: this.prefetcher.stats(),
      registry: this.registry.objects.size,
      collected: this.collector.collected,
      allocations: this.allocations.stats,
      ...(this.#options.connection && {
        server: this.#options.connection.server,
        api: this.#options.connection.client.stats,
      }),
    };
  }

  close(): Promise<void> {
    return this.#stack.disposeAsync();
  }

  /** Whether resources were read once, and the journal is known to have all rows. */
  get #isKnown(): boolean {
    return this.#parts.known.isKnown && this.allocations.isCompared;
  }

  /** A pool that has just been written is looked at within seconds. */
  #findUnobserved(): string | undefined {
    const name = findUnobserved(this.resources.state.snapshot);
    const nowMs = this.#options.nowMs();
    if (name !== this.#unobserved?.name) this.#unobserved = name === undefined ? undefined : { name, sinceMs: nowMs };
    return nowMs - (this.#unobserved?.sinceMs ?? nowMs) > UNOBSERVED_MS ? name : undefined;
  }

  get problems(): readonly string[] {
    const pool = this.#findUnobserved();
    const unread = this.resources.unread.join(", ") || "allocations of this node";
    return problemsOf(this, [
      ...(this.#options.connection?.problems ?? []),
      ...(this.#isKnown ? [] : [`Not read completely yet: ${unread}`]),
      ...this.epoch.problems,
      ...(pool === undefined
        ? []
        : [`No controller has looked at IPPool "${pool}" yet: what Nodes and Services have of it may lack a record`]),
      ...this.allocations.problems,
      ...this.#parts.machine.problems,
      ...this.collector.problems,
      ...this.#parts.definitions.problems,
      ...this.ipam.detection.prober.problems,
    ]);
  }
}

/** Whether resources and allocations were known once. */
interface Known {
  readonly done: Promise<void>;
  isKnown: boolean;
}

/** Parts that are opened later than their callers. */
interface Later {
  allocations?: OwnAllocations;
  epoch?: RegistryEpoch;
  /** Removes the coordinator's objects for an attachment. */
  detach?: (row: Allocation) => Promise<void>;
}

/** On the Node, since a tenant is not told of a node's other tenants; once for a namespace, not for each object. */
function reportUnused(events: Events, node: string, namespace: string): void {
  events.emit({
    regarding: { kind: "Node", apiVersion: "v1", namespace: "", name: node, uid: node },
    reason: "ObjectsNotUsed",
    note: `Objects of namespace ${namespace} are not used by the agent of this node, to save memory: "berthctl check" names them`,
    type: "Warning",
    action: "Watch",
  });
}

async function openParts(given: ClusterBackendOptions, stack: AsyncDisposableStack): Promise<Parts> {
  const { node, log, audit, nowMs, random } = given;
  const later: Later = {};
  const epochFile = given.epochFile ?? epochFileIn(given.stateDirectory);
  const knownEpoch = new KnownEpoch(epochFile, () => later.epoch?.wentBack());
  const refused = new RefusedWrites({ nowMs, random });
  const onRefused = ({ method, path }: KubeCall, { message: reason }: ApiError): void =>
    log.warn({ method, path, reason }, "The API server refuses a write; it is repeated ever more rarely");
  const api = { ...refused.apiFor(given.api, { part: "agent", onRefused }), history: knownEpoch };
  const options = { ...given, api };
  const events = new EventSender({ api, component: "berth-agent", node, log, nowMs });
  const resources = new ClusterResources({
    ...{ api, node, log, random, configNamespace: options.configNamespace },
    onUnused: (namespace) => reportUnused(events, node, namespace),
  });
  stack.defer(() => resources.close());
  stack.defer(() => events.close());
  const lost = new LostAddresses({ events, log });
  const machine = new OwnMachine({ api, node, bootId: options.bootId, host: options.hostMachine, nowMs, log });
  const poolCache = new PoolCache(PoolSpace.open(options.coreWasm));
  const registry = await openRegistry(options, { resources, poolCache, lost, machine, later });
  stack.defer(() => registry.close());
  // First, for the registry may wait for it.
  stack.defer(() => machine.close());
  const inventory = new PoolInventory(poolCache, registry, resources.state.snapshot, { metrics: options.metrics });
  resources.changes.add(({ snapshot, changed }) => inventory.follow(snapshot, changed));

  const snapshot = () => resources.state.snapshot;
  const definitions = new ClusterDefinitions({
    node: new Definitions(options.cniConfDirectory, log, { later: setImmediate }),
    resources,
  });
  const identifier = openClusterIdentifier({ api, resources });
  const detection = openDetection(
    { registry, pools: () => snapshot().pools, nowMs, log, metrics: options.metrics, audit },
    options.links,
  );
  stack.defer(() => detection.prober.close());
  const attaching = new AttachingNics(nowMs);
  const unguarded = options.nics ?? KERNEL_NICS;
  const nics = attaching.guard(unguarded);
  const isEnabled = (): boolean => snapshot().vendorConf.enableFencing;
  const fences = new LastingFences({ nics: unguarded, registry, isEnabled, nowMs, log });
  stack.defer(() => fences.close());
  const knownNetns = async (): Promise<readonly string[]> => {
    const known = new Set<string>();
    for await (const { netns = "" } of listRows(registry)) if (netns !== "") known.add(netns);
    return [...known];
  };
  for await (const row of listRows(registry)) if (row.state === "Cooling") fences.released(row);
  const fencing: FenceDeps = {
    node,
    nics,
    log,
    emit: (event) => events.emit(event),
    knownNetns,
    isEnabled,
    remember: (row) => fences.fenced(row),
    detach: async (row) => later.detach?.(row),
  };
  const collector = new Collector(
    {
      api,
      node,
      registry,
      nics,
      isAttaching: (nic) => attaching.has(nic),
      knownNetns,
      log,
      audit,
      pods: { isSynced: () => resources.arePodsSynced, find: (key) => snapshot().pods.get(key) },
      fence: (row) => fenceOrphan(fencing, row),
    },
    {
      settings: () => ({ ...snapshot().vendorConf.garbageCollection, cooldowns: inventory.cooldowns }),
      nowMs,
      random,
    },
  );
  stack.defer(() => collector.close());
  const lease = { namespace: options.configNamespace, name: options.controllerLease ?? CONTROLLER_LEASE };
  const allocations = new OwnAllocations(
    {
      ...{ api, node, registry, lost, log, collector, machine },
      relists: () => resources.relists,
      isOfPast: () => later.epoch?.isOfPast === true,
      look: async () => later.epoch?.look(),
      isTold: openNoticeTerm(api, lease),
    },
    {
      graceMs: () => snapshot().vendorConf.garbageCollection.graceMs,
      nodeLostMs: () => snapshot().vendorConf.garbageCollection.nodeLostMs,
      nowMs,
      random,
    },
  );
  later.allocations = allocations;
  const closing = new AbortController();
  const { watches } = resources;
  const epoch = new RegistryEpoch({
    ...{ known: knownEpoch, random, log },
    watch: watches.epoch,
    port: new KubernetesEpoch({
      ...{ api, node },
      configNamespace: options.configNamespace,
      newEpoch: options.newUuid ?? randomUUID,
    }),
    rows: new OwnEpochRows({
      ...{ api, node, registry, allocations, nics, log },
      machine: () => machine.current,
      known: knownEpoch,
      signal: closing.signal,
    }),
    onSettled: () => allocations.hasten("all"),
  });
  poolCache.followRegistry(() => ({ epoch: epoch.inForce, sinceMs: resources.heardSinceMs }));
  later.epoch = epoch;
  followEpoch(watches, (record) => {
    epoch.follow(record);
    // Blocks may count as confirmed now.
    resources.notify();
  });
  followDefinitions(watches, (uids) => epoch.followDefinition(uids));
  const self = { name: node, labels: { "kubernetes.io/hostname": node } };
  const readNode = () => machine.nodeRead(resources.node, (name) => takeJournal(name, { registry, allocations, log }));
  watches.node.subscribe((change) => {
    // The first list ends after its changes.
    if (machine.isIdentified) void readNode();
    allocations.nodeChanged(change);
    const now = valueAfter(change);
    self.labels = { "kubernetes.io/hostname": node, ...now?.labels };
    epoch.followMark(now && (now.annotations[EPOCH_ANNOTATION] ?? ""));
  });
  stack.defer(() => allocations.close());
  stack.defer(() => epoch.close());

  const known = watchKnown(waitForAll({ resources, machine, allocations }, closing.signal));
  const compared = (): void => epoch.compared();
  known.done.then(compared, () => {});
  const base: AddDeps = {
    identifier,
    networks: definitions,
    node: self,
    inventory,
    detection,
    clock: { nowMs, sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }) },
    log,
    attaching,
    fences,
  };
  const cluster = new KubernetesIpam(
    { api, resources, registry, collector, identifier, events, lost, epoch },
    (addresses) =>
      new Prefetcher(
        { ...base, cluster: addresses, identityOf: identifier.ofPod },
        {
          ready: known.done,
          nics: (pod) => definitions.nicsOf(identityOfPod(pod, snapshot().vendorConf).subject).map(announce),
        },
      ),
  );
  const prefetcher = cluster.prefetched;
  stack.defer(() => prefetcher.close());
  stack.defer(() => closing.abort(new Error("The agent stops")));
  watches.pods.subscribe((change) => {
    followPod(change, prefetcher, collector);
    followOwner(change, registry, log);
  });
  followWanted(watches, (pool) => {
    const failure = "Publishing the cooling addresses of a pool failed";
    registry.publishCooling(pool).catch((error) => log.debug({ err: error, pool }, failure));
  });
  resources.start();
  resources.nodeRead(closing.signal).then(
    () => readNode(),
    // The agent stops.
    () => {},
  );
  const ipam = { ...base, cluster };
  return {
    ...{ resources, registry, definitions, ipam, prefetcher, collector, allocations, fences, machine, known, epoch },
    ...{ later, events },
  };
}

/** The journal may have come from another machine with its disk: its rows say nothing of this one's pods. */
async function takeJournal(
  machine: string,
  { registry, allocations, log }: Pick<Parts, "registry" | "allocations"> & { readonly log: Log },
): Promise<void> {
  const forgotten = await registry.noteMachine(machine);
  if (forgotten === 0) return;
  log.warn({ machine, forgotten }, "The journal was another machine's; what that has left in it is forgotten");
  allocations.hasten("all");
}

function watchKnown(reading: Promise<void>): Known {
  const known: Known = {
    done: reading.then(() => {
      known.isKnown = true;
    }),
    isKnown: false,
  };
  known.done.catch(() => {});
  return known;
}

async function waitForAll(
  { resources, machine, allocations }: Pick<Parts, "resources" | "machine" | "allocations">,
  signal: AbortSignal,
): Promise<void> {
  await resources.known(signal);
  await machine.identified(signal);
  await allocations.reconciled(signal);
}

function followPod(change: Change<Pod>, prefetcher: Prefetcher, collector: Collector): void {
  if (change.kind === "set") {
    // A list after an outage has the next pod of the name, but does not report the deletion of the one before.
    if (change.before !== undefined && change.before.uid !== change.value.uid) collector.podDeleted(change.before);
    prefetcher.podChanged(change.value);
    collector.podChanged(change.value);
  } else {
    prefetcher.podGone(change.before);
    collector.podDeleted(change.before);
  }
}

/** A workload that is created again adopts the pods of the one before. */
function followOwner(change: Change<Pod>, registry: KubernetesRegistry, log: Log): void {
  if (change.kind === "gone" || change.value.uid === undefined) return;
  const { uid } = change.value;
  const [before, now] = [change.before, change.value].map((pod) => pod?.controller?.uid);
  if (now === undefined || now === before) return;
  registry.followOwner(uid).catch((error) => log.debug({ err: error, pod: uid }, "Following a pod's owner failed"));
}

interface RegistryParts {
  readonly resources: ClusterResources;
  readonly poolCache: PoolCache;
  readonly lost: LostAddresses;
  readonly machine: OwnMachine;
  readonly later: Later;
}

function openRegistry(options: ClusterBackendOptions, { resources, poolCache, lost, machine, later }: RegistryParts) {
  const { api, node, log, nowMs, random, stateDirectory: directory, bootId, lockWaitMs, onWaiting, onDeath } = options;
  const { openJournal, witness, onNotice, faultPlan, faultCounter } = options;
  const journal = {
    ...{ nowMs, directory, bootId, lockWaitMs, onWaiting, onDeath, witness, onNotice, faultPlan, faultCounter },
    onRowsLost: (text: string) => {
      onNotice?.(text);
      later.epoch?.rowsLost();
      later.allocations?.rowsLost();
    },
    cooldowns: cooldownsOf(resources.state.snapshot),
    onFreed: (space: string, ip: Ip) => {
      poolCache.unmark(space, ip);
      resources.notify();
    },
  };
  const live: LiveStatus = {
    node,
    machine: () => machine.current,
    identified: () => machine.identified(),
    isLivePod: async (namespace, name, uid) => {
      const pod = await readPod(api, { namespace, name });
      return pod !== undefined && isOwner(uid, podFacts(pod));
    },
    findOwnerOf: ({ namespace, pod: name, owner }) => {
      const { pods, vendorConf } = resources.state.snapshot;
      const pod = pods.get(`${namespace}/${name}`);
      const found = pod?.uid === owner ? findAddressOwner(pod, vendorConf) : undefined;
      return found?.kind === "workload" ? found.workload : undefined;
    },
    readOwner: (owner) => resources.known().then(() => isOwnerThere(api, owner, resources)),
    readNodeStatus: (other, machine) => readNodeStatus(api, other, machine),
    readHolderStatus: (row, holder) => readHolderStatus((of) => readPod(api, of), row, holder),
  };
  return openKubernetesRegistry({
    ...{ api, log, random, openJournal, journal, live, pools: poolCache },
    comparison: (signal) =>
      later.allocations?.isCompared === false ? later.allocations.reconciled(signal) : undefined,
    lost: {
      // Other nodes make room while the epoch is open, where their records are in the way.
      onLost: (row, by) => {
        if (later.epoch?.isOpen === false) lost.report(row, by);
      },
      isLost: (row) => lost.has(row),
      onOrphan: (name) => later.allocations?.hasten([name]),
    },
  });
}
