/**
 * Keeps what the agent says of its registry true: STATUS and health tell within a second or two that nothing can be recorded, and that it can again.
 * Effects: a timer; a small write to the registry now and then.
 */
import type { Log } from "../lib/log.ts";
import type { Registry } from "../registry/registry.ts";

/** How often the agent looks whether its registry can record what it could not: milliseconds. @limit */
export const REGISTRY_LOOK_MS = 1_000;

interface RegistryWatch {
  close(): void;
}

export function watchRegistry(registry: Pick<Registry, "trouble" | "probe">, log: Log): RegistryWatch {
  let told: string | undefined;
  const tell = (): void => {
    const { trouble } = registry;
    if (trouble === told) return;
    if (trouble === undefined) log.info("The registry records again");
    else log.error({ trouble }, "The registry records nothing new: ADDs are refused");
    told = trouble;
  };
  tell();
  const timer = setInterval(() => void registry.probe().then(tell), REGISTRY_LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}
