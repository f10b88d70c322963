/**
 * The gate: the linter, the compilers and the tests, kind by kind.
 *
 *   npm test              everything that must hold before a commit
 *   npm test -- --ci      in CI: nothing is left out; fails as well when a kind takes far more processor time than its
 *                         budget, and when the long run is too old
 *   npm run check         linter, compiler, unit tests, and property tests of files that changed since they ran
 *   npm run test:long     all cases, and test/long; continues where it was interrupted
 *
 * Everything runs even when something before it has failed. The last line is `N passed, N failed, N unsteady`: the
 * tests, and one each for the linter, the compiler and a set-up. When a few tests of a kind failed, or hooks of files,
 * their files run once more at the end, when nothing else runs; tests that pass then are unsteady, and named. A kind
 * without a test, a skipped test, an error outside of the tests and more than a few unsteady tests are failures.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdtempDisposable, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  readChanged,
  readGreen,
  readProgress,
  readStamp,
  readTree,
  writeGreen,
  writeProgress,
  writeStamp,
} from "./last-runs.ts";
import { compareSeconds, readSecondsBudgets, slownessOf, writeLastSeconds } from "./seconds.ts";
import { hasPackage, root } from "./setup/paths.mjs";
import { findIdle, readImports } from "./suites.ts";
import {
  addComplaint,
  filesToRepeat,
  MAX_UNSTEADY,
  NOTHING,
  type Report,
  type Tally,
  tallyReport,
  tallyTwoRuns,
} from "./tally.ts";
import { hasMachine } from "./uml/machine.ts";

/** Of the house, and of the packages beside it. */
const TESTS = "{test,packages/*/test}";
/** These kinds keep the processors busiest, and show their progress. */
const FOREGROUND = ["unit", "cluster", "e2e"];
/**
 * These mostly wait, or use one processor. Each row runs beside the others, its kinds one after the other, the first
 * one after the linter and the compilers; their output is printed at the end. Computing kinds come first, beside other
 * computing tests; e2e tests measure milliseconds.
 */
const BACKGROUND = [
  ["nodes", "embeddings"],
  [...(hasMachine ? ["uml"] : []), "property", "simulation", "fuzz", "netns"],
];
/** Has a compiler of its own: it runs in a browser. */
const PAGE = join(root, "packages", "map", "page");
/** Commits after which CI wants another long run. */
const MAX_LONG_AGE = 400;
/** vitest runs the tests that have loaded a changed file, or have failed. */
const SINCE_LAST_RUN = "--since-last-run";

const flag = { type: "boolean", default: false } as const;
const { values } = parseArgs({ options: { check: flag, long: flag, ci: flag } });
const isGate = !values.check && !values.long;

await using place = await mkdtempDisposable(join(tmpdir(), "berth-test-"));
const tree = readTree();
const green = isGate && !values.ci ? readGreen() : undefined;
const idle = green === undefined ? [] : findIdle(readChanged(green, tree), readImports());
const isWhole = isGate && idle.length === 0;
const left = idle.flatMap(({ tests }) => tests);
if (idle.length > 0) process.env.BERTH_LEFT_OUT = left.map((each) => `${each}**`).join();
// For test/world/long-cases.ts.
if (values.long) process.env.BERTH_LONG = "1";
const progress = values.long ? readProgress<Counts>(tree) : {};
const stamp = readStamp();

interface Stage {
  readonly name: string;
  /** `log`: the file for its output; undefined: the terminal. `files`: those of its tests to run, default all. */
  run(log: string | undefined, files?: readonly string[]): Promise<Run>;
}

interface Run {
  readonly tally: Tally;
  readonly report?: Report | undefined;
}

interface Counts {
  readonly tally: Tally;
  readonly seconds: number;
  /** Processor time of the stage's processes that their parents waited for. */
  readonly cpuSeconds: number;
}

type Result = Run & Counts & { readonly stage: Stage };

