/** `npm run simulate`: runs of the simulation from the command line. */
import { parseArgs } from "node:util";
import { PROFILES, type ProfileName } from "./profiles.ts";
import { DEFAULTS, describeReport, run, shrink } from "./run.ts";

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
    lines: { type: "string", default: "80" },
    shrink: { type: "boolean", default: true },
    timeline: { type: "boolean", default: false },
  },
  allowNegative: true,
});
const profiles: readonly ProfileName[] =
  values.profile === "all" ? PROFILES : PROFILES.filter((name) => name === values.profile);
if (profiles.length === 0) throw new Error(`--profile ${values.profile}: want one of ${PROFILES.join(", ")}, all`);
let violated = 0;
for (let seed = Number(values.seed); seed < Number(values.seed) + Number(values.runs); seed++) {
  for (const profile of profiles) {
    const startMs = performance.now();
    const without = new Set(values.without === "" ? [] : values.without.split(",").map(Number));
    const sizes = { nodes: Number(values.nodes), pods: Number(values.pods), steps: Number(values.steps) };
    const options = { seed, profile, ...sizes, faults: Number(values.faults), without };
    const report = await run(options);
    const seconds = (performance.now() - startMs) / 1000;
    if (report.problems.length === 0) {
      console.log(
        `${describeReport(report)}\n${report.adds} ADDs, ${report.restarts} by members that had addresses; ${seconds.toFixed(1)} s: every invariant held`,
      );
      if (values.timeline) console.log(report.timeline.last(Number(values.lines)).join("\n"));
      continue;
    }
    violated++;
    console.log(`Violated in step ${report.foundAt}: ${report.problems[0]}`);
    const smaller = values.shrink ? await shrink(report) : report;
    console.log(describeReport(smaller, Number(values.lines)));
  }
}
process.exitCode = violated === 0 ? 0 : 1;
