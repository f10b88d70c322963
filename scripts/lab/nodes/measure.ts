/**
 * From a pod's creation until its kubelet calls it Ready, for many pods at once and several networks by turns.
 *
 *   const times = await measureReady(cluster, { networks: ["bare", "host-local"], pods: 30, rounds: 2 });
 *   printTimes(times);
 *
 * What it says is of use within one run: all pods share this machine with the control plane and all nodes.
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
  /** Of one network in one round. */
  readonly pods: number;
  readonly rounds: number;
}

export interface ReadyTimes {
  readonly network: NetworkName;
  /** Of each pod, in milliseconds, all rounds. */
  readonly eachMs: number[];
  /** From the first creation of a round to the last pod's being Ready. */
  readonly totalsMs: number[];
  /** What the pods got. */
  readonly addresses: string[];
}

const APP = "measured";
const CREATORS = 8;
/** What a time can be wrong by. */
const PAUSE_MS = 50;
const READY_MS = 90_000;

export async function measureReady(cluster: RealCluster, options: MeasureOptions): Promise<ReadyTimes[]> {
  const all = options.networks.map((network): ReadyTimes => ({ network, eachMs: [], totalsMs: [], addresses: [] }));
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
  const startMs = performance.now();
  const creating = inParallel(names, CREATORS, async (name) => {
    created.set(name, performance.now());
    const pod = podOf({ name });
    await client.create(paths.pods(NAMESPACE), { ...pod, metadata: { ...pod.metadata, labels: { app: APP } } });
  });
  const ready = new Map<string, number>();
  while (ready.size < count) {
    const pods: KubeObject[] = await seen.pods(APP);
    const nowMs = performance.now();
    for (const pod of pods.filter(isReady)) if (!ready.has(pod.metadata.name)) ready.set(pod.metadata.name, nowMs);
    if (nowMs - startMs > READY_MS) throw new Error(`${ready.size} of ${count} pods are Ready after ${READY_MS} ms`);
    await sleep(PAUSE_MS);
  }
  await creating;
  times.totalsMs.push(Math.max(...ready.values()) - startMs);
  times.eachMs.push(...names.map((name) => (ready.get(name) ?? 0) - (created.get(name) ?? 0)));
  times.addresses.push(...(await seen.pods(APP)).map(({ status }) => status.podIP));
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
    String(times.eachMs.length),
    seconds(percentile(times.eachMs, 0.5)),
    seconds(percentile(times.eachMs, 0.99)),
    seconds(total(times)),
    formatFigure(total(times) / total(reference)),
  ]);
  const columns = ["network", "pods", "p50 s", "p99 s", "slowest round s", `of ${reference.network}'s`];
  console.log(`\n${formatTable({ title: "From created to Ready on real nodes", columns, rows })}\n`);
}
