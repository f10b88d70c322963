/** Thirty StatefulSets rolled at once on fifty agents: every pod comes back on another node and has the addresses that it had. */
import { expect, it } from "vitest";
import { sumUse, useSince } from "../lab/cluster/watched-api.ts";
import { callsPer, printTable } from "../lab/scale/figures.ts";
import { endSets, rollSet, startSet } from "../lab/scale/stateful-sets.ts";
import { openWorld } from "../lab/scale/world.ts";
import { Seeded } from "../world/seeded.ts";

const NODES = 50;
const SETS = 30;
const REPLICAS = 10;
const SEED = Number(process.env.SEED ?? 4711);

it("thirty StatefulSets are rolled at once, and no pod's address changes", async () => {
  await using world = await openWorld({ nodes: NODES, hasNetwork: true, pools: { wide: { subnet: "10.131.0.0/16" } } });
  const chance = new Seeded(SEED);
  const schedule = () => chance.pick(world.nodes);
  const names = Array.from({ length: SETS }, (_, index) => `set-${index}`);
  const sets = await Promise.all(names.map((name) => startSet(world, name, REPLICAS, schedule)));
  const before = sumUse([world.use()]);
  const startMs = performance.now();
  const moved = await Promise.all(sets.map((set) => rollSet(world, set, schedule)));
  const seconds = (performance.now() - startMs) / 1000;
  const pods = SETS * REPLICAS;
  printTable(`${SETS} StatefulSets of ${REPLICAS} rolled at once, ${NODES} agents, seed ${SEED}`, [
    ["seconds", seconds.toFixed(1)],
    ["pods with another address", `${moved.reduce((sum, count) => sum + count, 0)} of ${pods}`],
    ["requests per pod", callsPer(useSince(world.use(), before), pods)],
    ["writes checked", `${world.history.checker.writes}`],
  ]);
  expect(moved.filter((count) => count > 0)).toEqual([]);
  await endSets(world, sets);
  expect(world.history.checker.breaches).toEqual([]);
});