/** Unit of /proc/self/stat: USER_HZ, 100 on every architecture of Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** Seconds of processor time of the children that have ended, and of theirs: proc_pid_stat(5), fields 16 and 17. */
function readChildrenCpu(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

/** Runs one of the npm tools; resolves with the exit code, 1 if a signal ended it. */
async function runTool([name = "", ...args]: readonly string[], log: string | undefined): Promise<number> {
  await using file = log === undefined ? undefined : await open(log, "a");
  return await new Promise((resolve, reject) => {
    const output = file?.fd ?? "inherit";
    const child = spawn(join(root, "node_modules", ".bin", name), args, {
      cwd: root,
      stdio: [file === undefined ? "inherit" : "ignore", output, output],
    });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

/** A stage that passes or fails as a whole. */
const wholeStage = (name: string, test: (log: string | undefined) => Promise<boolean>, complaint: string): Stage => ({
  name,
  run: async (log) => ({ tally: (await test(log)) ? { ...NOTHING, passed: 1 } : addComplaint(NOTHING, complaint) }),
});

const toolStage = (name: string, ...words: readonly string[]): Stage =>
  wholeStage(name, async (log) => (await runTool(words, log)) === 0, `${name}: see above`);

const ageStage = (): Stage =>
  wholeStage(
    "long run",
    async () => stamp.commits <= MAX_LONG_AGE,
    `npm run test:long ran ${stamp.text}: too long ago`,
  );

/** `more`: further words for vitest. */
function testStage(kind: string, more: readonly string[] = [], name = `${kind} tests`): Stage {
  const outputFile = join(place.path, `${name.replaceAll("/", " ")}.json`);
  const start = kind === "uml" ? ["node", "scripts/uml.ts"] : ["vitest", "run", "--project", kind];
  const words = [...start, ...more, "--reporter=default", "--reporter=json", `--outputFile=${outputFile}`];
  const run = async (log: string | undefined, files: readonly string[] = []): Promise<Run> => {
    await rm(outputFile, { force: true });
    const exitCode = await runTool([...words, ...files], log);
    const text = await readFile(outputFile, "utf8").catch(() => undefined);
    const report = text === undefined ? undefined : (JSON.parse(text) as Report);
    return { tally: tallyReport(name, exitCode, report, more.includes(SINCE_LAST_RUN)), report };
  };
  return { name, run };
}

/** Only the embeddings need their set-up, of which most parts use one processor: it runs beside other tests. */
const setUpStages = (kind: string): Stage[] =>
  kind === "embeddings" ? [toolStage("embeddings' set-up", "node", "scripts/setup.mjs", kind)] : [];

const kindStages = (kinds: readonly string[]): Stage[] =>
  kinds.filter((kind) => !left.includes(`test/${kind}/`)).flatMap((kind) => [...setUpStages(kind), testStage(kind)]);

/** A long run that is interrupted continues with these. */
function keep({ name }: Stage, counts: Counts): void {
  if (counts.tally.failed === 0) progress[name] = counts;
  if (values.long) writeProgress(tree, progress);
}

/** Processor time of the stages that have ended: children count when they end, so each stage adds its own. */
let countedCpuSeconds = 0;

async function runStage(stage: Stage, log?: string): Promise<Result> {
  const done = progress[stage.name];
  if (done !== undefined) return { ...done, stage };
  const startMs = performance.now();
  const run = await stage.run(log);
  const before = countedCpuSeconds;
  countedCpuSeconds = readChildrenCpu();
  const counts = { seconds: (performance.now() - startMs) / 1000, cpuSeconds: countedCpuSeconds - before };
  keep(stage, { ...counts, tally: run.tally });
  return { ...run, ...counts, stage };
}

/** Runs stages beside each other: those of the foreground on this terminal, rows of the background into files. */
async function runStages(foreground: readonly Stage[], rows: readonly (readonly Stage[])[]): Promise<Result[]> {
  const background = rows.flat();
  const logOf = (stage: Stage): string => join(place.path, `${background.indexOf(stage)}.log`);
  const all = [...foreground, ...background];
  const show = (stage: Stage): undefined =>
    void console.log(`\n[${all.indexOf(stage) + 1}/${all.length}] ${stage.name}`);
  const results: Result[] = [];
  const besideResults: Result[] = [];
  const beside = rows.map(async (row) => {
    for (const stage of row) besideResults.push(await runStage(stage, logOf(stage)));
  });
  for (const stage of foreground) results.push(await runStage(stage, show(stage)));
  const waiting = background.filter((stage) => besideResults.every((done) => done.stage !== stage));
  if (waiting.length > 0) console.log(`\nWaiting for ${waiting.map(({ name }) => name).join(", ")}`);
  await Promise.all(beside);
  for (const stage of background) {
    show(stage);
    process.stdout.write(await readFile(logOf(stage), "utf8").catch(() => ""));
  }
  return [...results, ...besideResults];
}

/** Runs the files of a few failed tests again; nothing else runs meanwhile. */
async function lookAgain({ stage, tally, report, seconds, cpuSeconds }: Result): Promise<Tally> {
  const files = filesToRepeat(report, tally);
  if (files.length === 0) return tally;
  console.log(`\n${stage.name} once more: ${files.join(", ")}`);
  const both = tallyTwoRuns(tally, report, (await stage.run(undefined, files)).tally);
  keep(stage, { tally: both, seconds, cpuSeconds });
  return both;
}

/** The parts of the long run that this one lacks: a line for each kind, and for each suite that was left out. */
function describeNotRun(results: readonly Result[]): string[] {
  const kinds = [...FOREGROUND, ...BACKGROUND.flat(), "long"].flatMap((kind) => {
    const files = globSync(`${TESTS}/${kind}/**/*${kind === "long" ? "" : ".long"}.test.ts`, { cwd: root }).length;
    const cases = results.find(({ stage }) => stage.name === `${kind} tests`)?.tally.toDo ?? 0;
    return files + cases === 0 ? [] : [`  ${kind}: ${cases} cases, ${files} files`];
  });
  return [...kinds, ...idle.map(({ name }) => `  ${name}: nothing that it looks at has changed since ${green?.name}`)];
}

const secondsOf = (results: readonly Result[]): Record<string, number> =>
  Object.fromEntries(results.map(({ stage, cpuSeconds }) => [stage.name, cpuSeconds]));

/** Prints the table, and returns its last line, and whether it is good. */
async function summarize(results: readonly Result[]): Promise<{ readonly isPassed: boolean; readonly result: string }> {
  const budgets = isWhole ? readSecondsBudgets() : {};
  const slowness = slownessOf(secondsOf(results), budgets);
  const width = Math.max(...results.map(({ stage }) => stage.name.length));
  const tallies: Tally[] = [];
  const lines: string[] = [];
  for (const each of results) {
    const { stage, seconds, cpuSeconds } = each;
    const { note, complaint } = compareSeconds(stage.name, cpuSeconds / slowness, budgets[stage.name]);
    const toDo = values.long && each.tally.toDo > 0 ? `${stage.name}: ${each.tally.toDo} tests are to do` : undefined;
    const tally = addComplaint(await lookAgain(each), values.ci ? complaint : toDo);
    const counts = `${String(tally.passed).padStart(6)} passed ${String(tally.failed).padStart(5)} failed`;
    const times = `${seconds.toFixed(1).padStart(8)} s, ${cpuSeconds.toFixed(0).padStart(4)} s of CPU${note}`;
    lines.push(`${stage.name.padEnd(width)} ${counts} ${times}`, ...tally.complaints.map((text) => `  ${text}`));
    tallies.push(tally);
  }
  if (slowness > 1)
    lines.push("", `Budgets are multiplied by ${slowness.toFixed(2)}, as most kinds take longer on this machine`);
  if (isGate) lines.push("", `Not run here, but by npm run test:long, ${stamp.text}:`, ...describeNotRun(results));
  const sum = (count: "passed" | "failed" | "unsteady"): number =>
    tallies.reduce((all, tally) => all + tally[count], 0);
  const [passed, failed, unsteady] = [sum("passed"), sum("failed"), sum("unsteady")];
  const result = `${passed} passed, ${failed} failed, ${unsteady} unsteady`;
  console.log(`\n${lines.join("\n")}\n\n${result}`);
  return { isPassed: failed === 0 && unsteady <= MAX_UNSTEADY, result };
}

async function runAll(): Promise<Result[]> {
  const tools = [
    toolStage("linter", "biome", "check", "."),
    toolStage("compiler", "tsc"),
    ...(hasPackage("map") ? [toolStage("page's compiler", "tsc", "-p", PAGE)] : []),
  ];
  if (values.check) return runStages([testStage("unit"), testStage("property", [SINCE_LAST_RUN])], [tools]);
  if (values.ci) tools.push(ageStage());
  const [first = [], ...rows] = BACKGROUND.map(kindStages);
  const files = values.long ? globSync(`${TESTS}/long/**/*.test.ts`, { cwd: root }).sort() : [];
  const long = files.map((file) => testStage("long", [file], file));
  return runStages([...kindStages(FOREGROUND), ...long], [[...tools, ...first], ...rows]);
}

if (!hasMachine) console.log(`No uml tests: there is no User-Mode Linux for ${process.arch}`);
const results = await runAll();
const { isPassed, result } = await summarize(results);
process.exitCode = isPassed ? 0 : 1;
// A run counts for the files that it began with.
const isSame = readTree().hash === tree.hash;
if (!isSame) console.log("Files have changed meanwhile, so that no later run builds on this one");
if (isSame && values.long) writeStamp(tree, result);
if (isSame && isPassed && !values.check) {
  writeGreen(tree);
  if (values.long) writeProgress(tree, {});
  if (isWhole) writeLastSeconds(secondsOf(results));
}
