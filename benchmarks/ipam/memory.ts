/**
 * The agent's memory: just started and at rest, with many pools and pods, during many ADDs and DELs and when they have ended; beside it an empty Node.js.
 * Effects: agents, one after the other; those of ../harness/memory.ts; plugins.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { formatFigure, type Table } from "../../test/lab/statistics.ts";
import { type MemoryFigure, readEmptyNode, readMemory } from "../harness/memory.ts";
import type { BenchOptions, Target } from "../harness/report.ts";
import { runBatch, type Subject } from "../harness/runner.ts";
import { writeNetConf } from "./berth.ts";
import { callEnvironment, type Place } from "./contestant.ts";

const POOLS = 1_000;
const PODS = 110;
const CYCLES = 100_000;
const QUICK_CYCLES = 500;

/** After so long without a call the agent has returned what it does not need: milliseconds. */
const QUIET_MS = 10_000;

/** ADDs, then as many DELs. With the pods that stay they fit into one pool. */
const CYCLES_PER_ROUND = 100;
/** Of which so many are under way at any time: 100,000 cycles take a minute so, and two and a half one after the other. */
const AT_ONCE = 40;

interface Figure extends MemoryFigure {
  readonly rssLimitMb: number | undefined;
}

interface MemoryReport {
  readonly table: Table;
  readonly targets: readonly Target[];
  readonly figures: readonly Figure[];
}

/** The anonymous part of each row that has a limit. */
const ANONYMOUS_LIMIT_MB = 55;

export async function measureMemory(place: Place, { quick }: BenchOptions): Promise<MemoryReport> {
  const cycles = quick ? QUICK_CYCLES : CYCLES;
  const figures: Figure[] = [
    { ...(await readEmptyNode()), rssLimitMb: undefined },
    ...(await readSmallAgent()),
    ...(await readLargeAgent(place, cycles)),
  ];
  const rows = figures.map(({ name, rssMb, anonymousMb }) => [name, formatFigure(rssMb), formatFigure(anonymousMb)]);
  return {
    table: { title: "Memory of the agent", columns: ["MB", "resident", "of it anonymous"], rows },
    targets: figures.flatMap(targetsOf),
    figures,
  };
}

function targetsOf({ name, rssMb, anonymousMb, rssLimitMb }: Figure): Target[] {
  if (rssLimitMb === undefined) return [];
  const target = (part: string, measuredMb: number, limitMb: number): Target => ({
    what: `${part} memory: ${name}`,
    wanted: `≤ ${limitMb} MB`,
    measured: `${formatFigure(measuredMb)} MB`,
    isMet: measuredMb <= limitMb,
  });
  return [target("resident", rssMb, rssLimitMb), target("anonymous", anonymousMb, ANONYMOUS_LIMIT_MB)];
}

function readFigure(name: string, pid: number, rssLimitMb?: number): Figure {
  return { ...readMemory(name, pid), rssLimitMb };
}

async function readSmallAgent(): Promise<Figure[]> {
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(1) } });
  try {
    const started = readFigure("just started, 1 pool", agent.pid);
    await sleep(QUIET_MS);
    return [started, readFigure("at rest, 1 pool", agent.pid, 90)];
  } finally {
    await agent.delete();
  }
}

async function readLargeAgent(place: Place, cycles: number): Promise<Figure[]> {
  const agent = await startAgent({ config: { "pools.yaml": poolManifests(POOLS) }, readyMs: 120_000 });
  try {
    const started = readFigure(`just started, ${POOLS} pools`, agent.pid);
    await runBatch({ subject: subjectOf(agent, place, "ADD"), atOnce: 1, first: 0, count: PODS });
    const added = readFigure(`${POOLS} pools, after ${PODS} ADDs`, agent.pid);
    await sleep(QUIET_MS);
    const many = readFigure(`${POOLS} pools, ${PODS} pods`, agent.pid, 110);
    let most = many;
    for (let done = 0; done < cycles; done += CYCLES_PER_ROUND) {
      const batch = { atOnce: AT_ONCE, first: PODS + done, count: CYCLES_PER_ROUND };
      await runBatch({ subject: subjectOf(agent, place, "ADD"), ...batch });
      await runBatch({ subject: subjectOf(agent, place, "DEL"), ...batch });
      const now = readFigure(`the most during ${cycles} ADDs and DELs`, agent.pid);
      if (now.rssMb > most.rssMb || done === 0) most = now;
    }
    const loaded = readFigure(`the same after ${cycles} ADDs and DELs, ${AT_ONCE} at once`, agent.pid, 110);
    await sleep(QUIET_MS);
    const quiet = readFigure(`${QUIET_MS / 1000} s later`, agent.pid, 110);
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
