/**
 * The benchmark `peers`: ADD and DEL of other IPAMs and of Berth, by turns, on one machine and one API server.
 * Effects: etcd and an API server on loopback; daemons and plugins; one network namespace; files below .scratch, removed at the end.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TallyRow } from "../../scripts/lab/cluster/api-tally.ts";
import { type ControlPlane, startControlPlane } from "../../scripts/lab/control-plane.ts";
import { createNetns } from "../../scripts/lab/netns.ts";
import { formatFigure, mean, percentile, type Table } from "../../scripts/lab/statistics.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { openClusterBerth } from "../cluster/berth.ts";
import { countRequests } from "../cluster/count-requests.ts";
import { atMost, type Bench, type BenchOptions, type BenchReport, type Target } from "../harness/report.ts";
import { wallMs } from "../harness/runner.ts";
import { openBerth } from "../ipam/berth.ts";
import type { Contestant, Place, Work } from "../ipam/contestant.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import { type Course, compact, type Measured, measure } from "../ipam/measure.ts";
import { emptyC24, half19, type PoolShape } from "../ipam/pool-shape.ts";
import { BERTH_CHAIN, type ChainRow, HOST_LOCAL_CHAIN, measureChains, SPIDERPOOL_CHAIN } from "./chain.ts";
import { fillBerth, furnish } from "./cluster.ts";
import { openSpiderpool } from "./spiderpool.ts";
import { openStatic } from "./static.ts";
import { openWhereabouts } from "./whereabouts.ts";

export const peersBench: Bench = { name: "peers", run: runPeers };

/** Pools, and how many calls are under way at a time. */
const SCENES = [
  { shape: emptyC24, atOnce: [1, 8, 40] },
  // Eight at once are more than Spiderpool's agent can write into so large an object: ADDs fail after their five retries.
  { shape: half19, atOnce: [1] },
] as const;
/** Pods of which each request to the API server is counted. */
const COUNTED = 40;

interface Site {
  readonly plane: ControlPlane;
  readonly place: Place;
  readonly shape: PoolShape;
}

