/**
 * Pools, pods, namespaces and settings as the agent knows them. A port: embedded/manifest-directory.ts reads files,
 * cluster/resources.ts watches the API server.
 */
import type { Snapshot } from "../../resources/snapshot.ts";

/** Changes of resources within this time are applied together: milliseconds. */
export const RELOAD_DELAY_MS = 20;

/** A snapshot, and how far it can be trusted. */
export interface ResourcesState {
  readonly snapshot: Snapshot;
  /** Problems of single sources, a file or a watch; those between resources are in the snapshot. */
  readonly problems: readonly string[];
  /** False while a source that was never valid may reserve addresses that must not be handed out. */
  readonly complete: boolean;
}

export interface Resources {
  readonly state: ResourcesState;
  /** Applies pending changes at once instead of after the delay. */
  flush(): void;
  close(): Promise<void> | void;
}
