/**
 * The gate: linter, compiler, then the tests kind by kind; `--long` adds the long ones.
 *
 *   npm test                  everything that must hold before a commit
 *   npm run test:long         the same and test/long
 *   npm run test:embeddings   the embeddings alone (`--only KIND`)
 *   npm test -- --ci          in CI: fails as well when a kind takes far more processor time than its budget
 *
 * Everything runs even when something before it has failed. The last line is `N passed, N failed, N unsteady`: the
 * tests, and one each for the linter and the compiler. When a few tests of a kind failed, or hooks of files, their
 * files run once more at the end, when nothing else runs; what passes then is unsteady, and named. A kind without a
 * test, a skipped test, an error outside of the tests and more than a few unsteady tests are failures.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compareSeconds, readSecondsBudgets, writeLastSeconds } from "./seconds.ts";
import { root } from "./setup/paths.mjs";
import {
  addComplaint,
  filesToRepeat,
  MAX_UNSTEADY,
  type Report,
  type Tally,
  tallyReport,
  tallyTwoRuns,
} from "./tally.ts";
import { hasMachine, MachineError, runInMachine, umlVitest } from "./uml/machine.ts";

/** These kinds keep both processors busy, and show their progress. */
const FOREGROUND = ["unit", "property", "simulation", "cluster", "e2e", "embeddings"];
/**
 * These mostly wait, or use one processor. They run beside the others, one after the other; the output of each is
 * printed when it has ended. `uml` comes first, beside tests that only compute; `nodes` then shares the processors
 * with control planes, not with measurements of milliseconds.
 */
const BACKGROUND = [...(hasMachine ? ["uml"] : []), "nodes", "netns", "fuzz"];

interface Stage {
  readonly name: string;
  /** `log`: the file for its output; undefined: the terminal. */
  run(log: string | undefined): Promise<Run>;
  /** Runs the tests of some files again. */
  repeat?(files: readonly string[]): Promise<Run>;
}

interface Run {
  readonly tally: Tally;
  readonly report?: Report | undefined;
}

interface Result extends Run {
  readonly stage: Stage;
  readonly seconds: number;
  /** Processor time of the stage's processes that their parents waited for. */
  readonly cpuSeconds: number;
}

