/**
 * The agent's memory: just started and at rest, with many pools and pods, during many ADDs and DELs and when they
 * have ended; beside it an empty Node.js.
 * Effects: agents, one after the other; those of ../harness/memory.ts; plugins.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import type { Table } from "../../test/lab/statistics.ts";
import { type MemoryFigure, readEmptyNode, readMemory, tabulateMemory } from "../harness/memory.ts";
import type { BenchOptions } from "../harness/report.ts";
import { runBatch, type Subject } from "../harness/runner.ts";
import { writeNetConf } from "./berth.ts";
import { callEnvironment, type Place } from "./contestant.ts";

const POOLS = 1_000;
const PODS = 110;
const CYCLES = 100_000;
const QUICK_CYCLES = 500;

/** An agent at rest has had no call for so long: milliseconds. */
const QUIET_MS = 10_000;

/** ADDs, then as many DELs. With the pods that stay they fit into one pool. */
const CYCLES_PER_ROUND = 100;
/**
 * Of which so many are under way at any time: 100,000 cycles take a minute so, and two and a half one after the other.
 */
const AT_ONCE = 40;

interface MemoryReport {
  readonly table: Table;
  readonly figures: readonly MemoryFigure[];
}

export async function measureMemory(place: Place, { quick }: BenchOptions): Promise<MemoryReport> {
  const cycles = quick ? QUICK_CYCLES : CYCLES;
  const figures: MemoryFigure[] = [
    await readEmptyNode(),
    ...(await readSmallAgent()),
    ...(await readLargeAgent(place, cycles)),
  ];
  return {
    table: tabulateMemory("agent", figures),
    figures,
  };
}

async function readSmallAgent(): Promise<MemoryFigure[]> {
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(1) } });
  try {
    const started = readMemory("just started, 1 pool", agent.pid);
    await sleep(QUIET_MS);
    return [started, readMemory("at rest, 1 pool", agent.pid)];
  } finally {
    await agent.delete();
  }
}

async function readLargeAgent(place: Place, cycles: number): Promise<MemoryFigure[]> {
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(POOLS) }, readyMs: 120_000 });
  try {
    const started = readMemory(`just started, ${POOLS} pools`, agent.pid);
    await runBatch({ subject: subjectOf(agent, place, "ADD"), atOnce: 1, first: 0, count: PODS });
    const added = readMemory(`${POOLS} pools, after ${PODS} ADDs`, agent.pid);
    await sleep(QUIET_MS);
    const many = readMemory(`${POOLS} pools, ${PODS} pods`, agent.pid);
    let most = many;
    for (let done = 0; done < cycles; done += CYCLES_PER_ROUND) {
      const batch = { atOnce: AT_ONCE, first: PODS + done, count: CYCLES_PER_ROUND };
      await runBatch({ subject: subjectOf(agent, place, "ADD"), ...batch });
      await runBatch({ subject: subjectOf(agent, place, "DEL"), ...batch });
      const now = readMemory(`the most during ${cycles} ADDs and DELs`, agent.pid);
      if (now.rssMb > most.rssMb || done === 0) most = now;
    }
    const loaded = readMemory(`the same after ${cycles} ADDs and DELs, ${AT_ONCE} at once`, agent.pid);
    await sleep(QUIET_MS);
    const quiet = readMemory(`${QUIET_MS / 1000} s later`, agent.pid);
    return [started, added, many, most, loaded, quiet];
  } finally {
    await agent.delete();
  }
}

function subjectOf(agent: Agent, place: Place, command: "ADD" | "DEL"): Subject {
  return {
    path: `${berthBin}/berth`,
    stdinFile: writeNetConf(place),
    env: callEnvironment(command, place, agent.env),
  };
}

/** Pools of a /24; the first one is the default. */
export function poolManifests(count: number): string {
  return Array.from({ length: count }, (_, index) => {
    const network = `10.${Math.floor(index / 256)}.${index % 256}`;
    return `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: bench-${index}}
spec:
  subnet: ${network}.0/24
  ips: [${network}.2-${network}.254]
  gateway: ${network}.1
  default: ${index === 0}
  cooldown: 0s
`;
  }).join("---\n");
}
