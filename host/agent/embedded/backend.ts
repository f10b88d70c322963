/**
 * The embedded mode: resources from a directory, addresses in one SQLite file.
 * Effects: those of its parts.
 */
import { setTimeout } from "node:timers/promises";
import { PoolSpace } from "../../core/pool-space.ts";
import { PoolCache } from "../../ipam/pool-cache.ts";
import type { PoolsByName } from "../../ipam/selection.ts";
import { openSqliteRegistry } from "../../registry/sqlite/registry.ts";
import type { Backend, BackendOptions } from "../backend.ts";
import { Definitions, effectiveSettings } from "../definitions.ts";
import { openDetection } from "../detection/open-detection.ts";
import { Catalogue, cooldownsOf } from "../ipam/catalogue.ts";
import { openManifestIdentifier } from "../ipam/pod-identity.ts";
import { ManifestDirectory } from "./manifest-directory.ts";
import { recover } from "./recovery/recover.ts";

export interface EmbeddedBackendOptions extends BackendOptions {
  readonly configDirectory: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** Rejects when the state directory cannot be had; then nothing is left open. */
export async function openEmbeddedBackend(options: EmbeddedBackendOptions): Promise<Backend> {
  const { log, nowMs, node } = options;
  let catalogue: Catalogue | undefined;
  const directory = new ManifestDirectory(options.configDirectory, log, ({ snapshot }) => catalogue?.follow(snapshot));
  try {
    const poolCache = new PoolCache(PoolSpace.open(options.coreWasm));
    const registry = await openSqliteRegistry({
      ...{ bootId: options.bootId, nowMs, lockWaitMs: options.lockWaitMs },
      ...{ onWaiting: options.onWaiting, onNotice: options.onNotice, onDeath: options.onDeath },
      witness: options.witness,
      directory: options.stateDirectory,
      cooldowns: cooldownsOf(directory.state.snapshot),
      onFreed: (space, ip) => poolCache.unmark(space, ip),
      ...{ faultPlan: options.faultPlan, faultCounter: options.faultCounter },
    });
    const known = new Catalogue(poolCache, registry, directory.state.snapshot);
    catalogue = known;
    known.follow(directory.state.snapshot);
    await known.loaded();
    const definitions = new Definitions(options.cniConfDirectory, log, setImmediate);
    const pools = (): PoolsByName => directory.state.snapshot.pools;
    const detection = openDetection({ registry, pools, nowMs, log });
    return {
      mode: "embedded",
      resources: directory,
      tools: {
        ...detection,
        ...{ catalogue: known, registry, nowMs, log },
        node: { name: node, labels: { "kubernetes.io/hostname": node, ...options.nodeLabels } },
        identifier: openManifestIdentifier(() => directory.state.snapshot),
        networkNames: () => undefined,
        settingsFor: ({ network }) => effectiveSettings(definitions.settingsOf(network), directory.state.snapshot),
        isCoordinated: ({ network }) => definitions.settingsOf(network) !== undefined,
        sleep: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }),
      },
      synced: async () => {},
      isReady: () => directory.state.complete,
      problems: () => [...definitions.problems, ...detection.prober.problems],
      recover: (asked) => recover({ registry, catalogue: known, log }, asked),
      stats: () => ({}),
      close: async () => {
        await detection.prober.close();
        await registry.close();
        directory.close();
      },
    };
  } catch (error) {
    directory.close();
    throw error;
  }
}
