/**
 * The cluster mode: resources from the API server's watches, addresses as objects there and in this node's journal.
 * Called by agent.ts, and by tests that run many nodes in one process: everything of an agent but socket, spool and plugins.
 * Effects: those of its parts.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { PoolSpace } from "../../core/pool-space.ts";
import { isOwner, podFacts } from "../../ipam/leaks.ts";
import { PoolCache } from "../../ipam/pool-cache.ts";
import { mayBeShared } from "../../ipam/retention.ts";
import { type Events, openEvents } from "../../kubernetes/events.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import type { Backend, BackendOptions } from "../backend.ts";
import { Definitions } from "../definitions.ts";
import { openDetection } from "../detection/open-detection.ts";
import { openLiveObjects } from "../explain/live-objects.ts";
import { type FenceDeps, fenceOrphan } from "../fencing/fence-orphan.ts";
import { Collector, SWEEP_PAGE } from "../gc/collector.ts";
import { readNodeStatus } from "../gc/live-status.ts";
import { LostAddresses } from "../gc/lost-addresses.ts";
import { OwnAllocations } from "../gc/own-allocations.ts";
import type { AddTools } from "../ipam/add.ts";
import { Catalogue, cooldownsOf } from "../ipam/catalogue.ts";
import { Prefetcher } from "../prefetch/prefetcher.ts";
import { evictPredecessor, readHolderStatus } from "./address-owners.ts";
import { type ClusterIdentifier, identityOfPod, openClusterIdentifier, readPod } from "./identity.ts";
import { ClusterDefinitions } from "./networks.ts";
import { describeNics } from "./nics.ts";
import { refusalEvent } from "./refusal-event.ts";
import { ClusterResources } from "./resources.ts";
import { readSubnetState } from "./subnet-state.ts";

export interface ClusterBackendOptions extends BackendOptions {
  /** Closed by whoever opened it. */
  readonly api: KubeApi;
  /** Of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  /** From 0 to 1, for pauses that are not to meet. */
  readonly random: () => number;
}

/** `addAddresses(node.tools, request, signal)` is the ADD, `node.tools.registry.release(attachment)` the DEL. */
export interface ClusterBackend extends Backend {
  readonly mode: "cluster";
  readonly registry: KubernetesRegistry;
  readonly collector: Collector;
  readonly allocations: OwnAllocations;
  readonly prefetcher: Prefetcher;
}

/** Resolves when the journal is open: a DEL works from then on, an ADD waits for {@link Backend.synced}. */
export async function openClusterBackend(options: ClusterBackendOptions): Promise<ClusterBackend> {
  const opening = new AsyncDisposableStack();
  try {
    const parts = await openParts(options, opening);
    const stack = opening.move();
    return clusterNode(options, parts, () => stack.disposeAsync());
  } catch (error) {
    await opening.disposeAsync();
    throw error;
  }
}

interface Parts {
  readonly resources: ClusterResources;
  readonly registry: KubernetesRegistry;
  readonly catalogue: Catalogue;
  readonly definitions: ClusterDefinitions;
  readonly events: Events;
  readonly lost: LostAddresses;
  readonly tools: ClusterBackend["tools"];
  readonly collector: Collector;
  readonly allocations: OwnAllocations;
  readonly prefetcher: Prefetcher;
  /** Whether resources and allocations were known once. */
  readonly isKnown: () => boolean;
  readonly fenceWith: (detach: Listeners["detach"]) => void;
}

/** What the watches tell before what they tell of is there. */
interface Listeners {
  onPod: (change: Change<Pod>) => void;
  isPodGone: (row: Allocation) => Promise<boolean>;
  endOrphan: (row: Allocation) => Promise<Allocation | undefined>;
  /** What the coordinator made for an attachment: it is opened after the cluster. */
  detach: (row: Allocation) => Promise<void>;
}

