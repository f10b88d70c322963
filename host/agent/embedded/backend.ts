/** The embedded mode: resources from a directory, addresses in one SQLite file. */
import { setTimeout as sleep } from "node:timers/promises";
import { PoolSpace } from "../../core/pool-space.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import type { PodSubject } from "../../ipam/model.ts";
import { PoolCache } from "../../ipam/pool-cache.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import type { AgentMetrics } from "../../metrics/agent-metrics.ts";
import type { RecoverableRegistry, RegistryHealth } from "../../registry/registry.ts";
import { openSqliteRegistry } from "../../registry/sqlite/sqlite-registry.ts";
import { type Backend, type BackendOptions, problemsOf, type RecoverOptions } from "../backend.ts";
import { openDetection } from "../detection/open-detection.ts";
import type { AddDeps } from "../ipam/add.ts";
import { openManifestIdentifier } from "../ipam/pod-identity.ts";
import { cooldownsOf, PoolInventory } from "../ipam/pool-inventory.ts";
import { collectPoolUsage } from "../metrics/collect.ts";
import { Definitions, type NodeNetwork, ResolvedSettings } from "../request/definitions.ts";
import type { Driver } from "../request/driver.ts";
import type { NicNetwork } from "../request/nic-definition.ts";
import { ManifestDirectory } from "./manifest-directory.ts";
import { recover } from "./recovery/recover.ts";
import { RoutersInUse } from "./routers-in-use.ts";

/** Interval at which routers that pools hold back are compared with those of pods: milliseconds. */
const ROUTERS_LOOK_MS = 2_000;

interface EmbeddedBackendOptions extends BackendOptions {
  readonly configDirectory: string;
  readonly drivers: readonly Driver[];
  readonly nodeLabels: Readonly<Record<string, string>>;
}

class EmbeddedBackend implements Backend {
  readonly mode = "embedded";
  readonly resources: ManifestDirectory;
  readonly health: RegistryHealth;
  readonly ipam: AddDeps;
  readonly #registry: RecoverableRegistry;
  readonly #definitions: Definitions;
  readonly #routers: PeriodicWorker;

  constructor(
    options: EmbeddedBackendOptions,
    resources: ManifestDirectory,
    inventory: PoolInventory,
    registry: RecoverableRegistry,
  ) {
    const { node, nodeLabels, nowMs, log, metrics, audit } = options;
    let next: Definitions | undefined;
    for (const { directory, files: form } of options.drivers.toReversed())
      next = new Definitions(directory, log, { later: setImmediate, form, next });
    const definitions = new Definitions(options.cniConfDirectory, log, { later: setImmediate, next });
    const settings = new ResolvedSettings();
    const snapshot = () => resources.state.snapshot;
    this.resources = resources;
    this.#registry = registry;
    this.health = registry;
    this.#definitions = definitions;
    this.#routers = new PeriodicWorker({
      failure: "Reading which routers pods have failed",
      work: () => releaseRouters(resources, registry),
      retryMs: () => ROUTERS_LOOK_MS,
      firstMs: ROUTERS_LOOK_MS,
      log,
    });
    this.ipam = {
      identifier: openManifestIdentifier(snapshot),
      networks: {
        definitionOf: ({ network }) => {
          const own = definitions.find(network)?.coordinator;
          return { networkNames: undefined, settings: settings.of(own, snapshot()), isCoordinated: own !== undefined };
        },
        nicsOf: (pod) => describeNodeNics(definitions.networks, pod, snapshot().firstNic),
        pluginsOf: (network) => definitions.find(network)?.plugins,
      },
      node: { name: node, labels: { "kubernetes.io/hostname": node, ...nodeLabels } },
      inventory,
      detection: openDetection({ registry, pools: () => snapshot().pools, nowMs, log, metrics, audit }),
      clock: { nowMs, sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }) },
      log,
    };
  }

  /** The manifests were read before the agent serves. */
  async synced(): Promise<void> {}

  get ready(): boolean {
    return this.resources.state.complete;
  }

  get problems(): readonly string[] {
    return problemsOf(this, [...this.#definitions.problems, ...this.ipam.detection.prober.problems]);
  }

  recover(options: RecoverOptions): Promise<readonly string[]> {
    const { inventory, log } = this.ipam;
    return recover({ registry: this.#registry, inventory, log }, options);
  }

  async collectMetrics(metrics: AgentMetrics): Promise<void> {
    await collectPoolUsage(this.ipam.inventory, metrics);
  }

  stats(): Readonly<Record<string, unknown>> {
    return {};
  }

  async close(): Promise<void> {
    await this.#routers.close();
    await this.ipam.detection.prober.close();
    await this.#registry.close();
    this.resources.close();
  }
}

/** The first NIC is of the node's first network; the pod's list of networks names the others. */
function describeNodeNics(
  networks: readonly NodeNetwork[],
  { annotations }: PodSubject,
  firstNic: string,
): NicNetwork[] {
  const wanted = [networks[0]?.name, ...(annotations.networks ?? []).map(({ name }) => name)];
  return announcedNics(annotations, firstNic).map((ifName, index) => {
    const found = networks.find(({ name }) => name === wanted[index]);
    return { ifName, network: found?.name ?? "", plugins: found?.plugins ?? [] };
  });
}

/** Releases former routers that pools no longer need. Returns the time until the next look: milliseconds. */
async function releaseRouters(directory: ManifestDirectory, registry: RecoverableRegistry): Promise<number> {
  const { state } = directory;
  if (state.snapshot.pools.values().some(({ spec }) => spec.formerRouters !== undefined)) {
    const inUse = await RoutersInUse.read(registry);
    // Rows may be older than an edit in between.
    if (directory.state === state) directory.holdRouters(inUse);
  }
  return ROUTERS_LOOK_MS;
}

/** Rejects when the state directory cannot be opened; then nothing is left open. */
export async function openEmbeddedBackend(options: EmbeddedBackendOptions): Promise<EmbeddedBackend> {
  const { log, nowMs, bootId, lockWaitMs, onWaiting, onNotice, onDeath, witness, faultPlan, faultCounter } = options;
  let inventory: PoolInventory | undefined;
  let directory: ManifestDirectory | undefined;
  let registry: RecoverableRegistry | undefined;
  try {
    directory = new ManifestDirectory(options.configDirectory, log, ({ snapshot }) => inventory?.follow(snapshot));
    const poolCache = new PoolCache(PoolSpace.open(options.coreWasm));
    registry = await openSqliteRegistry({
      ...{ bootId, nowMs, lockWaitMs, onWaiting, onNotice, onDeath, witness, faultPlan, faultCounter },
      cooldowns: cooldownsOf(directory.state.snapshot),
      directory: options.stateDirectory,
      onFreed: (space, ip) => poolCache.unmark(space, ip),
    });
    directory.holdRouters(await RoutersInUse.read(registry));
    inventory = new PoolInventory(poolCache, registry, directory.state.snapshot, { metrics: options.metrics });
    inventory.follow(directory.state.snapshot);
    await inventory.loaded();
    return new EmbeddedBackend(options, directory, inventory, registry);
  } catch (error) {
    directory?.close();
    await registry?.close();
    throw error;
  }
}
