/**
 * The benchmark `coordinator`: the plugin alone, the chain of a NIC against the reference chain, and the cost of
 * detection.
 * Effects: runs plugins and agents; network namespaces; files below .scratch, removed at the end.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import type { Contestant } from "../ipam/contestant.ts";
import { openEchoAgent, openEmptyProgram } from "../ipam/floor.ts";
import { measureAlone } from "./alone.ts";
import { measureChains } from "./chain.ts";
import { coordinatorConf, PLAIN, preparedResult } from "./configuration.ts";
import { measureDetection } from "./detection.ts";
import { type Node, openNode } from "./node.ts";
import { warmUp, writeConf } from "./pods.ts";
import { measureRates } from "./rates.ts";
import { type CoordinatorFigures, tabulate, targetsOf } from "./tabulate.ts";

export const coordinatorBench: Bench = { name: "coordinator", run: runCoordinator };

/** Pods of a node that is configured for as many as possible: an ADD is to take as long as without any. */
const OTHERS = 500;

/** Number of pods of each node before anything is measured; those that stay count. */
const WARM_UP_PODS = 300;

async function runCoordinator(options: BenchOptions): Promise<BenchReport> {
  const directory = join(root, ".scratch", `bench-${process.pid}`);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const nodes: Node[] = [];
  for (const others of [0, OTHERS]) {
    const place = join(directory, String(others));
    mkdirSync(place, { recursive: true });
    const node = await openNode(stack, `bench-${process.pid}-${others}`, place, others);
    await warmUp(node, Math.max(0, WARM_UP_PODS - others));
    nodes.push(node);
  }
  const floors = await openFloors(nodes, directory, stack);
  const figures = await measure(nodes, floors, options);
  return {
    tables: tabulate(figures),
    targets: targetsOf(figures),
    notes,
    versions: { "macvlan and host-local": referenceTool("plugins").version },
  };
}

async function openFloors(
  [node]: readonly Node[],
  directory: string,
  stack: AsyncDisposableStack,
): Promise<Contestant[]> {
  if (node === undefined) return [];
  const place = { directory, netnsPath: node.pods.path("{n}") };
  const result = preparedResult(node.pods.path(0), 0, "IPv4");
  const stdinFile = writeConf(node, "floor.json", coordinatorConf(PLAIN, false, result));
  const echo = await openEchoAgent(place, stdinFile);
  stack.defer(() => echo.close());
  return [openEmptyProgram(place), echo];
}

async function measure(
  nodes: readonly Node[],
  floors: readonly Contestant[],
  { quick }: BenchOptions,
): Promise<CoordinatorFigures> {
  const [node] = nodes as [Node, ...Node[]];
  const course = { atOnce: 1, rounds: quick ? 3 : 20, warmUpRounds: quick ? 1 : 3, callsPerRound: 10 };
  return {
    alone: await measureAlone(floors, nodes, course),
    chains: await measureChains(nodes, { rounds: quick ? 2 : 15, triples: quick ? 5 : 10 }),
    rates: await measureRates(node, { rounds: quick ? 2 : 10, pairs: quick ? 16 : 40 }),
    detection: await measureDetection(node, quick ? 5 : 30),
  };
}

const notes = [
  "Milliseconds from exec to exit, as a runtime sees them. Every ADD is for a pod of its own, whose namespace was made before and is deleted after the DELs of a round; the node and its agent live in a namespace, too. Before, 300 pods have come and gone: an agent runs for weeks, and its first calls are its slowest. The coordinator's settings are its defaults, with the log at `debug`, two networks behind the node (three with IPv6), mode `auto`, which is underlay here: a pair, neighbours, routes, rules and an nf_tables table.",
  "A DEL of the coordinator takes the pair down, deletes the NIC, and answers when the kernel has closed it; macvlan's DEL then finds none. The pair goes with the pod's namespace, or is deleted later, several in one step. The kernel needs a dozen milliseconds for either and more, mostly waiting, and the agent has threads for it. Where DELs are measured one at a time, the namespaces are deleted after the last one. For the rates each is deleted after its DEL, as a runtime does; the last column says when all links were gone after the last one, and the CPU time of a pair includes the agent's until then.",
  "In the chains the plugins are executed one after the other, each with the result of the one before; the reference chain has no coordinator, its pods reach no service. The chains take turns, one ADD each, then one DEL each; for the rates, one batch of pairs each.",
  "What detection adds is measured in pairs, a call without it and one with it; silence has to take the window. A conflict is found by the answer to the first probe, which goes out within 2 ms at random.",
];
