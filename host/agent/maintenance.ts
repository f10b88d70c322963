/**
 * What has to happen without anybody asking: cooled addresses become free, addresses of NICs that never came go back,
 * quarantined addresses are asked for again, spooled DELs are carried out.
 * Effects: timers; those of the registry, of detection and of the spool.
 */

import type { Log } from "../lib/log.ts";
import type { Registry } from "../registry/registry.ts";
import { UNATTACHED_MS } from "./prefetch/prefetcher.ts";
import { RECHECK_MS } from "./resources.ts";
import type { Spool } from "./server/spool.ts";

/** How often what has cooled is freed: milliseconds. @limit */
export const EXPIRE_INTERVAL_MS = 1_000;

interface Maintenance {
  close(): void;
}

interface MaintenanceOptions {
  readonly registry: Registry;
  readonly spool: Pick<Spool, "drain">;
  /** Asks for what is in quarantine and due. */
  readonly probeQuarantined: () => Promise<void>;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** One at a time: while the work is under way, calls for it do nothing. */
function once(work: () => Promise<void>): () => Promise<void> {
  let underWay = false;
  return async () => {
    if (underWay) return;
    underWay = true;
    try {
      await work();
    } finally {
      underWay = false;
    }
  };
}

export function startMaintenance({ registry, spool, probeQuarantined, nowMs, log }: MaintenanceOptions): Maintenance {
  const every = (intervalMs: number, what: string, work: () => Promise<unknown>): NodeJS.Timeout => {
    let said = "";
    // Trouble lasts: it is told once, not every second.
    const tell = (error: unknown): void => {
      if (String(error) !== said) log.warn({ err: error }, `${what} failed; it is tried again`);
      said = String(error);
    };
    const done = (): void => {
      said = "";
    };
    return setInterval(() => void work().then(done, tell), intervalMs).unref();
  };
  const timers = [
    every(EXPIRE_INTERVAL_MS, "Freeing what has cooled", () => registry.expire()),
    every(EXPIRE_INTERVAL_MS, "Freeing what was never attached", () =>
      registry.releaseUnattached(nowMs() - UNATTACHED_MS),
    ),
    every(EXPIRE_INTERVAL_MS, "Asking for what is in quarantine", once(probeQuarantined)),
    every(RECHECK_MS, "Draining the spool", () => spool.drain()),
  ];
  return { close: () => timers.forEach(clearInterval) };
}
