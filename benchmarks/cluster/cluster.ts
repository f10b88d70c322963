/**
 * The benchmark `cluster`: ADD and DEL of a cluster's agent from exec to exit, with the address claimed ahead and
 * without, beside host-local, the embedded agent, and a bare create on the same API server; and the controller's
 * memory with very many addresses in use.
 * Effects: etcd and an API server on loopback; plugins, agents and a controller; one network namespace; files below
 * .scratch, removed at the end.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { atMostMb, tabulateMemory } from "../harness/memory.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { openBerth, writeNetConf } from "../ipam/berth.ts";
import { type Contestant, openPlace, type Place, type Work } from "../ipam/contestant.ts";
import { openEchoAgent } from "../ipam/floor.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import { type Courses, measureSeries } from "../ipam/measure.ts";
import { emptyC24 } from "../ipam/pool-shape.ts";
import { clusterTargetsOf, tabulateCluster } from "../ipam/tabulate.ts";
import { furnish } from "../peers/cluster.ts";
import { openBareCreate } from "./bare-create.ts";
import { openClusterBerth } from "./berth.ts";
import { NAMESPACES, PODS_OF_NODE, readControllers } from "./controller.ts";

const AT_ONCE = 40;

/**
 * So 300 pods come and go first, as in the benchmark `coordinator`: an agent runs for weeks, and its first calls are
 * its slowest.
 */
const WARM_UP_ROUNDS = 15;

const CONTROLLER_ALLOCATIONS = 150_000;
const QUICK_ALLOCATIONS = 9_000;
const CONTROLLER_MB = 300;

/** From the end of a turn's preparations to its first ADD: milliseconds. */
const SETTLE_MS = 200;

export const clusterBench: Bench = { name: "cluster", run: runCluster };

async function runCluster(options: BenchOptions): Promise<BenchReport> {
  runSetup("cluster");
  await using stack = new AsyncDisposableStack();
  const place = await openPlace(stack, "cluster");
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await furnish(plane, [{ subnet: "10.140.0.0/16" }]);
  const opened = await openContestants(stack, plane, place);
  const contestants = opened.map((contestant) => afterCollection(contestant, plane));
  const series = await measureSeries(contestants, coursesOf(options));
  const memory = await readControllers(options.quick ? QUICK_ALLOCATIONS : CONTROLLER_ALLOCATIONS);
  return {
    tables: [tabulateCluster(series), tabulateMemory("controller", memory)],
    targets: [...clusterTargetsOf(series.single), ...memory.slice(-1).map((figure) => atMostMb(figure, CONTROLLER_MB))],
    notes: NOTES,
    versions: { "host-local": referenceTool("plugins").version, Kubernetes: referenceTool("kubernetes").version },
  };
}

function coursesOf({ quick }: BenchOptions): Courses {
  return {
    oneAtATime: { atOnce: 1, callsPerRound: 20, warmUpRounds: quick ? 3 : WARM_UP_ROUNDS, rounds: quick ? 5 : 40 },
    manyAtOnce: { atOnce: AT_ONCE, callsPerRound: 200, warmUpRounds: 1, rounds: quick ? 2 : 6 },
  };
}

async function openContestants(
  stack: AsyncDisposableStack,
  plane: ControlPlane,
  place: Place,
): Promise<Contestant<Work>[]> {
  const contestants: Contestant<Work>[] = [];
  const add = (contestant: Contestant<Work>): void => {
    stack.defer(() => contestant.close());
    contestants.push(contestant);
  };
  add(openHostLocal(emptyC24, place));
  add(await openEchoAgent(place, writeNetConf(place)));
  add(await openBerth(emptyC24, place));
  add(await openBareCreate(plane));
  add(await openClusterBerth({ plane, place, node: "ahead", isAhead: true }));
  add(await openClusterBerth({ plane, place, node: "plain", isAhead: false }));
  return contestants;
}

setFlagsFromString("--expose-gc");
const collectGarbage: (() => void) | undefined = runInNewContext("globalThis.gc");

/**
 * Its ADDs begin SETTLE_MS after the API server and this process have collected their garbage. Otherwise garbage of
 * earlier turns is collected in some turn, for 0.05 to 0.15 s of both processors, and mostly in that of a contestant
 * that uses neither.
 */
function afterCollection(contestant: Contestant<Work>, { client }: ControlPlane): Contestant<Work> {
  return {
    ...contestant,
    prepare: async (first, count) => {
      const given = await contestant.prepare?.(first, count);
      await client.text("/debug/pprof/heap?gc=1");
      collectGarbage?.();
      await sleep(SETTLE_MS);
      return given;
    },
  };
}

const NOTES = [
  "Milliseconds from exec to exit, as a runtime sees them; of the bare create, in a client that is warm. Everything is on one machine: the API server, etcd and the agents share its processors. Before, 300 pods have come and gone: an agent runs for weeks, and its first calls are its slowest.",
  "The API server and the measuring process collect their garbage before the ADDs of each turn: what earlier turns left would else fall on any row, also on those that use neither.",
  "The pods of a round are created before its ADDs and deleted after its DELs, which is not measured. Claimed ahead: the round begins when the agent has claimed for its pods. A DEL tells the API server later; the next round waits until it has.",
  `Of the controller: the addresses are of one pool and of one pod each, on nodes with ${PODS_OF_NODE} pods and in ${NAMESPACES} namespaces. The figure is taken when the pool's status counts all of them and ten seconds have passed; the controller was started after they had been created, so it has read all of them at once.`,
];
