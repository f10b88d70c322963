/** `npm run simulate:scale`: a scale run, its report as markdown and its plots. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeScale, plotsOf } from "./report.ts";
import { runScale } from "./run-scale.ts";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "200" },
    full: { type: "string", default: "20" },
    pods: { type: "string", default: "3000" },
    pools: { type: "string", default: "100" },
    rate: { type: "string", default: "100" },
    load: { type: "string", default: "30" },
    processors: { type: "string", default: "8" },
    seed: { type: "string", default: "1" },
    out: { type: "string", default: "node_modules/.cache/scale" },
  },
});
const report = await runScale(
  {
    nodes: Number(values.nodes),
    full: Number(values.full),
    pods: Number(values.pods),
    pools: Number(values.pools),
    rate: Number(values.rate),
    loadS: Number(values.load),
    processors: Number(values.processors),
    seed: Number(values.seed),
  },
  (line) => console.log(line),
);
mkdirSync(values.out, { recursive: true });
const text = describeScale(report);
writeFileSync(join(values.out, "report.md"), text);
for (const [name, svg] of Object.entries(plotsOf(report))) writeFileSync(join(values.out, `${name}.svg`), svg);
console.log(`\n${text}\nReport and plots: ${values.out}`);

process.exit(0);