async function runPeers(options: BenchOptions): Promise<BenchReport> {
  runSetup("cluster", "peers");
  await using stack = new AsyncDisposableStack();
  const directory = join(root, ".scratch", `bench-peers-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const netns = await createNetns(`berth-bench-${process.pid}`);
  stack.defer(() => netns.delete());
  const { series, requests } = await measureAlone({ directory, netnsPath: netns.path }, options);
  const chains = await measureChains(directory, options.quick ? { rounds: 1, pods: 5 } : { rounds: 6, pods: 20 });
  return {
    tables: [...series.map(tabulateTimes), tabulateRequests(requests), tabulateChains(chains)],
    targets: [...targetsOf(series, requests), ...chainTargetsOf(chains)],
    notes: NOTES,
    versions: {
      "host-local and static": referenceTool("plugins").version,
      whereabouts: referenceTool("whereabouts").version,
      Spiderpool: referenceTool("spiderpool").version,
      Kubernetes: referenceTool("kubernetes").version,
    },
    raw: {
      series: series.map(({ shape, atOnce, all }) => ({ shape, atOnce, all: all.map(compact) })),
      requests,
      chains,
    },
  };
}

/** IPAMs without a main plugin. Each scene has a control plane of its own; requests are counted in the first. */
async function measureAlone(place: Place, options: BenchOptions): Promise<{ series: Series[]; requests: Requests[] }> {
  const found: { series: Series[]; requests: Requests[] } = { series: [], requests: [] };
  let first = 0;
  for (const { shape, atOnce } of SCENES) {
    const plane = await startControlPlane();
    try {
      const { subnet } = shape;
      await furnish(plane, { subnet });
      if (shape.taken > 0) await fillBerth(plane, shape);
      const site: Site = { plane, place, shape };
      const courses = atOnce.map((count) => courseOf(count, options));
      found.series.push(...(await measureTimes(site, courses, first)));
      first += courses.reduce((sum, course) => sum + callsOf(course), 0);
      if (found.requests.length === 0) found.requests.push(...(await countAll(site)));
    } finally {
      await plane.stop();
    }
  }
  return found;
}

const callsOf = ({ callsPerRound, warmUpRounds, rounds }: Course): number => callsPerRound * (warmUpRounds + rounds);

interface Series {
  readonly shape: PoolShape;
  readonly atOnce: number;
  readonly all: readonly Measured[];
}

function courseOf(atOnce: number, { quick }: BenchOptions): Course {
  const calls = atOnce === 1 ? 20 : 40;
  return { atOnce, callsPerRound: calls, warmUpRounds: 1, rounds: quick ? 1 : 10 };
}

/** Pods are numbered from `firstNumber`. */
async function measureTimes(site: Site, courses: readonly Course[], firstNumber: number): Promise<Series[]> {
  const { plane, place, shape } = site;
  const { kubeconfig } = plane;
  await using stack = new AsyncDisposableStack();
  const contestants: Contestant<Work>[] = [];
  const add = (contestant: Contestant<Work>): void => {
    stack.defer(() => contestant.close());
    contestants.push(contestant);
  };
  add(openHostLocal(shape, place));
  add(await openStatic(place));
  add(await openWhereabouts({ ...site, node: "where", kubeconfig }));
  add(await openSpiderpool({ ...site, node: "spider", kubeconfig }));
  add(await openBerth(shape, place));
  add(await openClusterBerth({ ...site, node: "ahead", isAhead: true }));
  add(await openClusterBerth({ ...site, node: "plain", isAhead: false }));
  const series: Series[] = [];
  let first = firstNumber;
  for (const course of courses) {
    series.push({ shape, atOnce: course.atOnce, all: await measure(contestants, course, first) });
    first += callsOf(course);
  }
  return series;
}

interface Requests {
  readonly name: string;
  /** Of one pod's ADD and DEL, and of what follows them. */
  readonly count: number;
  readonly bytes: number;
  /** `POST ipallocations 1.0` */
  readonly kinds: readonly string[];
}

/** Each by itself and with its daemons anew, so that nothing but its own calls passes its proxy. */
async function countAll(site: Site): Promise<Requests[]> {
  const { plane } = site;
  const opened: ((kubeconfig: string) => Promise<Contestant>)[] = [
    (kubeconfig) => openWhereabouts({ ...site, node: "where-counted", kubeconfig }),
    (kubeconfig) => openSpiderpool({ ...site, node: "spider-counted", kubeconfig }),
    (kubeconfig) => openClusterBerth({ ...site, node: "ahead-counted", isAhead: true, kubeconfig }),
    (kubeconfig) => openClusterBerth({ ...site, node: "plain-counted", isAhead: false, kubeconfig }),
  ];
  const all: Requests[] = [];
  for (const open of opened) {
    const { name, rows } = await countRequests(plane, { atOnce: 1, first: 100_000, count: COUNTED }, open);
    all.push(requestsOf(name, rows));
  }
  return all;
}

function requestsOf(name: string, rows: readonly TallyRow[]): Requests {
  const sum = (value: (row: TallyRow) => number): number =>
    rows.reduce((total, row) => total + value(row), 0) / COUNTED;
  return {
    name,
    count: sum(({ requests }) => requests),
    bytes: sum(({ requestBytes, responseBytes }) => requestBytes + responseBytes),
    kinds: rows
      .toSorted((a, b) => b.requests - a.requests)
      .map(({ verb, resource, requests }) => `${verb} ${resource} ${formatFigure(requests / COUNTED)}`),
  };
}

function tabulateTimes({ shape, atOnce, all }: Series): Table {
  const [base] = all;
  const rows = all.map(({ name, add, del, daemonAddMs, addRates, rssMib }) => [
    name,
    ...[0.5, 0.99, 1].map((share) => formatFigure(wallMs(add, share))),
    base === undefined ? "-" : formatFigure(wallMs(add, 0.5) / wallMs(base.add, 0.5)),
    ...[0.5, 0.99].map((share) => formatFigure(wallMs(del, share))),
    `${formatFigure(mean(add.map(({ cpuMs }) => cpuMs)))} + ${formatFigure(mean(daemonAddMs))}`,
    formatFigure(percentile(addRates, 0.5)),
    rssMib === undefined ? "-" : formatFigure(rssMib),
  ]);
  return {
    title: `IPAM alone, ${atOnce} at once, ${shape.name}`,
    columns: [
      ...["IPAM", "ADD p50", "p99", "max", "of host-local's", "DEL p50", "p99"],
      ...["CPU per ADD: plugin + daemon", "ADD/s", "daemon MiB"],
    ],
    rows,
  };
}

function tabulateRequests(all: readonly Requests[]): Table {
  return {
    title: "Requests to the API server for one pod: ADD, DEL and what follows them",
    columns: ["IPAM", "requests", "bytes", "of them"],
    rows: all.map(({ name, count, bytes, kinds }) => [
      name,
      formatFigure(count),
      bytes.toFixed(0),
      kinds.slice(0, 6).join(", "),
    ]),
  };
}

function tabulateChains(all: readonly ChainRow[]): Table {
  const [base] = all.filter(({ name }) => name === HOST_LOCAL_CHAIN);
  const rows = all.map(({ name, adds, dels }) => [
    name,
    ...[0.5, 0.99, 1].map((share) => formatFigure(wallMs(adds, share))),
    base === undefined ? "-" : formatFigure(wallMs(adds, 0.5) / wallMs(base.adds, 0.5)),
    ...[0.5, 0.99].map((share) => formatFigure(wallMs(dels, share))),
    formatFigure(mean(adds.map(({ cpuMs }) => cpuMs))),
  ]);
  return {
    title: "The chain of a NIC, one at a time, until the first ping is answered",
    columns: ["chain", "ADD p50", "p99", "max", `of ${HOST_LOCAL_CHAIN}`, "DEL p50", "p99", "CPU of the plugins"],
    rows,
  };
}

function chainTargetsOf(all: readonly ChainRow[]): Target[] {
  const find = (wanted: string, share: number): number =>
    wallMs(all.find(({ name }) => name === wanted)?.adds ?? [], share);
  return [0.5, 0.99].map((share) =>
    atMost({
      ...{ what: `the chain until the first ping, p${share * 100}: ${BERTH_CHAIN}`, base: SPIDERPOOL_CHAIN },
      ...{ valueMs: find(BERTH_CHAIN, share), baseMs: find(SPIDERPOOL_CHAIN, share), limit: 0.25 },
    }),
  );
}

/** Those that count addresses for the whole cluster, as Berth does there. */
const isClusterWide = (name: string): boolean => /^(whereabouts|Spiderpool) /.test(name);
const isBerthInCluster = (name: string): boolean => name.startsWith("berth in a cluster");

function targetsOf(series: readonly Series[], requests: readonly Requests[]): Target[] {
  const targets: Target[] = [];
  for (const { shape, atOnce, all } of series) {
    const ours = all.filter(({ name }) => isBerthInCluster(name));
    const theirs = all.filter(({ name }) => isClusterWide(name));
    for (const verb of ["add", "del"] as const) {
      for (const share of [0.5, 0.99]) {
        const fastest = Math.min(...theirs.map((each) => wallMs(each[verb], share)));
        for (const each of ours) {
          const own = wallMs(each[verb], share);
          targets.push({
            what: `${verb.toUpperCase()} p${share * 100}, ${shape.name}, ${atOnce} at once: ${each.name}`,
            wanted: "less than every peer of a cluster",
            measured: `${formatFigure(own / fastest)} × (${formatFigure(own)} of ${formatFigure(fastest)} ms)`,
            isMet: own < fastest,
          });
        }
      }
    }
  }
  const fewest = Math.min(...requests.filter(({ name }) => isClusterWide(name)).map(({ count }) => count));
  for (const { name, count } of requests.filter((each) => isBerthInCluster(each.name)))
    targets.push({
      what: `requests to the API server for one pod: ${name}`,
      wanted: "fewer than every peer of a cluster",
      measured: `${formatFigure(count)} of ${formatFigure(fewest)}`,
      isMet: count < fewest,
    });
  return targets;
}

const NOTES = [
  "Milliseconds from exec to exit, as a runtime sees them. Everything is on one machine: the API server, etcd and all daemons share its processors. The pods of a round are created before its ADDs and deleted after its DELs, which is not measured.",
  "host-local, static and Berth without a cluster share nothing between nodes; whereabouts, Spiderpool and Berth in a cluster do.",
  "Spiderpool's daemon is its agent; its controller runs, too. whereabouts has none in the path of a pod. Spiderpool's webhooks are not registered, which spares it some requests of its own.",
  "The requests were counted in a proxy, of pods one after the other, without watches. Berth's objects are deleted after the answer to a DEL, which is waited for.",
];
