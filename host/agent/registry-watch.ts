/**
 * Keeps `trouble` of the registry current: STATUS and health report within a second or two that nothing can be recorded, and that recording works
 * again.
 */
import type { Log } from "../lib/log.ts";
import type { Registry } from "../registry/registry.ts";

/** How often the agent checks whether its registry can record again: milliseconds. */
const REGISTRY_LOOK_MS = 1_000;

interface RegistryWatch {
  close(): void;
}

export function watchRegistry(registry: Pick<Registry, "trouble" | "probe">, log: Log): RegistryWatch {
  let reported: string | undefined;
  const report = (): void => {
    const { trouble } = registry;
    if (trouble === reported) return;
    if (trouble === undefined) log.info("The registry can record again");
    else log.error({ trouble }, "The registry cannot record; ADDs are refused");
    reported = trouble;
  };
  const look = (): void => void registry.probe().then(report);
  report();
  look();
  const timer = setInterval(look, REGISTRY_LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}