async function openParts(options: ClusterBackendOptions, stack: AsyncDisposableStack): Promise<Parts> {
  const { api, node, log, nowMs, random } = options;
  const listeners: Listeners = {
    onPod: () => {},
    isPodGone: async () => false,
    endOrphan: async () => undefined,
    detach: async () => {},
  };
  let catalogue: Catalogue | undefined;
  let registry: KubernetesRegistry | undefined;
  const resources = new ClusterResources({
    ...{ api, node, log, random, configNamespace: options.configNamespace },
    onPod: (change) => listeners.onPod(change),
    onWanted: (pool) =>
      void registry?.publishCooling(pool).catch((error) => log.debug({ err: error, pool }, "What cools is not shown")),
    onChange: (snapshot) => catalogue?.follow(snapshot),
  });
  stack.defer(() => resources.close());
  const events = openEvents({ api, component: "berth-agent", node, log, nowMs });
  stack.defer(() => events.close());
  const lost = new LostAddresses({ events, log });
  const poolCache = new PoolCache(PoolSpace.open(options.coreWasm));
  registry = await openRegistry(options, { resources, poolCache, lost, isPodGone: (row) => listeners.isPodGone(row) });
  stack.defer(() => registry?.close());
  catalogue = new Catalogue(poolCache, registry, resources.state.snapshot);

  const definitions = new ClusterDefinitions({
    node: new Definitions(options.cniConfDirectory, log, setImmediate),
    attachments: () => resources.attachments,
    snapshot: () => resources.state.snapshot,
  });
  const snapshot = () => resources.state.snapshot;
  const identifier = openClusterIdentifier({ api, snapshot });
  const isPodGone: Listeners["isPodGone"] = (row) => listeners.isPodGone(row);
  const endOrphan: Listeners["endOrphan"] = (row) => listeners.endOrphan(row);
  const common = { resources, registry, catalogue, definitions, events, lost, identifier, isPodGone, endOrphan };
  const base = openTools(options, common);
  stack.defer(() => base.prober.close());
  const fencing: FenceDeps = {
    ...{ node, log, emit: (event) => events.emit(event) },
    knownNetns: async () => {
      const known = new Set<string>();
      for await (const { netns = "" } of listRows(registry, SWEEP_PAGE)) if (netns !== "") known.add(netns);
      return [...known];
    },
    isEnabled: () => snapshot().vendorConf.enableFencing,
    detach: (row) => listeners.detach(row),
  };
  const collector = new Collector(
    {
      api,
      node,
      registry,
      log,
      pods: { isSynced: () => resources.arePodsSynced, find: (key) => snapshot().pods.get(key) },
      fence: (row) => fenceOrphan(fencing, row),
    },
    {
      settings: () => ({ ...snapshot().vendorConf.garbageCollection, cooldowns: cooldownsOf(snapshot()) }),
      nowMs,
      random,
    },
  );
  stack.defer(() => collector.close());
  listeners.isPodGone = (row) => collector.isPodGone(row);
  listeners.endOrphan = (row) => collector.endOrphan(row);
  const allocations = new OwnAllocations(
    { api, node, registry, lost, log, collector },
    { graceMs: () => snapshot().vendorConf.garbageCollection.graceMs, nowMs, random },
  );
  stack.defer(() => allocations.close());

  const closing = new AbortController();
  let isKnown = false;
  const known = waitForAll(resources, allocations, closing.signal).then(() => {
    isKnown = true;
  });
  known.catch(() => {});
  const prefetcher = openPrefetcher(options, base, { resources, definitions, identifier, known });
  stack.defer(() => prefetcher.close());
  stack.defer(() => closing.abort(new Error("The agent stops")));
  listeners.onPod = (change) => tellOfPod(change, prefetcher, collector);
  resources.start();
  return {
    ...{ resources, registry, catalogue, definitions, events, lost, collector, allocations, prefetcher },
    tools: { ...base, prefetched: prefetcher },
    isKnown: () => isKnown,
    fenceWith: (detach) => {
      listeners.detach = detach;
    },
  };
}

async function waitForAll(
  resources: ClusterResources,
  allocations: OwnAllocations,
  signal: AbortSignal,
): Promise<void> {
  await resources.known(signal);
  await allocations.reconciled(signal);
}

function tellOfPod(change: Change<Pod>, prefetcher: Prefetcher, collector: Collector): void {
  if (change.kind === "set") {
    // A list after an outage has the next pod of the name, and no word of the one before.
    if (change.before !== undefined && change.before.uid !== change.value.uid) collector.podDeleted(change.before);
    prefetcher.podChanged(change.value);
    collector.podChanged(change.value);
  } else {
    prefetcher.podGone(change.before);
    collector.podDeleted(change.before);
  }
}

interface RegistryParts {
  readonly resources: ClusterResources;
  readonly poolCache: PoolCache;
  readonly lost: LostAddresses;
  readonly isPodGone: Listeners["isPodGone"];
}

