/**
 * The benchmark `cluster`: ADD and DEL of a cluster's agent from exec to exit, with the address claimed ahead and
 * without, beside host-local, the embedded agent, and a bare create on the same API server.
 * Effects: etcd and an API server on loopback; plugins and agents; one network namespace; files below .scratch,
 * removed at the end.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { applyCrds } from "../../test/lab/cluster/crds.ts";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { createNetns } from "../../test/lab/netns.ts";
import { limitProcessor } from "../../test/lab/nodes/cgroups.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { openBerth, writeNetConf } from "../ipam/berth.ts";
import type { Contestant, Place, Work } from "../ipam/contestant.ts";
import { openEchoAgent } from "../ipam/floor.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import { type Course, compact, type Measured, measure } from "../ipam/measure.ts";
import { emptyC24 } from "../ipam/pool-shape.ts";
import {
  BARE_CREATE,
  CREATE_FLOOR,
  clusterTargetsOf,
  rateTargetsOf,
  tabulateApart,
  tabulateCluster,
} from "../ipam/tabulate.ts";
import { openBareCreate } from "./bare-create.ts";
import { BERTH_AHEAD, BERTH_PLAIN, openClusterBerth } from "./berth.ts";
import { openCreateFloor } from "./create-floor.ts";
import { countAgentRequests } from "./requests.ts";

const AT_ONCE = 40;
/**
 * Of one processor, for etcd and the API server apart. The agents, which run on other machines in a cluster, have the
 * rest.
 */
const SERVER_SHARE = 0.5;

/**
 * So 300 pods come and go first, as in the benchmark `coordinator`: an agent runs for weeks, and its first calls are
 * its slowest.
 */
const WARM_UP_ROUNDS = 15;

/** From the end of a turn's preparations to its first ADD: milliseconds. */
const SETTLE_MS = 200;

/** Contestants that call the API server. */
const ASKING: readonly string[] = [BARE_CREATE, CREATE_FLOOR, BERTH_AHEAD, BERTH_PLAIN];

export const clusterBench: Bench = { name: "cluster", run: runCluster };

