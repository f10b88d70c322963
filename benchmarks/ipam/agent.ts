/**
 * The agent's memory just started and at rest with many pools and pods; and how soon it
 * answers when it has many pools and records.
 * Effects: agents, one after the other; plugins.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { atMostMb, type MemoryFigure, readMemory, tabulateMemory } from "../harness/memory.ts";
import type { Target } from "../harness/report.ts";
import { runBatch } from "../harness/runner.ts";
import { poolManifest, writeNetConf } from "./berth.ts";
import { type Place, pluginCalls } from "./contestant.ts";
import { usableRange } from "./pool-shape.ts";
import { prefillBerth } from "./prefill-berth.ts";

const POOLS = 1_000;
const PODS = 110;
const RECORDS = 10_000;
const RECORDS_OF_POOL = 250;
const STARTS = 5;

const AT_REST_MB = 100;
const MANY_MB = 130;
const START_MS = 1_000;

/** An agent at rest has had no call for so long: milliseconds. */
const QUIET_MS = 10_000;

interface AgentReport {
  readonly table: Table;
  readonly targets: readonly Target[];
}

export async function measureAgent(place: Place): Promise<AgentReport> {
  const small = await readAgent(place, 1, 0);
  const large = await readAgent(place, POOLS, PODS);
  const startMs = await timeStarts(place);
  const figures = [...small, ...large];
  const p50 = percentile(startMs, 0.5);
  return {
    table: tabulateMemory("agent", figures),
    targets: [
      ...small.slice(-1).map((figure) => atMostMb(figure, AT_REST_MB)),
      ...large.slice(-1).map((figure) => atMostMb(figure, MANY_MB)),
      {
        what: `a start until the first answer, ${POOLS} pools and ${RECORDS} records`,
        wanted: `≤ ${START_MS} ms`,
        measured: `${formatFigure(p50)} ms`,
        isMet: p50 <= START_MS,
      },
    ],
  };
}

export async function openManyPools(place: Place, count: number) {
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(count) }, readyMs: 120_000 });
  return {
    name: "berth",
    ...pluginCalls(`${berthBin}/berth`, writeNetConf(place), place, agent.env),
    daemonPid: agent.pid,
    close: () => agent.delete(),
  };
}

/** Of an agent just started, and at rest after the ADDs of so many pods. */
async function readAgent(place: Place, pools: number, pods: number): Promise<MemoryFigure[]> {
  await using stack = new AsyncDisposableStack();
  const { add, daemonPid, close } = await openManyPools(place, pools);
  stack.defer(close);
  const started = readMemory(`just started, pools: ${pools}`, daemonPid);
  if (pods > 0) await runBatch({ subject: add, atOnce: 1, first: 0, count: pods });
  await sleep(QUIET_MS);
  return [started, readMemory(`at rest, pools: ${pools}, pods: ${pods}`, daemonPid)];
}

/** Milliseconds of starts with V8's cached code of an earlier one, as the service and the chart have it. */
async function timeStarts(place: Place): Promise<number[]> {
  const stateDir = join(place.directory, "berth-start");
  for (let pool = 0; pool < RECORDS / RECORDS_OF_POOL; pool++) {
    const addresses = Array.from({ length: RECORDS_OF_POOL }, (_, index) => `${networkOf(pool)}.${2 + index}`);
    await prefillBerth({ stateDir, pool: `bench-${pool}`, prefixLength: 24, addresses });
  }
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(POOLS) }, stateDir, readyMs: 120_000 });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => agent.delete());
  const times: number[] = [];
  while (times.length < STARTS) {
    await agent.stop();
    const fromMs = performance.now();
    await agent.start();
    times.push(performance.now() - fromMs);
  }
  return times;
}

function networkOf(pool: number): string {
  return `10.${Math.floor(pool / 256)}.${pool % 256}`;
}

/** Pools of a /24; the first one is the default. */
function poolManifests(count: number): string {
  return Array.from({ length: count }, (_, index) => {
    const subnet = `${networkOf(index)}.0/24`;
    return poolManifest(`bench-${index}`, subnet, usableRange({ subnet }), { isDefault: index === 0 });
  }).join("---\n");
}
