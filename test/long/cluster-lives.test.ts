/**
 * Five thousand pods created, attached, detached and deleted on fifty agents: what prefetch does to the ADD, what a pod costs the
 * API server, and that no address is ever had twice.
 */
import { expect, it } from "vitest";
import { callsPer, printTable, timesOf } from "../lab/scale/figures.ts";
import { type Lives, livePods, sumPrefetches } from "../lab/scale/scenarios.ts";
import { openWorld, type World } from "../lab/scale/world.ts";

const NODES = 50;
const PODS = 5_000;
const WITHOUT = 1_500;
/** Evenly; half of what this API server can do with a pod's object, its address and the end of both. */
const PER_SECOND = 50;
/** Of the ADDs. */
const WANTED_HITS = 0.95;
const POOLS = { wide: { subnet: "10.128.0.0/16" } };

async function lives(world: World, count: number, prefix: string): Promise<Outcome> {
  const outcome = await livePods(world, { count, perSecond: PER_SECOND, prefix });
  expect(world.history.checker.breaches).toEqual([]);
  return { ...outcome, ...sumPrefetches(world), checked: world.history.checker.writes };
}

type Outcome = Lives & ReturnType<typeof sumPrefetches> & { readonly checked: number };

function print(title: string, { addMs, delMs, retries, seconds, use, checked, adds, used, waited }: Outcome): void {
  printTable(title, [
    ["seconds", seconds.toFixed(0)],
    ["found claimed", `${used} of ${adds}, of which ${waited} waited a moment for it`],
    ["ADD", timesOf(addMs)],
    ["ADDs tried again", `${retries}`],
    ["DEL", timesOf(delMs)],
    ["requests per pod", callsPer(use, addMs.length)],
    ["watch bytes per agent and pod of its node", `${(use.watchBytes / addMs.length).toFixed(0)}`],
    ["writes checked", `${checked}`],
  ]);
}

it("five thousand pods whose addresses are claimed ahead", async () => {
  await using world = await openWorld({ nodes: NODES, hasNetwork: true, pools: POOLS });
  const outcome = await lives(world, PODS, "ahead");
  print(`${PODS} pods, ${NODES} agents, ${PER_SECOND} per second, ADD 300 ms after the binding`, outcome);
  expect(outcome.used / outcome.adds).toBeGreaterThanOrEqual(WANTED_HITS);
  // Create and delete, nothing else: neither a list nor a read of the pod.
  expect(outcome.use.calls.get("POST ipallocations") ?? 0).toBeLessThanOrEqual(PODS * 1.05);
  expect(outcome.use.calls.get("GET ipallocations (list)") ?? 0).toBe(0);
});

it("the same without", async () => {
  await using world = await openWorld({ nodes: NODES, hasNetwork: false, pools: POOLS });
  print(`${WITHOUT} pods, ${PER_SECOND} per second, nothing claimed ahead`, await lives(world, WITHOUT, "late"));
});