async function runCluster(options: BenchOptions): Promise<BenchReport> {
  runSetup("cluster");
  await using stack = new AsyncDisposableStack();
  const directory = join(root, ".scratch", `bench-cluster-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const netns = await createNetns(`berth-bench-${process.pid}`);
  stack.defer(() => netns.delete());
  const place = { directory, netnsPath: netns.path };
  const plane = await openPlane(stack);
  const requests = await countAgentRequests(plane, place);
  const opened = await openContestants(stack, plane, place);
  const contestants = opened.map((contestant) => afterCollection(contestant, plane));
  const { oneAtATime, manyAtOnce, apart } = courses(options);
  const single = await measure(contestants, oneAtATime, 0);
  const firstNumber = oneAtATime.callsPerRound * (oneAtATime.warmUpRounds + oneAtATime.rounds);
  const atOnce = await measure(contestants, manyAtOnce, firstNumber);
  const measuredApart = await measureApart(contestants, plane, {
    course: apart,
    firstNumber: firstNumber + manyAtOnce.callsPerRound * (manyAtOnce.warmUpRounds + manyAtOnce.rounds),
  });
  const series = { single, atOnce };
  return {
    tables: [tabulateCluster(series), tabulateApart(measuredApart, SERVER_SHARE), requests.table],
    targets: [...clusterTargetsOf(single), ...rateTargetsOf(measuredApart), requests.target],
    notes: NOTES,
    versions: { "host-local": referenceTool("plugins").version, Kubernetes: referenceTool("kubernetes").version },
    raw: {
      ...{ requests: requests.table, oneAtATime: compactAll(single) },
      ...{ manyAtOnce: compactAll(atOnce), apart: compactAll(measuredApart) },
    },
  };
}

/** Measures the contestants that call the API server while it has a part of a processor of its own. */
async function measureApart(
  contestants: readonly Contestant<Work>[],
  plane: ControlPlane,
  { course, firstNumber }: { readonly course: Course; readonly firstNumber: number },
): Promise<Measured[]> {
  await using _ = await limitProcessor(`berth-${process.pid}-plane`, plane.pids, SERVER_SHARE);
  return await measure(
    contestants.filter(({ name }) => ASKING.includes(name)),
    course,
    firstNumber,
  );
}

const compactAll = (all: readonly Measured[]): object[] => all.map(compact);

/**
 * Apart: rounds differ by a factor of two there, by whether the API server collects its garbage, so there are more of
 * them.
 */
function courses({ quick }: BenchOptions): Record<"oneAtATime" | "manyAtOnce" | "apart", Course> {
  const manyAtOnce = { atOnce: AT_ONCE, callsPerRound: 200, warmUpRounds: 1 };
  return {
    oneAtATime: { atOnce: 1, callsPerRound: 20, warmUpRounds: quick ? 3 : WARM_UP_ROUNDS, rounds: quick ? 5 : 60 },
    manyAtOnce: { ...manyAtOnce, rounds: quick ? 2 : 6 },
    apart: { ...manyAtOnce, rounds: quick ? 2 : 20 },
  };
}

async function openPlane(stack: AsyncDisposableStack): Promise<ControlPlane> {
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await applyCrds(plane.client);
  await plane.client.create("/api/v1/namespaces", { metadata: { name: "bench" } });
  await plane.client.create("/apis/ipam.vendor.io/v1/ippools", {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "bench" } },
    spec: { subnet: "10.140.0.0/16", default: true, cooldown: "0s" },
  });
  await plane.client.create("/api/v1/namespaces/kube-system/configmaps", {
    metadata: { name: "vendor-conf" },
    data: { "conf.yml": "enableIPv6: false\n" },
  });
  return plane;
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
  add(await openEchoAgent("C", place, writeNetConf(place)));
  add(await openBerth(emptyC24, place));
  add(await openBareCreate(plane));
  add(await openCreateFloor(plane, place, writeNetConf(place)));
  add(await openClusterBerth({ plane, place, node: "ahead", isAhead: true }));
  add(await openClusterBerth({ plane, place, node: "plain", isAhead: false }));
  return contestants;
}

setFlagsFromString("--expose-gc");
const collectGarbage: (() => void) | undefined = runInNewContext("globalThis.gc");

/**
 * Its ADDs begin SETTLE_MS after the API server and this process have collected their garbage. Otherwise what earlier
 * turns have left is collected in some turn, for 0.05 to 0.15 s of both processors, and mostly in that of a
 * contestant that asks neither anything.
 */
function afterCollection(contestant: Contestant<Work>, { client }: ControlPlane): Contestant<Work> {
  return {
    ...contestant,
    prepare: async (first, count) => {
      await contestant.prepare?.(first, count);
      await client.text("/debug/pprof/heap?gc=1");
      collectGarbage?.();
      await sleep(SETTLE_MS);
    },
  };
}

const NOTES = [
  "Milliseconds from exec to exit, as a runtime sees them; of the bare create, in a client that is warm. Everything is on one machine: the API server, etcd and the agents share its processors. Before, 300 pods have come and gone: an agent runs for weeks, and its first calls are its slowest.",
  "In a cluster the API server has machines of its own. In the second table it and etcd together have half of one processor and no more, so that it is the server that limits the rate of bare creates, and all that the agent and its plugins do for an ADD has processors left. The targets of the rate are judged there. In the first table the same is measured while all of them share the two processors.",
  "The API server and the measuring process collect their garbage before the ADDs of each turn: what earlier turns left would else fall on any row, also on those that use neither.",
  "The floor of an ADD that is recorded before it is answered is the row of the agent that only creates: for an ADD it creates an object as the bare client does, with the same client and the same kind, and answers; for a DEL it answers and then deletes. It claims, records and checks nothing.",
  "The pods of a round are created before its ADDs and deleted after its DELs, which is not measured. Claimed ahead: the round begins when the agent has claimed for its pods. A DEL tells the API server later; the next round waits until it has.",
  "The requests were counted by a proxy, before the measuring. Watches are left out. In a pool of 256 addresses or fewer a released address is published as cooling, so that other nodes know of it: one write more.",
];
