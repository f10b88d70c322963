/**
 * The suites of every registry on the cluster's, with an API server in memory: the same as
 * test/cluster/registry.test.ts with a real one, in a second.
 */
import { describe } from "vitest";
import { afterIdle, openClusterNode } from "../../world/node.ts";
import { describeQuarantine } from "./registry-quarantine-suite.ts";
import { describeRegistry, type SuiteWorld } from "./registry-suite.ts";
import { describeTakingBack } from "./registry-taking-back-suite.ts";

async function withRegistry(poolSize: number, test: (world: SuiteWorld) => Promise<void>): Promise<void> {
  const { registry, freed, clock } = await openClusterNode({ poolSize });
  await test({ registry: afterIdle(registry), freed, advance: clock.jump, nowMs: clock.nowMs });
  await registry.close();
}

describe.each([
  ["large", 1_000],
  ["small", 256],
])("pools that are %s", (size, poolSize) => {
  for (const describeSuite of [describeRegistry, describeTakingBack, describeQuarantine]) {
    describeSuite(`Kubernetes registry in memory, ${size} pool`, (test) => withRegistry(poolSize, test));
  }
});
