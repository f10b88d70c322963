/**
 * Periodic work of the agent: frees cooled addresses and addresses of NICs that were never attached, probes quarantined addresses, and replays spooled
 * DELs.
 */
import type { Log } from "../lib/log.ts";
import { PeriodicWorker } from "../lib/periodic.ts";
import type { Registry } from "../registry/registry.ts";
import { UNATTACHED_MS } from "./prefetch/prefetcher.ts";
import type { Spool } from "./server/spool.ts";

/** How often the agent drains the spool: milliseconds. */
export const SPOOL_INTERVAL_MS = 2_000;

/** How often the agent frees cooled addresses, and probes quarantined ones: milliseconds. */
export const EXPIRE_INTERVAL_MS = 1_000;

export interface Maintenance {
  /** Starts no more work; does not wait for work in progress. */
  close(): void;
}

interface MaintenanceDeps {
  readonly registry: Registry;
  readonly spool: Pick<Spool, "drain">;
  /** Probes the quarantined addresses that are due. */
  readonly probeQuarantined: () => Promise<void>;
  readonly nowMs: () => number;
  readonly log: Log;
}

export function startMaintenance({ registry, spool, probeQuarantined, nowMs, log }: MaintenanceDeps): Maintenance {
  const every = (intervalMs: number, failure: string, work: () => Promise<unknown>): PeriodicWorker =>
    new PeriodicWorker({
      failure,
      work: async () => {
        await work();
        return intervalMs;
      },
      firstMs: intervalMs,
      retryMs: () => intervalMs,
      log,
    });
  const workers = [
    every(EXPIRE_INTERVAL_MS, "Freeing cooled addresses failed", () => registry.expire()),
    every(EXPIRE_INTERVAL_MS, "Freeing addresses that were never attached failed", () =>
      registry.releaseUnattached(nowMs() - UNATTACHED_MS),
    ),
    every(EXPIRE_INTERVAL_MS, "Probing quarantined addresses failed", probeQuarantined),
    every(SPOOL_INTERVAL_MS, "Draining the spool failed", () => spool.drain()),
  ];
  return {
    close: () => {
      for (const worker of workers) void worker.close();
    },
  };
}
