/**
 * The benchmark `start`: from the exec of the agent to its first answer, and the first ADD of a chain beside those that follow it.
 * Effects: a node with an agent, which is stopped and started again and again; pods; empty Node.js processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { eventually } from "../../test/lab/netns-world.ts";
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { type Chain, chainsOf, WHOLE } from "../coordinator/chain.ts";
import { type Node, openNode } from "../coordinator/node.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { atMost, type Bench, type BenchOptions, type BenchReport, type Target } from "../harness/report.ts";
import { runBatch } from "../harness/runner.ts";

const STARTS = 15;
const QUICK_STARTS = 3;
/** ADDs after each start: the first, and those that it is compared with. */
const PODS = 11;
/** After that the agent has rehearsed an ADD, and kept some of its code: milliseconds. */
const REHEARSED_MS = 1_500;
/** An agent that has kept no code for so long has failed: milliseconds. */
const LIMIT_MS = 60_000;
const TARGET_MS = 150;

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
  /** What V8 has compiled before: all that an agent keeps, what an installation leaves, or nothing. */
  readonly code: "all" | "installed" | "none";
}

const COMINGS: Readonly<Record<string, Coming>> = {
  "at once": { restMs: 0, code: "all" },
  "1.5 s later": { restMs: REHEARSED_MS, code: "all" },
  "1.5 s later, first start after an installation": { restMs: REHEARSED_MS, code: "installed" },
  "1.5 s later, first start of all": { restMs: REHEARSED_MS, code: "none" },
};

export const startBench: Bench = { name: "start", run: runStart };

async function runStart({ quick }: BenchOptions): Promise<BenchReport> {
  const directory = join(root, ".scratch", `bench-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  const node = await openNode(`bench-${process.pid}`, directory, 0);
  try {
    const chain = chainsOf(node).find(({ row }) => row.name === WHOLE);
    if (chain === undefined) throw new Error(`There is no chain ${WHOLE}`);
    await keepCode(node, chain);
    const starts: Record<string, Start[]> = {};
    for (let round = 0; round < (quick ? QUICK_STARTS : STARTS); round++)
      for (const [name, coming] of Object.entries(COMINGS)) {
        starts[name] ??= [];
        starts[name].push(await measureStart(node, chain, coming));
      }
    return {
      tables: [tabulate(starts)],
      targets: targetsOf(starts),
      notes: NOTES,
      versions: { macvlan: referenceTool("plugins").version },
      raw: starts,
    };
  } finally {
    await node.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The agent serves as many pods as it needs to keep all of its code, and keeps it: a second after its start some, and all when it has looked again after the calls. */
async function keepCode({ agent, netns, pods }: Node, { add, del }: Chain): Promise<void> {
  const first = await pods.make(PODS, () => ({ kind: "none" }));
  const sizes = new Set<number>();
  const waitForCode = async (count: number): Promise<void> => {
    const look = async (): Promise<number> => {
      for (const name of readdirSync(agent.codeCache, { recursive: true, encoding: "utf8" }))
        if (name.endsWith(".code")) sizes.add(statSync(join(agent.codeCache, name)).size);
      return sizes.size;
    };
    const kept = await eventually(look, (found) => found >= count, LIMIT_MS);
    if (kept < count) throw new Error(`The agent has not kept its code within ${LIMIT_MS} ms`);
  };
  await waitForCode(1);
  await runBatch({ subject: add, atOnce: 1, first, count: PODS }, netns);
  await runBatch({ subject: del, atOnce: 1, first, count: PODS }, netns);
  await pods.remove(first, PODS);
  await waitForCode(2);
}

async function measureStart(node: Node, { add, del }: Chain, coming: Coming): Promise<Start> {
  const { agent, netns, pods, directory } = node;
  requireUninterrupted();
  const emptyMs = await runEmptyNode();
  const first = await pods.make(PODS, () => ({ kind: "none" }));
  await agent.stop();
  const codeCache = coming.code === "all" ? agent.codeCache : join(directory, "code");
  if (coming.code !== "all") rmSync(codeCache, { recursive: true, force: true });
  if (coming.code === "installed") await installInto(codeCache);
  const fromMs = performance.now();
  await agent.start({ NODE_COMPILE_CACHE: codeCache });
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

/** What an installation does, as far as it leaves code. */
async function installInto(codeCache: string): Promise<void> {
  const program = join(root, "dist", "berth-agent.mjs");
  const status = await runNode([program, "install", "--dry-run"], { NODE_COMPILE_CACHE: codeCache });
  if (status !== 0) throw new Error(`The installation ended with ${status}`);
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

function targetsOf(starts: Readonly<Record<string, readonly Start[]>>): Target[] {
  const startsWith = (code: Coming["code"]): Start[] =>
    Object.entries(starts).flatMap(([name, some]) => (COMINGS[name]?.code === code ? some : []));
  return [
    targetOf("from the exec of the agent to its first answer", startsWith("all")),
    targetOf("the same, first start after an installation", startsWith("installed")),
    targetOf("the same, first start of all", startsWith("none")),
    ...Object.entries(starts).map(([coming, each]) =>
      atMost({
        ...{ what: `first ADD after the start, ${coming}`, limit: 2, base: "the median of the next ten" },
        ...{ valueMs: medianOf(each, ({ firstMs }) => firstMs), baseMs: medianOf(each, ({ laterMs }) => laterMs) },
      }),
    ),
  ];
}

function targetOf(what: string, starts: readonly Start[]): Target {
  const answerMs = medianOf(starts, (start) => start.answerMs);
  const floorMs = medianOf(starts, (start) => start.emptyMs);
  return {
    what,
    wanted: `≤ ${TARGET_MS} ms`,
    measured: `${formatFigure(answerMs)} ms (floor ${formatFigure(floorMs)})`,
    isMet: answerMs <= TARGET_MS,
  };
}

const NOTES = [
  "Milliseconds. The agent has no cluster, two pools and the registry of the starts before. It is asked for its health when its socket is there, until the first byte of an answer.",
  "The chain is macvlan + berth + coordinator, exec to exit, one ADD after the other: the first one after the start, and the median of the next ten. When it has started and no call came for 0.1 s the agent rehearses an ADD of both plugins.",
  "The agent's code is kept from start to start, as the service and the chart have it (NODE_COMPILE_CACHE), and an agent has served pods before. The first start in a new pod of the DaemonSet, or of a new version on a host, finds what the installation has left; at a first start of all there is nothing.",
  "The floor of a start is an empty Node.js from exec to exit.",
];
