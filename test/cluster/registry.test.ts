/**
 * The suites of every registry, on the cluster's: a journal and a real API server. The one difference to the embedded
 * registry is that the API server is updated after the answer; so each answer is followed by a wait for that.
 */
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import type { Registry } from "../../host/registry/registry.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import type { RegistryNode } from "../lab/cluster/registry-node.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { describeQuarantine } from "../unit/registry/registry-quarantine-suite.ts";
import { describeRegistry, type SuiteWorld } from "../unit/registry/registry-suite.ts";
import { describeTakingBack } from "../unit/registry/registry-taking-back-suite.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

/** The registry, whose answers come when the API server has been told. */
function flushed({ registry }: RegistryNode): Registry {
  return new Proxy<Registry>(registry, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        const answer: unknown = found.apply(target, args);
        if (!(answer instanceof Promise)) return answer;
        return answer.finally(() => registry.idle());
      };
    },
  });
}

async function withNode(poolSize: number, test: (world: SuiteWorld) => Promise<void>): Promise<void> {
  const node = await world.openRegistry({ poolSize });
  const advance = (milliseconds: number): void => {
    node.clockMs += milliseconds;
  };
  await test({ registry: flushed(node), freed: node.freed, advance, nowMs: () => node.clockMs });
}

describe.each([
  ["large", 1_000],
  ["small", 256],
])("pools that are %s", (size, poolSize) => {
  for (const describeSuite of [describeRegistry, describeTakingBack, describeQuarantine]) {
    describeSuite(`Kubernetes registry, ${size} pool`, (test) => withNode(poolSize, test));
  }
});
