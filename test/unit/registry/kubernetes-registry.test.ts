/**
 * The suites of every registry on the cluster's, with an API server in memory: what test/cluster/registry.test.ts does with a real one, in a second. So the fake is held to
 * what the walks of test/property/registry rely on.
 */
import { describe } from "vitest";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { openRegistryOn } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Registry } from "../../../host/registry/registry.ts";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { openDisk, openMemoryJournal } from "../../fakes/memory-journal.ts";
import { describeQuarantine } from "./registry-quarantine-suite.ts";
import { COOLDOWN_MS, describeRegistry, type SuiteWorld } from "./registry-suite.ts";
import { describeTakingBack } from "./registry-taking-back-suite.ts";

async function withRegistry(poolSize: number, test: (world: SuiteWorld) => Promise<void>): Promise<void> {
  let clockMs = 1_000_000;
  const nowMs = (): number => clockMs;
  const freed: string[] = [];
  const cooldowns = { defaultMs: COOLDOWN_MS, byPool: new Map() };
  const onFreed = (_space: string, ip: Parameters<typeof formatIp>[0]) => freed.push(formatIp(ip));
  const journal = openMemoryJournal(openDisk(), { bootId: "boot-1", nowMs, cooldowns, onFreed });
  const registry = await openRegistryOn(journal, {
    ...{
      directory: "",
      bootId: "boot-1",
      lockWaitMs: 0,
      faultCounter: createFaultCounter(),
      cooldowns,
      nowMs,
      onFreed,
    },
    ...{ api: new MemoryApiServer().client(), node: "n1", random: () => 0.5, poolSize: () => poolSize },
    ...{ isLivePod: async () => false, isPodGone: async () => true, onLost: () => {}, log: openLog("berth", "silent") },
    onDeath: (error) => {
      throw error;
    },
  });
  const advance = (milliseconds: number): void => {
    clockMs += milliseconds;
  };
  await test({ registry: afterIdle(registry, () => registry.idle()), freed, advance, nowMs });
  await registry.close();
}

/** The registry, whose answers come when the API server has been told. */
function afterIdle(registry: Registry, idle: () => Promise<void>): Registry {
  return new Proxy<Registry>(registry, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        const answer: unknown = found.apply(target, args);
        return answer instanceof Promise ? answer.finally(idle) : answer;
      };
    },
  });
}

describe.each([
  ["large", 1_000],
  ["small", 256],
])("pools that are %s", (size, poolSize) => {
  for (const describeSuite of [describeRegistry, describeTakingBack, describeQuarantine]) {
    describeSuite(`Kubernetes registry in memory, ${size} pool`, (test) => withRegistry(poolSize, test));
  }
});
