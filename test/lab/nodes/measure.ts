/**
 * From a pod's creation until its kubelet calls it Ready, for many pods at once and several networks by turns.
 *
 *   const times = await measureReady(cluster, { networks: ["bare", "host-local"], pods: 30, rounds: 2 });
 *   printTimes(times);
 *
 * The figures are comparable within one run: all pods share this machine with the control plane and all nodes.
 * Effects: changes the nodes' network; makes and deletes pods; `printTimes` prints.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../kube-client.ts";
import { inParallel } from "../parallel.ts";
import { formatFigure, formatTable, percentile } from "../statistics.ts";
import { NAMESPACE, type RealCluster } from "./cluster.ts";
import type { NetworkName } from "./networks.ts";
import { isReady, observe } from "./observe.ts";
import { paths, podOf } from "./workloads.ts";

export interface MeasureOptions {
  readonly networks: readonly NetworkName[];
  /** Number of pods of one network in one round. */
  readonly pods: number;
  readonly rounds: number;
}

/** Times are Unix milliseconds. */
interface MeasuredPod {
  readonly uid: string;
  readonly address: string;
  readonly createdMs: number;
  readonly readyMs: number;
}

export interface ReadyTimes {
  readonly network: NetworkName;
  /** Pods of all rounds. */
  readonly pods: MeasuredPod[];
  /** From the first creation of a round to the last pod's being Ready. */
  readonly totalsMs: number[];
}

/** From each pod's creation until it was Ready: milliseconds. */
export const eachMs = ({ pods }: ReadyTimes): number[] => pods.map(({ createdMs, readyMs }) => readyMs - createdMs);

const APP = "measured";
const CREATORS = 8;
/** Largest error of a time. */
const PAUSE_MS = 50;
const READY_MS = 90_000;

export async function measureReady(cluster: RealCluster, options: MeasureOptions): Promise<ReadyTimes[]> {
  const all = options.networks.map((network): ReadyTimes => ({ network, pods: [], totalsMs: [] }));
  for (let round = 0; round < options.rounds; round++) {
    for (const times of all) {
      await cluster.setNetwork(times.network);
      await measureRound(cluster, `${APP}-${round}`, options.pods, times);
    }
  }
  return all;
}

async function measureRound(cluster: RealCluster, prefix: string, count: number, times: ReadyTimes): Promise<void> {
  const { client } = cluster;
  const seen = observe(cluster);
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const created = new Map<string, number>();
  const startMs = Date.now();
  const creating = inParallel(names, CREATORS, async (name) => {
    created.set(name, Date.now());
    const pod = podOf({ name });
    await client.create(paths.pods(NAMESPACE), { ...pod, metadata: { ...pod.metadata, labels: { app: APP } } });
  });
  const ready = new Map<string, MeasuredPod>();
  while (ready.size < count) {
    const pods: KubeObject[] = await seen.pods(APP);
    const readyMs = Date.now();
    for (const { metadata, status } of pods.filter(isReady)) {
      const { name, uid } = metadata;
      const createdMs = created.get(name) ?? startMs;
      if (!ready.has(name)) ready.set(name, { uid, address: status.podIP, createdMs, readyMs });
    }
    if (readyMs - startMs > READY_MS) throw new Error(`${ready.size} of ${count} pods are Ready after ${READY_MS} ms`);
    await sleep(PAUSE_MS);
  }
  await creating;
  times.pods.push(...ready.values());
  times.totalsMs.push(Math.max(...[...ready.values()].map(({ readyMs }) => readyMs)) - startMs);
  await inParallel(names, CREATORS, async (name) => void (await client.delete(`${paths.pods(NAMESPACE)}/${name}`)));
  await seen.untilGone(APP);
  await seen.untilReturned();
}

/** Ratios are to the last of them. */
export function printTimes(all: readonly ReadyTimes[]): void {
  const reference = all.at(-1);
  if (reference === undefined) return;
  const seconds = (ms: number): string => formatFigure(ms / 1_000);
  const total = ({ totalsMs }: ReadyTimes): number => Math.max(...totalsMs);
  const rows = all.map((times) => [
    times.network,
    String(times.pods.length),
    seconds(percentile(eachMs(times), 0.5)),
    seconds(percentile(eachMs(times), 0.99)),
    seconds(total(times)),
    formatFigure(total(times) / total(reference)),
  ]);
  const columns = ["network", "pods", "p50 s", "p99 s", "slowest round s", `of ${reference.network}'s`];
  console.log(`\n${formatTable({ title: "From created to Ready on real nodes", columns, rows })}\n`);
}
