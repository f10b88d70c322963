/**
 * The benchmarks: `npm run bench -- [--only NAME]... [--quick] [--wait SECONDS]`.
 *
 * It waits until the machine is quiet, but not longer than `--wait`; a quick run does not wait.
 * A full run prints its tables, writes them into benchmarks/README.md and keeps the raw figures in benchmarks/results.
 * A quick one only prints. The exit code says whether everything ran, not whether the targets were met. After SIGINT
 * or SIGTERM it removes what it has made and ends.
 */
import { parseArgs } from "node:util";
import { clusterBench } from "./cluster/cluster.ts";
import { controllerBench } from "./controller/controller.ts";
import { coordinatorBench } from "./coordinator/coordinator.ts";
import { coreBench } from "./core/core.ts";
import { growthBench } from "./growth/growth.ts";
import { Interrupted, watchSignals } from "./harness/interruption.ts";
import { WAIT_S, waitUntilQuiet } from "./harness/quiet.ts";
import { type Bench, formatReport, readMachine, writePages, writeResults } from "./harness/report.ts";
import { hubBench } from "./hub/hub.ts";
import { ipamBench } from "./ipam/ipam.ts";
import { nodeBench } from "./node/node.ts";
import { nodesBench } from "./nodes/nodes.ts";
import { peersBench } from "./peers/peers.ts";

const benches: readonly Bench[] = [
  nodeBench,
  ipamBench,
  clusterBench,
  coordinatorBench,
  nodesBench,
  controllerBench,
  hubBench,
  coreBench,
  peersBench,
  growthBench,
];

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
} catch (error) {
  if (!(error instanceof Interrupted)) throw error;
  process.exitCode = error.exitCode;
}

async function runBench({ name, run }: Bench): Promise<void> {
  console.log(`\n# ${name}\n`);
  const quietness = await waitUntilQuiet({ limitS: values.quick ? 0 : Number(values.wait) });
  const machine = readMachine(quietness);
  const startMs = performance.now();
  const report = await run({ quick: values.quick, quietness });
  const text = formatReport(report, machine, values.quick);
  console.log(`${text}\n\n${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  if (values.quick) return;
  await writePages(name, report, machine);
  console.log(`Raw figures: ${await writeResults(name, machine, report)}`);
}
