/**
 * The gate: linter, compiler, then the tests kind by kind; `--long` adds the long ones.
 *
 *   npm test                  everything that must hold before a commit
 *   npm run test:long         the same and test/long
 *   npm run test:embeddings   the embeddings alone (`--only KIND`)
 *
 * Everything runs even when something before it has failed. The last line is `N passed, N failed, N unsteady`: the tests, and one each
 * for the linter and the compiler. Files in which a few tests failed run once more by themselves; what passes then is unsteady, and named.
 * A kind without a test, a skipped test, an error outside of the tests and more than a few unsteady tests are failures.
 * Effects: starts the tools and prints; vitest's results pass through a temporary folder.
 */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./setup/paths.mjs";
import { filesToLookAtAgain, MAX_UNSTEADY, type Report, type Tally, tallyReport, tallyTwoLooks } from "./tally.ts";
import { hasMachine, MachineError, runInMachine, umlVitest } from "./uml/machine.ts";

interface Stage {
  readonly name: string;
  run(): Promise<Tally>;
}

/** `uml` tests boot a kernel of their own; where there is none for the processor, the gate says so. */
const KINDS = ["unit", "property", "netns", "cluster", "nodes", "e2e", "embeddings", ...(hasMachine ? ["uml"] : [])];

/** Runs one of the npm tools with this terminal; gives the exit code, 1 when a signal ended it. */
function runTool(name: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(join(root, "node_modules", ".bin", name), args, { cwd: root, stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

function toolStage(name: string, tool: string, args: readonly string[]): Stage {
  const run = async (): Promise<Tally> =>
    (await runTool(tool, args)) === 0
      ? { passed: 1, failed: 0, unsteady: 0, complaints: [] }
      : { passed: 0, failed: 1, unsteady: 0, complaints: [`${name}: see above`] };
  return { name, run };
}

/** In a kernel of its own. One that did not boot, or did not come to the end, leaves no report. */
async function runInUml(args: readonly string[], directory: string): Promise<number> {
  try {
    return await runInMachine(umlVitest(args), { directory });
  } catch (error) {
    if (!(error instanceof MachineError)) throw error;
    console.error(error.message);
    return 1;
  }
}

interface Look {
  readonly tally: Tally;
  readonly report: Report | undefined;
}

/** Runs the tests of a kind, all or those of some files. */
async function look(kind: string, directory: string, files: readonly string[]): Promise<Look> {
  const outputFile = join(directory, `${kind}.json`);
  await rm(outputFile, { force: true });
  const args = ["--reporter=default", "--reporter=json", `--outputFile=${outputFile}`, ...files];
  const exitCode =
    kind === "uml" ? await runInUml(args, directory) : await runTool("vitest", ["run", "--project", kind, ...args]);
  const text = await readFile(outputFile, "utf8").catch(() => undefined);
  const report = text === undefined ? undefined : (JSON.parse(text) as Report);
  return { tally: tallyReport(kind, exitCode, report), report };
}

function testStage(kind: string, directory: string): Stage {
  const run = async (): Promise<Tally> => {
    const { tally, report } = await look(kind, directory, []);
    const files = filesToLookAtAgain(report, tally);
    if (files.length === 0) return tally;
    console.log(`\nOnce more by themselves: ${files.join(", ")}`);
    return tallyTwoLooks(tally, (await look(kind, directory, files)).tally);
  };
  return { name: `${kind} tests`, run };
}

async function runStages(stages: readonly Stage[]): Promise<boolean> {
  let passed = 0;
  let failed = 0;
  let unsteady = 0;
  const lines: string[] = [];
  for (const [index, { name, run }] of stages.entries()) {
    console.log(`\n[${index + 1}/${stages.length}] ${name}`);
    const startMs = performance.now();
    const tally = await run();
    passed += tally.passed;
    failed += tally.failed;
    unsteady += tally.unsteady;
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    lines.push(
      `${name.padEnd(16)} ${String(tally.passed).padStart(6)} passed ${String(tally.failed).padStart(5)} failed ${seconds.padStart(8)} s`,
    );
    lines.push(...tally.complaints.map((complaint) => `  ${complaint}`));
  }
  console.log(`\n${lines.join("\n")}\n\n${passed} passed, ${failed} failed, ${unsteady} unsteady`);
  return failed === 0 && unsteady <= MAX_UNSTEADY;
}

const { values } = parseArgs({ options: { long: { type: "boolean", default: false }, only: { type: "string" } } });
const directory = await mkdtemp(join(tmpdir(), "berth-test-"));
try {
  if (!hasMachine) console.log(`No uml tests: there is no User-Mode Linux for ${process.arch}`);
  const tools = [toolStage("linter", "biome", ["check", "."]), toolStage("compiler", "tsc", ["--noEmit"])];
  const kinds = values.only !== undefined ? [values.only] : values.long ? [...KINDS, "long"] : KINDS;
  const tests = kinds.map((kind) => testStage(kind, directory));
  const ok = await runStages(values.only === undefined ? [...tools, ...tests] : tests);
  process.exitCode = ok ? 0 : 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
