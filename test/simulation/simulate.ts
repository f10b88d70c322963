/** `npm run simulate`: runs of the simulation from the command line. */
import { parseArgs } from "node:util";
import { PROFILES, type ProfileName } from "./profiles.ts";
import { DEFAULTS, describeReport, run, shrink, VERSIONS } from "./run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    nodes: { type: "string", default: String(DEFAULTS.nodes) },
    pods: { type: "string", default: String(DEFAULTS.pods) },
    steps: { type: "string", default: String(DEFAULTS.steps) },
    faults: { type: "string", default: String(DEFAULTS.faults) },
    profile: { type: "string", default: DEFAULTS.profile },
    without: { type: "string", default: "" },
    version: { type: "string" },
    lines: { type: "string", default: "80" },
    shrink: { type: "boolean", default: true },
    timeline: { type: "boolean", default: false },
  },
  allowNegative: true,
});
const profiles: readonly ProfileName[] =
  values.profile === "all" ? PROFILES : PROFILES.filter((name) => name === values.profile);
if (profiles.length === 0) throw new Error(`--profile ${values.profile}: want one of ${PROFILES.join(", ")}, all`);
const version = VERSIONS.find((name) => name === values.version);
if (values.version !== undefined && version === undefined)
  throw new Error(`--version ${values.version}: want one of ${VERSIONS.join(", ")}`);
let violated = 0;
/** Number of times that each action happened, in all runs. */
const counts = new Map<string, number>();
for (let seed = Number(values.seed); seed < Number(values.seed) + Number(values.runs); seed++) {
  for (const profile of profiles) {
    const startMs = performance.now();
    const without = new Set(values.without === "" ? [] : values.without.split(",").map(Number));
    const sizes = { nodes: Number(values.nodes), pods: Number(values.pods), steps: Number(values.steps) };
    const options = { seed, profile, ...sizes, faults: Number(values.faults), without, version };
    const report = await run(options);
    for (const name of [
      ...report.actions.values(),
      ...Array(report.leaders).fill("(another controller leads)"),
      ...Array(report.migrations).fill("(a migration succeeds)"),
    ])
      counts.set(name, (counts.get(name) ?? 0) + 1);
    const seconds = (performance.now() - startMs) / 1000;
    if (report.problems.length === 0) {
      console.log(
        `${describeReport(report)}\n${report.adds} ADDs, ${report.restarts} by members that had addresses; an address was written ${report.mostWrites} times at most for one ADD; all was well ${(report.recoveryMs / 1000).toFixed(0)} s after the last fault; ${seconds.toFixed(1)} s: every invariant held`,
      );
      if (values.timeline) console.log(report.timeline.last(Number(values.lines)).join("\n"));
      continue;
    }
    violated++;
    console.log(`Violated in step ${report.foundAt}: ${report.problems[0]}`);
    console.log(describeReport(values.shrink ? await shrink(report) : report, Number(values.lines)));
  }
}
const total = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${count} × ${name}`);
if (profiles.length * Number(values.runs) > 1) console.log(`What happened: ${total.join(", ")}`);
process.exitCode = violated === 0 ? 0 : 1;