function openRegistry(options: ClusterBackendOptions, { resources, poolCache, lost, isPodGone }: RegistryParts) {
  const { api, node, log, nowMs, random, stateDirectory: directory, bootId, lockWaitMs, onWaiting, onDeath } = options;
  return openKubernetesRegistry({
    ...{ api, node, log, nowMs, random, directory, bootId, lockWaitMs, onWaiting, onDeath, isPodGone },
    ...{ witness: options.witness, onNotice: options.onNotice },
    ...{ faultPlan: options.faultPlan, faultCounter: options.faultCounter },
    cooldowns: cooldownsOf(resources.state.snapshot),
    onFreed: (space, ip) => {
      poolCache.unmark(space, ip);
      resources.freed();
    },
    poolSize: (pool) => {
      const total = poolCache.counts(pool)?.total;
      return total === undefined ? undefined : Number(total);
    },
    usedShare: (pool) => {
      const { total = 0n, free = 0n } = poolCache.counts(pool) ?? {};
      return total === 0n ? undefined : 1 - Number(free) / Number(total);
    },
    isLivePod: async (namespace, name, uid) => {
      const pod = await readPod(api, { namespace, name });
      return pod !== undefined && isOwner(uid, podFacts(pod));
    },
    readNodeStatus: (other) => readNodeStatus(api, other),
    readHolderStatus: (row, holder) => readHolderStatus((of) => readPod(api, of), row, holder),
    onLost: (row, by) => lost.report(row, by),
    isLost: (row) => lost.has(row),
  });
}

interface ToolParts
  extends Pick<Parts, "resources" | "registry" | "catalogue" | "definitions" | "events" | "lost">,
    Pick<Listeners, "isPodGone" | "endOrphan"> {
  readonly identifier: ClusterIdentifier;
}

function openTools(
  { api, node, log, nowMs }: ClusterBackendOptions,
  { resources, registry, catalogue, definitions, events, lost, identifier, isPodGone, endOrphan }: ToolParts,
): ClusterBackend["tools"] {
  const snapshot = () => resources.state.snapshot;
  const detection = openDetection({ registry, pools: () => snapshot().pools, nowMs, log });
  const { networkNames, settingsFor, isCoordinated } = definitions;
  return {
    ...detection,
    ...{ catalogue, registry, nowMs, log, networkNames, settingsFor, isCoordinated },
    hasNeighbours: true,
    releaseRetained: (kept) => registry.releaseRetained(kept),
    awaitChange: (holder, withinMs, signal) => registry.awaitChange(holder, withinMs, signal),
    displace: (former, claimant) => evictPredecessor({ registry, isPodGone, endOrphan }, former, claimant),
    isShared: async (row, signal) => mayBeShared(row.workload) && (await registry.isShared(row, signal)),
    node: {
      name: node,
      get labels() {
        return { "kubernetes.io/hostname": node, ...resources.nodeLabels };
      },
    },
    identifier,
    poolChanges: {
      get count() {
        return resources.changes;
      },
      changed: (signal, wait) => resources.changed(signal, wait),
    },
    supply: {
      lookAtSubnet: ({ name, namespace }, signal) => {
        const labels = snapshot().namespaces.get(namespace)?.labels ?? {};
        return readSubnetState(api, { name, namespace, labels }, signal);
      },
      forget: (application) => identifier.forget(application),
    },
    findLoss: (attachment) => lost.find(attachment),
    reportRefusal: (pod, error) => events.emit(refusalEvent(pod, error)),
    sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }),
  };
}

interface PrefetchParts {
  readonly resources: ClusterResources;
  readonly definitions: ClusterDefinitions;
  readonly identifier: ClusterIdentifier;
  readonly known: Promise<void>;
}

function openPrefetcher(
  { node, log }: ClusterBackendOptions,
  base: AddTools,
  { resources, definitions, identifier, known }: PrefetchParts,
): Prefetcher {
  const snapshot = () => resources.state.snapshot;
  const tools = { ...base, poolCache: base.catalogue.poolCache, identityOf: identifier.ofPod };
  return new Prefetcher({
    ...tools,
    nodeName: node,
    log,
    ready: known,
    nics: (pod) => describeNics(identityOfPod(pod, snapshot().vendorConf).subject, snapshot(), definitions),
  });
}

function clusterNode(options: ClusterBackendOptions, parts: Parts, close: () => Promise<void>): ClusterBackend {
  const { resources, registry, definitions, allocations, prefetcher, collector, tools, isKnown, fenceWith } = parts;
  return {
    mode: "cluster",
    ...{ resources, tools, registry, allocations, prefetcher, collector, fenceWith },
    synced: async (signal) => {
      if (!isKnown()) await resources.within(signal, (bounded) => waitForAll(resources, allocations, bounded));
    },
    isReady: () => isKnown() && resources.state.complete,
    live: openLiveObjects(options.api),
    problems: () => [
      ...(isKnown() ? [] : [`Not read completely yet: ${resources.unread.join(", ") || "allocations of this node"}`]),
      ...[...allocations.problems, ...definitions.problems, ...tools.prober.problems],
    ],
    stats: () => ({
      node: options.node,
      caches: { ...resources.stats, allocations: allocations.stats },
      prefetch: prefetcher.stats(),
      registry: registry.size,
      collected: collector.collected,
    }),
    close,
  };
}
