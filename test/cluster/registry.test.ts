/**
 * The cluster's registry on a real API server: questions that only a server answers: races of nodes, its preconditions,
 * its lists of names, the rights of agents; and, in the long tests, the suites of every registry. The rules are in
 * test/unit/registry.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { POOLS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { describeQuarantine } from "../unit/registry/registry-quarantine-suite.ts";
import { describeRegistry, spanOfTen } from "../unit/registry/registry-suite.ts";
import { describeTakingBack } from "../unit/registry/registry-taking-back-suite.ts";
import { ofRun } from "../world/long-cases.ts";
import { afterIdle } from "../world/node.ts";
import { claim, proposal } from "../world/subjects.ts";
import { ip } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const NAME = "10.0.0.1";

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

for (const describeSuite of ofRun([describeRegistry, describeTakingBack, describeQuarantine], () => false))
  describeSuite("Kubernetes registry", async (test) => {
    const node = await world.openRegistry({ poolSize: 256 });
    const advance = (milliseconds: number): void => {
      node.clockMs += milliseconds;
    };
    await test({ registry: afterIdle(node.registry), freed: node.freed, advance, nowMs: () => node.clockMs });
  });

it("exhaustion: a list has all nodes' addresses, by name only; the pool is marked as wanted", async () => {
  await world.pool("blue", { subnet: "10.0.0.0/24", ips: ["10.0.0.1-10.0.0.9"] });
  const [one, other] = [await world.openRegistry(), await world.openRegistry()];
  const proposals = [proposal(NAME), proposal("10.0.0.9", { pool: "green", ifName: "net1" })];
  await one.registry.claim(claim("a", proposals));
  await other.registry.claim(claim("b", [proposal("10.0.0.3")]));
  const listed: unknown[] = [];
  other.api.before = async ({ accept, query }) => void listed.push([accept, query?.includeObject]);
  const packed = await other.registry.listUsed({ ...spanOfTen(), last: ip("10.0.0.7").value }, ["blue"]);
  expect(listed).toEqual([["application/json;as=Table;g=meta.k8s.io;v=v1", "None"]]);
  expect([...(packed ?? [])]).toEqual([10, 0, 0, 1, 10, 0, 0, 3]);
  expect(await other.registry.findCooling([spanOfTen()], 9, "blue")).toEqual([]);
  await other.registry.markWanted("blue");
  expect(Date.parse((await world.read("ippools", "blue")).status.wanted)).not.toBeNaN();
  await world.client.delete(`${POOLS}/blue`);
});
