/**
 * The benchmark `start`: from the exec of the agent to its first answer, and the first ADD of a chain beside those
 * that follow it.
 * Effects: a node with an agent, which is stopped and started again and again; pods; empty Node.js processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { type Chain, chainsOf, WHOLE } from "../coordinator/chain.ts";
import { type Node, openNode } from "../coordinator/node.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { runBatch } from "../harness/runner.ts";

const STARTS = 15;
const QUICK_STARTS = 3;
/** ADDs after each start: the first, and those that it is compared with. */
const PODS = 11;

/** What one start took. */
interface Start {
  /** From the exec of an empty Node.js to its end. */
  readonly emptyMs: number;
  /** From the exec to the first answer. */
  readonly answerMs: number;
  readonly firstMs: number;
  /** The median of the ADDs after the first. */
  readonly laterMs: number;
}

interface Coming {
  /** When the first pod comes: after the first answer, milliseconds. */
  readonly restMs: number;
  /** Whether Node.js finds what V8 has compiled in an earlier start. */
  readonly hasCode: boolean;
}

const COMINGS: Readonly<Record<string, Coming>> = {
  "at once": { restMs: 0, hasCode: true },
  "1.5 s later": { restMs: 1_500, hasCode: true },
  "at once, first start of all": { restMs: 0, hasCode: false },
};

export const startBench: Bench = { name: "start", run: runStart };

async function runStart({ quick }: BenchOptions): Promise<BenchReport> {
  const directory = join(root, ".scratch", `bench-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  const node = await openNode(`bench-${process.pid}`, directory, 0);
  try {
    const chain = chainsOf(node).find(({ row }) => row.name === WHOLE);
    if (chain === undefined) throw new Error(`There is no chain ${WHOLE}`);
    const starts: Record<string, Start[]> = {};
    for (let round = 0; round < (quick ? QUICK_STARTS : STARTS); round++)
      for (const [name, coming] of Object.entries(COMINGS)) {
        starts[name] ??= [];
        starts[name].push(await measureStart(node, chain, coming));
      }
    return {
      tables: [tabulate(starts)],
      targets: [],
      notes: NOTES,
      versions: { macvlan: referenceTool("plugins").version },
      raw: starts,
    };
  } finally {
    await node.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measureStart(node: Node, { add, del }: Chain, coming: Coming): Promise<Start> {
  const { agent, netns, pods } = node;
  requireUninterrupted();
  const emptyMs = await runEmptyNode();
  const first = await pods.make(PODS, () => ({ kind: "none" }));
  await agent.stop();
  if (!coming.hasCode) rmSync(agent.codeCache, { recursive: true, force: true });
  const fromMs = performance.now();
  await agent.start();
  const answerMs = performance.now() - fromMs;
  await sleep(coming.restMs);
  const added = await runBatch({ subject: add, atOnce: 1, first, count: PODS }, netns);
  await runBatch({ subject: del, atOnce: 1, first, count: PODS }, netns);
  await pods.remove(first, PODS);
  const [firstMs = Number.NaN, ...laterMs] = added.samples.map(({ wallMs }) => wallMs);
  return { emptyMs, answerMs, firstMs, laterMs: percentile(laterMs, 0.5) };
}

async function runEmptyNode(): Promise<number> {
  const fromMs = performance.now();
  await runNode(["--eval", "0"], {});
  return performance.now() - fromMs;
}

async function runNode(args: readonly string[], env: NodeJS.ProcessEnv): Promise<unknown> {
  const child = spawn(process.execPath, args, { stdio: "ignore", env: { ...process.env, ...env } });
  const [status] = await once(child, "exit");
  return status;
}

const medianOf = (starts: readonly Start[], figure: (start: Start) => number): number =>
  percentile(starts.map(figure), 0.5);

const ratioOf = ({ firstMs, laterMs }: Start): number => firstMs / laterMs;

function tabulate(starts: Readonly<Record<string, readonly Start[]>>): Table {
  return {
    title: "A start of the agent, medians",
    columns: [
      ...["the first pod comes", "empty Node.js", "agent: first answer", "shortest", "longest"],
      ...["first ADD of a chain", "later ADDs", "ratio"],
    ],
    rows: Object.entries(starts).map(([coming, all]) => [
      coming,
      ...[
        medianOf(all, ({ emptyMs }) => emptyMs),
        ...[0.5, 0, 1].map((share) =>
          percentile(
            all.map(({ answerMs }) => answerMs),
            share,
          ),
        ),
        medianOf(all, ({ firstMs }) => firstMs),
        medianOf(all, ({ laterMs }) => laterMs),
        medianOf(all, ratioOf),
      ].map(formatFigure),
    ]),
  };
}

const NOTES = [
  "Milliseconds. The agent has no cluster, two pools and the registry of the starts before. It is asked for its health when its socket is there, until the first byte of an answer.",
  "The chain is macvlan + berth + coordinator, exec to exit, one ADD after the other: the first one after the start, and the median of the next ten.",
  "Node.js finds what V8 has compiled in an earlier start, as the service and the chart have it (NODE_COMPILE_CACHE), but at a first start of all.",
  "The floor of a start is an empty Node.js from exec to exit.",
];
