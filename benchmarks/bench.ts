/**
 * The benchmarks: `npm run bench -- [--only NAME]... [--quick] [--wait SECONDS]`.
 *
 * It waits until the machine is quiet, but not longer than `--wait`; a quick run does not wait. A full run prints its
 * tables and writes them into benchmarks/README.md; without `--only` it makes the README's recording of an operator
 * anew, too. A quick one only prints. The exit code says whether everything ran, not whether the targets were met.
 * After SIGINT or SIGTERM it cleans up and ends.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/setup/paths.mjs";
import { benches } from "./benches.ts";
import { Interrupted, requireUninterrupted, watchSignals } from "./harness/interruption.ts";
import { WAIT_S, waitUntilQuiet } from "./harness/quiet.ts";
import { type Bench, formatSection, readMachine, writePages } from "./harness/report.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    quick: { type: "boolean", default: false },
    wait: { type: "string", default: `${WAIT_S}` },
  },
});
const only = values.only ?? benches.map(({ name }) => name);
const unknown = only.find((name) => !benches.some((bench) => bench.name === name));
if (unknown !== undefined) {
  throw new Error(`There is no benchmark "${unknown}", only ${benches.map(({ name }) => name).join(", ")}`);
}

watchSignals();
try {
  for (const bench of benches.filter(({ name }) => only.includes(name))) await runBench(bench);
  if (values.only === undefined && !values.quick) recordOperator();
} catch (error) {
  if (!(error instanceof Interrupted)) throw error;
  process.exitCode = error.exitCode;
}

async function runBench({ name, run }: Bench): Promise<void> {
  console.log(`\n# ${name}\n`);
  const quietness = await waitUntilQuiet(values.quick ? 0 : Number(values.wait));
  const machine = readMachine(quietness);
  const startMs = performance.now();
  const report = await run({ quick: values.quick });
  console.log(formatSection(report, machine));
  if (values.quick) console.log("\nA quick run: too few samples to quote.");
  else await writePages(name, report, machine);
  console.log(`\n${name}: ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
}

function recordOperator(): void {
  requireUninterrupted();
  const argv = [join(root, "scripts", "demo.ts"), "--cluster", "--record", join(root, "docs", "operator.svg")];
  const { status } = spawnSync(process.execPath, argv, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
