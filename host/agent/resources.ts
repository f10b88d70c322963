/**
 * What the agent knows of pools, pods, namespaces and settings, and how far it can be trusted. A port: embedded/manifest-directory.ts reads
 * files, cluster/resources.ts watches the API server.
 */
import type { Snapshot } from "../resources/snapshot.ts";

/** Delay after a change, so that further changes are read together: milliseconds. @limit */
export const RELOAD_DELAY_MS = 20;

/** Interval at which the agent checks whether the watched directory was replaced, and drains the spool: milliseconds. @limit */
export const RECHECK_MS = 2_000;

/** A snapshot, and how far it can be trusted. */
export interface ResourcesState {
  readonly snapshot: Snapshot;
  /** Of single sources: a file, a watch; those between resources are in the snapshot. */
  readonly problems: readonly string[];
  /** False while something that was never read rightly may hold what others must not be given. */
  readonly complete: boolean;
}

export interface Resources {
  readonly state: ResourcesState;
  /** Reads at once what is known to have changed, instead of a moment later. */
  flush(): void;
  close(): Promise<void> | void;
}