/** Unit of /proc/self/stat: USER_HZ, 100 on every architecture of Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** Seconds of processor time of the children that have ended, and of theirs: proc_pid_stat(5), fields 16 and 17. */
function readChildrenCpu(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

/** Runs one of the npm tools; resolves with the exit code, 1 if a signal ended it. */
async function runTool(name: string, args: readonly string[], log: string | undefined): Promise<number> {
  const file = log === undefined ? undefined : await open(log, "a");
  try {
    return await new Promise((resolve, reject) => {
      const output = file?.fd ?? "inherit";
      const child = spawn(join(root, "node_modules", ".bin", name), args, {
        cwd: root,
        stdio: [file === undefined ? "inherit" : "ignore", output, output],
      });
      child.on("error", reject);
      child.on("exit", (code) => resolve(code ?? 1));
    });
  } finally {
    await file?.close();
  }
}

function toolStage(name: string, tool: string, args: readonly string[]): Stage {
  const run = async (log: string | undefined): Promise<Run> =>
    (await runTool(tool, args, log)) === 0
      ? { tally: { passed: 1, failed: 0, unsteady: 0, complaints: [] } }
      : { tally: { passed: 0, failed: 1, unsteady: 0, complaints: [`${name}: see above`] } };
  return { name, run };
}

/** Runs the tests in a kernel of their own. If it does not boot or does not finish, there is no report. */
async function runInUml(args: readonly string[], directory: string, log: string | undefined): Promise<number> {
  const file = log === undefined ? undefined : await open(log, "a");
  const print = (line: string): void => void (file === undefined ? console.log(line) : file.appendFile(`${line}\n`));
  try {
    return await runInMachine(umlVitest(args), { directory, print });
  } catch (error) {
    if (!(error instanceof MachineError)) throw error;
    print(error.message);
    return 1;
  } finally {
    await file?.close();
  }
}

function testStage(kind: string, directory: string): Stage {
  const runFiles = async (files: readonly string[], log: string | undefined): Promise<Run> => {
    const outputFile = join(directory, `${kind}.json`);
    await rm(outputFile, { force: true });
    const args = ["--reporter=default", "--reporter=json", `--outputFile=${outputFile}`, ...files];
    const exitCode =
      kind === "uml"
        ? await runInUml(args, directory, log)
        : await runTool("vitest", ["run", "--project", kind, ...args], log);
    const text = await readFile(outputFile, "utf8").catch(() => undefined);
    const report = text === undefined ? undefined : (JSON.parse(text) as Report);
    return { tally: tallyReport(kind, exitCode, report), report };
  };
  return { name: `${kind} tests`, run: (log) => runFiles([], log), repeat: (files) => runFiles(files, undefined) };
}

/** Processor time of the stages that have ended: children count when they end, so each stage adds its own. */
let countedCpuSeconds = 0;

async function runStage(stage: Stage, log?: string): Promise<Result> {
  const startMs = performance.now();
  const result = await stage.run(log);
  const before = countedCpuSeconds;
  countedCpuSeconds = readChildrenCpu();
  const cpuSeconds = countedCpuSeconds - before;
  return { ...result, stage, seconds: (performance.now() - startMs) / 1000, cpuSeconds };
}

/**
 * Runs stages beside each other: those of the foreground on this terminal, those of the background into files that
 * are printed between them.
 */
async function runStages(
  foreground: readonly Stage[],
  background: readonly Stage[],
  directory: string,
): Promise<Result[]> {
  const results: Result[] = [];
  const total = foreground.length + background.length;
  const title = ({ name }: Stage, more = ""): void => console.log(`\n[${results.length + 1}/${total}] ${name}${more}`);
  const outputs: { readonly result: Result; readonly text: string }[] = [];
  const printOutputs = (): void => {
    for (const { result, text } of outputs.splice(0)) {
      title(result.stage, `, which ran beside the others for ${result.seconds.toFixed(1)} s`);
      process.stdout.write(text);
      results.push(result);
    }
  };
  const runBackground = async (): Promise<void> => {
    for (const [index, stage] of background.entries()) {
      const log = join(directory, `background-${index}.log`);
      const result = await runStage(stage, log);
      outputs.push({ result, text: await readFile(log, "utf8").catch(() => "") });
    }
  };
  const ending = runBackground();
  ending.catch(() => {});
  for (const stage of foreground) {
    title(stage);
    results.push(await runStage(stage));
    printOutputs();
  }
  const waiting = background.length - outputs.length - results.length + foreground.length;
  if (waiting > 0)
    console.log(
      `\nWaiting for ${background
        .slice(-waiting)
        .map(({ name }) => name)
        .join(", ")}`,
    );
  await ending;
  printOutputs();
  return results;
}

/** Runs the files of a few failed tests again; nothing else runs meanwhile. */
async function lookAgain({ stage, tally, report }: Result): Promise<Tally> {
  const files = filesToRepeat(report, tally);
  if (files.length === 0 || stage.repeat === undefined) return tally;
  console.log(`\n${stage.name} once more: ${files.join(", ")}`);
  return tallyTwoRuns(tally, report, (await stage.repeat(files)).tally);
}

/** `isLimited`: a kind fails, too, when it took far more processor time than its budget. */
async function summarize(results: readonly Result[], isLimited: boolean): Promise<boolean> {
  const budgets = readSecondsBudgets();
  const tallies: Tally[] = [];
  const lines: string[] = [];
  for (const result of results) {
    const { stage, seconds, cpuSeconds } = result;
    const { note, complaint } = compareSeconds(stage.name, cpuSeconds, budgets[stage.name]);
    const tally = addComplaint(await lookAgain(result), isLimited ? complaint : undefined);
    const counts = `${String(tally.passed).padStart(6)} passed ${String(tally.failed).padStart(5)} failed`;
    const times = `${seconds.toFixed(1).padStart(8)} s, ${cpuSeconds.toFixed(0).padStart(4)} s of CPU${note}`;
    lines.push(`${stage.name.padEnd(16)} ${counts} ${times}`, ...tally.complaints.map((each) => `  ${each}`));
    tallies.push(tally);
  }
  const sum = (count: "passed" | "failed" | "unsteady"): number =>
    tallies.reduce((all, tally) => all + tally[count], 0);
  const [passed, failed, unsteady] = [sum("passed"), sum("failed"), sum("unsteady")];
  console.log(`\n${lines.join("\n")}\n\n${passed} passed, ${failed} failed, ${unsteady} unsteady`);
  return failed === 0 && unsteady <= MAX_UNSTEADY;
}

const flag = { type: "boolean", default: false } as const;
const { values } = parseArgs({ options: { long: flag, ci: flag, only: { type: "string" } } });
const directory = await mkdtemp(join(tmpdir(), "berth-test-"));
try {
  if (!hasMachine) console.log(`No uml tests: there is no User-Mode Linux for ${process.arch}`);
  const kindStages = (kinds: readonly string[]): Stage[] => kinds.map((kind) => testStage(kind, directory));
  const tools = [
    toolStage("linter", "biome", ["check", "."]),
    toolStage("compiler", "tsc", ["--noEmit"]),
    toolStage("page's compiler", "tsc", ["--noEmit", "-p", "web"]),
  ];
  const results =
    values.only === undefined
      ? await runStages([...tools, ...kindStages(FOREGROUND)], kindStages(BACKGROUND), directory)
      : await runStages(kindStages([values.only]), [], directory);
  if (values.long) results.push(...(await runStages(kindStages(["long"]), [], directory)));
  const isPassed = await summarize(results, values.ci);
  if (isPassed && values.only === undefined)
    writeLastSeconds(Object.fromEntries(results.map(({ stage, cpuSeconds }) => [stage.name, cpuSeconds])));
  process.exitCode = isPassed ? 0 : 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
