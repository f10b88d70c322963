/**
 * The core's benchmark as one of `npm run bench`: the targets there, every figure and the plots on a page of its own.
 * Effects: those of core.ts; writes README.md and the plots beside this file, unless the run is a quick one.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../harness/report.ts";
import { runCore } from "./core.ts";
import { decideTargets, renderPage, renderPlots } from "./page.ts";

export const coreBench: Bench = {
  name: "core",
  run: async ({ quick, quietness }) => {
    const figures = await runCore({ quick, progress: (text) => process.stderr.write(`${text}\n`) });
    if (!quick) {
      writeFileSync(join(import.meta.dirname, "README.md"), renderPage(figures, quietness));
      for (const { name, svg } of renderPlots(figures)) writeFileSync(join(import.meta.dirname, name), svg);
    }
    return {
      tables: [],
      targets: decideTargets(figures),
      notes: ["Every figure, beside plain JavaScript and C, with plots: [the core alone](core/README.md)."],
      versions: {},
      raw: figures,
    };
  },
};
