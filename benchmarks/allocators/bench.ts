/**
 * The benchmark of allocators: `npm run bench:allocators [-- --only NAME]... [-- --shapes NAME]... [-- --wait SECONDS]`.
 *
 * The same pools for everybody: the allocation code of other projects, alone, and the core in every runtime. On each pool
 * the programs take turns, one at a time. A full run writes README.md beside this file and the raw figures in benchmarks/results; any other only prints.
 * Effects: child processes; a temporary folder; the page and the results.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { root } from "../../scripts/setup/paths.mjs";
import { WAIT_S, waitUntilQuiet } from "../harness/quiet.ts";
import { type BenchReport, formatReport, readMachine, writeResults } from "../harness/report.ts";
import { type Contest, decodeLine, type Figure, hasFewSamples, isFigure, mergeTurns, type Word } from "./contest.ts";
import { CONTESTANTS, type Contestant } from "./contestants.ts";
import { renderPage, reportOf } from "./page.ts";
import { SHAPES, type Shape, writeShapes } from "./shapes.ts";
import { formatNs } from "./tabulate.ts";
import { isClaimed } from "./targets.ts";

/** How often each program runs on a pool. */
const TURNS = 3;

/** The slowest peer needs minutes for its largest pool. */
const MOST_MS = 1_800_000;

/** Of what the user named, those there are; all of none. Throws on a name that is not there. */
function choose<T extends { readonly name: string }>(all: readonly T[], names: readonly string[] = []): readonly T[] {
  const unknown = names.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined)
    throw new Error(`There is no "${unknown}", only ${all.map(({ name }) => name).join(", ")}`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

function describeSaid(said: Figure | Word): string {
  return [said.shape, said.form, isFigure(said) ? formatNs(said.ns) : said.text]
    .filter((part) => part !== "")
    .join(": ");
}

/** What a contestant's program says. When it fails, a word without a pool tells so. */
async function play({ name, command }: Contestant, folder: string): Promise<(Figure | Word)[]> {
  const failed = (text: string): Word => ({ runtime: name, shape: "", form: "refusal", text });
  const [file = "", ...args] = command;
  const missing = command.find((word) => word.startsWith("/") && !existsSync(word.replace(/\/\*$/, "")));
  if (missing !== undefined) return [failed(`${relative(root, missing)} is not built`)];
  const child = spawn(file, [...args, folder], { stdio: ["ignore", "pipe", "pipe"], timeout: MOST_MS });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors = (errors + text).slice(-2000);
  });
  const ended = new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => resolve(code === 0 ? "" : `ended with ${code ?? signal}: ${errors.trim()}`));
  });
  const all: (Figure | Word)[] = [];
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const said = decodeLine(line);
      console.log(`  ${describeSaid(said)}`);
      all.push(said);
    }
  } catch (error) {
    child.kill();
    await ended;
    return [...all, failed((error as Error).message)];
  }
  const failure = await ended;
  return failure === "" ? all : [...all, failed(failure)];
}

async function runContest(
  contestants: readonly Contestant[],
  shapeNames: readonly string[] | undefined,
): Promise<Contest> {
  const shapes = choose(SHAPES, shapeNames);
  const all: (Figure | Word)[] = [];
  for (const shape of shapes) all.push(...(await playOnShape(contestants, shape)));
  const said = mergeTurns(all);
  return {
    shapes: shapes.map(({ name }) => name),
    contestants,
    figures: said.filter(isFigure),
    words: said.filter((each) => !isFigure(each)),
  };
}

const competes = ({ kind, name }: Contestant): boolean => kind === "peer" || isClaimed(name);

/** Seconds that each program has run for, by its label. */
const seconds = new Map<string, number>();

async function playTimed(contestant: Contestant, folder: string): Promise<(Figure | Word)[]> {
  const startMs = performance.now();
  const said = await play(contestant, folder);
  seconds.set(contestant.label, (seconds.get(contestant.label) ?? 0) + (performance.now() - startMs) / 1000);
  return said;
}

function describeSeconds(): string {
  const slowest = [...seconds].sort(([, a], [, b]) => b - a);
  return slowest.map(([label, spent]) => `${label} ${spent.toFixed(0)}`).join(", ");
}

/**
 * A program that could take few samples only, or none, has one turn: it needs minutes, and is not among the fastest. So has a runtime of which no target
 * tells.
 */
async function playOnShape(contestants: readonly Contestant[], shape: Shape): Promise<(Figure | Word)[]> {
  const folder = mkdtempSync(join(tmpdir(), "berth-allocators-"));
  try {
    writeShapes(folder, [shape]);
    const all: (Figure | Word)[] = [];
    let inPlay = contestants;
    for (let turn = 1; turn <= TURNS; turn++) {
      const again: Contestant[] = [];
      for (const contestant of inPlay) {
        console.log(`${shape.name}, turn ${turn}: ${contestant.label}`);
        const said = await playTimed(contestant, folder);
        all.push(...said);
        const figures = said.filter(isFigure);
        if (figures.length > 0 && !figures.some(hasFewSamples) && competes(contestant)) again.push(contestant);
      }
      inPlay = again;
    }
    return all;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    shapes: { type: "string", multiple: true },
    wait: { type: "string", default: `${WAIT_S}` },
  },
});
const isWhole = values.only === undefined && values.shapes === undefined;
const machine = readMachine(await waitUntilQuiet({ limitS: isWhole ? Number(values.wait) : 0 }));
const contest = await runContest(choose(CONTESTANTS, values.only), values.shapes);
const report: BenchReport = reportOf(contest);
const text = formatReport(report, machine, !isWhole);
console.log(`\n${text}\n\nSeconds: ${describeSeconds()}`);
if (isWhole) {
  writeFileSync(join(import.meta.dirname, "README.md"), renderPage(text));
  console.log(`Raw figures: ${await writeResults("allocators", machine, report)}`);
}
