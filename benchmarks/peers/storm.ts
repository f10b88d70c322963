/**
 * Many pods on many nodes at once, and back: its duration, its failures, addresses of two pods, and records that stay.
 *
 *   pods are created ── ADDs of all, two at a time on each node ── records are counted
 *   ── DELs of all ── records are counted
 *
 * Effects: a control plane; for each IPAM in turn daemons on simulated nodes, and plugins.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { daemonRssMib } from "../../test/lab/statistics.ts";
import { openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { runBatch, type Sample, type Subject } from "../harness/runner.ts";
import type { Place } from "../ipam/contestant.ts";
import { failureOf, succeeded } from "../ipam/measure.ts";
import { exact25, type PoolShape, storm22 } from "../ipam/pool-shape.ts";
import { furnish, poolSpecs } from "./cluster.ts";
import type { PeerIpam } from "./peer-ipam.ts";
import { openSpiderpool } from "./spiderpool.ts";
import { openWhereabouts } from "./whereabouts.ts";

interface Storm {
  readonly name: string;
  readonly shape: PoolShape;
  readonly nodes: number;
  readonly pods: number;
  /** Number of pods of a quick run. */
  readonly quickPods: number;
}

const STORMS: readonly Storm[] = [
  {
    ...{ name: "exact fit", shape: exact25 },
    ...{ nodes: 5, pods: 125, quickPods: 125 },
  },
  {
    ...{ name: "storm", shape: storm22 },
    ...{ nodes: 20, pods: 1_000, quickPods: 200 },
  },
];

/** Pods that a node's runtime attaches at a time. */
const AT_ONCE_PER_NODE = 2;
/** After this no ADD of a storm is started. */
const LIMIT_MS = 30_000;
const QUICK_LIMIT_MS = 15_000;
/** Longest time for which records may stay after the last DEL was answered, before they count as leaked. */
const RELEASED_MS = 10_000;

export interface StormRow {
  readonly name: string;
  /** From the creation of the first pod to the last answer. */
  readonly upMs: number;
  readonly downMs: number;
  readonly add: readonly Sample[];
  readonly del: readonly Sample[];
  readonly failures: readonly string[];
  /** Addresses that more than one pod was given. */
  readonly duplicates: number;
  /** Pods that have an address, and addresses that are recorded: when all are attached. */
  readonly live: number;
  readonly recorded: number;
  /** Addresses that are recorded when all are detached. */
  readonly leaked: number;
  /** Memory of the daemons of all nodes when all are attached. */
  readonly daemonsMib: number;
}

export interface StormFigures {
  readonly name: string;
  readonly shape: PoolShape;
  readonly nodes: number;
  readonly pods: number;
  readonly rows: readonly StormRow[];
}

export async function measureStorms(place: Place, isQuick: boolean): Promise<StormFigures[]> {
  const found: StormFigures[] = [];
  for (const storm of STORMS) {
    const pods = isQuick ? storm.quickPods : storm.pods;
    const plane = await startControlPlane();
    await using stack = new AsyncDisposableStack();
    stack.defer(() => plane.stop());
    await furnish(plane, poolSpecs(storm.shape));
    const limitMs = isQuick ? QUICK_LIMIT_MS : LIMIT_MS;
    const { name, shape, nodes } = storm;
    found.push({ name, shape, nodes, pods, rows: await measureAll(plane, place, { shape, nodes, pods, limitMs }) });
  }
  return found;
}

interface Course {
  readonly shape: PoolShape;
  readonly nodes: number;
  readonly pods: number;
  readonly limitMs: number;
}

async function measureAll(plane: ControlPlane, place: Place, course: Course): Promise<StormRow[]> {
  const { shape, nodes: spread } = course;
  const { kubeconfig } = plane;
  const openings: readonly (() => Promise<PeerIpam>)[] = [
    () => openWhereabouts({ plane, place, shape, kubeconfig, node: "where", spread }),
    () => openSpiderpool({ plane, place, shape, kubeconfig, node: "spider", spread }),
    () => openClusterBerth({ plane, place, node: "berth", spread, isAhead: true }),
  ];
  const rows: StormRow[] = [];
  for (const open of openings) {
    const ipam = await open();
    await using stack = new AsyncDisposableStack();
    stack.defer(() => ipam.close());
    rows.push(await measureOne(ipam, course));
  }
  return rows;
}

async function measureOne(ipam: PeerIpam, { nodes, pods, limitMs }: Course): Promise<StormRow> {
  const all = (subject: Subject, count: number): Omit<Parameters<typeof runBatch>[0], "limitMs"> => ({
    ...{ subject: { ...subject, exits: "any" as const }, atOnce: AT_ONCE_PER_NODE * nodes, first: 0, count },
  });
  sayProgress(`${pods} pods on ${nodes} nodes: ${ipam.name}`);
  const startMs = performance.now();
  await ipam.prepare?.(0, pods);
  const { samples: add } = await runBatch({ ...all(ipam.add, pods), limitMs });
  const upMs = performance.now() - startMs;
  const daemonsMib = ipam.daemonPids.reduce((sum, pid) => sum + daemonRssMib(pid), 0);
  const recorded = await ipam.records();
  await ipam.terminate?.(0, pods);
  // As a runtime does, for those that failed as well.
  const { samples: del, wallMs: downMs } = await runBatch(all(ipam.del, add.length));
  const given = succeeded(add).map(addressOf);
  const leaked = await recordsLeft(ipam);
  await ipam.finish?.(0, pods);
  return {
    ...{ name: ipam.name, upMs, downMs, add, del, daemonsMib, recorded, leaked },
    failures: [...add, ...del].flatMap(failureOf),
    duplicates: given.length - new Set(given).size,
    live: given.length,
  };
}

/** The address that an ADD printed. */
function addressOf({ answer }: Sample): string {
  const address = /"address":\s*"([^"]+)"/.exec(answer?.text ?? "")?.[1];
  if (address === undefined) throw new Error(`An ADD printed no address: ${answer?.text}`);
  return address;
}

async function recordsLeft(ipam: PeerIpam): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const count = await ipam.records();
    if (count === 0 || performance.now() - startMs > RELEASED_MS) return count;
    await sleep(200);
  }
}
