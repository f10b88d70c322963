/**
 * The benchmark `nodes`: from no pod to sixty on three real kubelets, with Berth and with host-local, by turns.
 * Effects: a control plane, three nodes with containerd and kubelet, namespaces and cgroups; all gone at the end.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { type RealCluster, startRealCluster } from "../../test/lab/nodes/cluster.ts";
import { ctr } from "../../test/lab/nodes/containerd.ts";
import { eachMs, measureReady, type ReadyTimes } from "../../test/lab/nodes/measure.ts";
import type { NetworkName } from "../../test/lab/nodes/networks.ts";
import { formatFigure, mean, percentile, type Table } from "../../test/lab/statistics.ts";
import { untilDefined } from "../../test/lab/waiting.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { parseStat } from "../harness/quiet.ts";
import { atMost, type Bench, type BenchReport } from "../harness/report.ts";
import { percentiles, tableOf } from "../harness/table.ts";

const NODES = 3;
const PODS = 60;
const TURNS = 5;
/** Time for which detection waits for answers by default: milliseconds. */
const WINDOW_MS = 200;
/** Longest time that the kubelets may take to remove the rest of deleted pods. They look once a minute. */
const REMOVED_MS = 150_000;
const LOOK_MS = 1_000;
/** Between the removal and the next turn. */
const SETTLE_MS = 2_000;
/** Tick rate of /proc/stat, on every architecture Linux runs on. */
const TICKS_PER_SECOND = 100;
const LABELS = {
  "host-local": "macvlan + host-local",
  bare: "macvlan + berth",
  berth: "macvlan + berth + coordinator",
  detecting: "the same with detection",
} as const satisfies Partial<Record<NetworkName, string>>;
type Contestant = keyof typeof LABELS;
const CONTESTANTS = Object.keys(LABELS) as Contestant[];

/** All turns of a network. */
interface Turns extends ReadyTimes {
  /**
   * Processor time of all programs on the machine, from the first creation until the last pod was gone: seconds, by
   * turn.
   */
  readonly processorS: number[];
}

export const nodesBench: Bench = { name: "nodes", run: ({ quick }) => runNodes(quick ? 1 : TURNS) };

async function runNodes(turns: number): Promise<BenchReport> {
  runSetup("cluster", "nodes");
  await using cluster = await startRealCluster({ nodes: NODES });
  const all = CONTESTANTS.map((network): Turns => ({ network, pods: [], totalsMs: [], processorS: [] }));
  // What only the first pods of a node wait for.
  await measureReady(cluster, { networks: CONTESTANTS, pods: NODES, rounds: 1 });
  for (let turn = 0; turn < turns; turn++) {
    for (let at = 0; at < all.length; at++) {
      await untilRemoved(cluster);
      // Each begins once.
      await measureTurn(cluster, all[(at + turn) % all.length]);
    }
  }
  return {
    tables: [tabulateTotals(all)],
    targets: targetsOf(all),
    notes: NOTES,
    versions: {
      "host-local": referenceTool("plugins").version,
      Kubernetes: referenceTool("kubernetes").version,
    },
    raw: all,
  };
}

async function measureTurn(cluster: RealCluster, turns: Turns | undefined): Promise<void> {
  if (turns === undefined) return;
  requireUninterrupted();
  const usedBefore = readUsedS();
  const [measured] = await measureReady(cluster, { networks: [turns.network], pods: PODS, rounds: 1 });
  turns.processorS.push(readUsedS() - usedBefore);
  turns.pods.push(...(measured?.pods ?? []));
  turns.totalsMs.push(...(measured?.totalsMs ?? []));
}

/**
 * Resolves when no container of a deleted pod is left. A kubelet removes all of them once a minute, and three of them
 * need both processors for up to five seconds: the turn in which that falls, of whatever network, would be as much
 * longer.
 */
async function untilRemoved({ nodes }: RealCluster): Promise<void> {
  const list = async (): Promise<string> => {
    const lists = nodes.map(({ machine }) => ctr(machine, "containerd-1", "containers", "list", "--quiet"));
    return (await Promise.all(lists)).join("").trim();
  };
  const isEmpty = async (): Promise<true | undefined> => {
    await sleep(LOOK_MS);
    return (await list()) === "" || undefined;
  };
  await untilDefined(isEmpty, list, REMOVED_MS);
  await sleep(SETTLE_MS);
}

const readUsedS = (): number => parseStat(readFileSync("/proc/stat", "utf8")).used / TICKS_PER_SECOND;

const labelOf = ({ network }: Turns): string => LABELS[network as Contestant];
const totalOf = ({ totalsMs }: Turns): number => percentile(totalsMs, 0.5);

function tabulateTotals(all: readonly Turns[]): Table {
  const [reference] = all;
  return tableOf<Turns>(
    `From none to ${PODS} pods Ready on ${NODES} nodes, in seconds`,
    [
      ["network", labelOf],
      ["median turn", (turns) => totalOf(turns) / 1_000],
      ["ratio", (turns) => reference && totalOf(turns) / totalOf(reference)],
      ["turns", ({ totalsMs }) => totalsMs.map((ms) => formatFigure(ms / 1_000)).join(" ")],
      ...percentiles<Turns>("one pod", (turns) => eachMs(turns).map((ms) => ms / 1_000), [0.5, 0.99]),
      ["CPU ms per pod, all programs", ({ processorS }) => (1_000 * mean(processorS)) / PODS],
    ],
    all,
  );
}

function targetsOf(all: readonly Turns[]) {
  const find = (wanted: Contestant): number => {
    const turns = all.find(({ network }) => network === wanted);
    return turns === undefined ? Number.NaN : totalOf(turns);
  };
  const base = { base: "macvlan + host-local", baseMs: find("host-local"), limit: 1.05 };
  return [
    atMost({ ...base, what: "0 to 60 pods, median: with coordinator", valueMs: find("berth") }),
    atMost({
      ...base,
      what: `0 to 60 pods, median: with detection, less its window of ${WINDOW_MS} ms`,
      valueMs: find("detecting") - WINDOW_MS,
    }),
  ];
}

const NOTES = [
  "Three kubelets with containerd of their own, control plane, agents and pods share this machine's processors: a pod's start waits for a processor most of the time. A pod is Ready when the API server says so, which is asked every 50 ms; the kubelet itself looks for changes once a second.",
  "The networks take turns, and each begins a turn once. `ratio` is that of the median turns. The processor time includes the deletion of the pods. A turn begins when the kubelets have removed all containers of the turn before, which they do once a minute: before, it fell on some turn of any network, and took it up to five seconds of both processors.",
  "host-local shares nothing between nodes, writes no record to the API server and serves no Services; Berth does all three.",
];
