/**
 * The suites of every registry on the cluster's, with an API server in memory: the same as
 * test/cluster/registry.test.ts with a real one, in a second.
 */
import { describe } from "vitest";
import type { Registry } from "../../../host/registry/registry.ts";
import { openClusterNode } from "../../world/node.ts";
import { describeQuarantine } from "./registry-quarantine-suite.ts";
import { describeRegistry, type SuiteWorld } from "./registry-suite.ts";
import { describeTakingBack } from "./registry-taking-back-suite.ts";

async function withRegistry(poolSize: number, test: (world: SuiteWorld) => Promise<void>): Promise<void> {
  const { registry, freed, clock } = await openClusterNode({ poolSize });
  await test({ registry: afterIdle(registry, () => registry.idle()), freed, advance: clock.jump, nowMs: clock.nowMs });
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
