/**
 * What has to happen without anybody asking: cooled addresses become free, addresses of NICs that never came go back,
 * spooled DELs are carried out.
 * Called by agent.ts.
 * Effects: timers; those of the registry and the spool.
 */
import { UNATTACHED_MS } from "../ipam/limits.ts";
import type { Log } from "../lib/log.ts";
import type { Registry } from "../registry/registry.ts";
import { EXPIRE_INTERVAL_MS, RECHECK_MS } from "./limits.ts";
import type { Spool } from "./spool.ts";

export interface Janitor {
  close(): void;
}

export function startJanitor(registry: Registry, spool: Spool, nowMs: () => number, log: Log): Janitor {
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
    every(RECHECK_MS, "Draining the spool", () => spool.drain()),
  ];
  return { close: () => timers.forEach(clearInterval) };
}
