/**
 * The bench program: times the package in this process, or with --chromium in headless Chromium.
 *
 *   node bench.mjs [--chromium] FOLDER
 *
 * Effects: reads the folder of shapes; starts Chromium; prints a JSON line per figure.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readReport, visit } from "../chromium.ts";
import { type Figure, measure, type Shape } from "./forms.ts";

const args = process.argv.slice(2);
const folder = resolve(args.find((word) => word !== "--chromium") ?? ".");
const runtime = args.includes("--chromium") ? "chromium" : "javascript";

function say(figure: Figure | { shape: ""; form: "version"; text: string }): void {
  console.log(JSON.stringify({ runtime, ...figure }));
}

if (runtime === "chromium") {
  const use: Parameters<typeof visit<string | undefined>>[0]["use"] = (page, version) => {
    say({ shape: "", form: "version", text: `Chromium ${version}` });
    return readReport(page, (line) => say(JSON.parse(line) as Figure));
  };
  const complaint = await visit({ site: import.meta.dirname, given: folder, page: "runner.html?bench-page", use });
  if (complaint !== undefined) throw new Error(complaint);
} else {
  say({ shape: "", form: "version", text: `Node.js ${process.versions.node}, V8 ${process.versions.v8}` });
  const shapes = JSON.parse(readFileSync(join(folder, "shapes.json"), "utf8")) as Shape[];
  await measure(shapes, async ({ snapshot }) => readFileSync(join(folder, snapshot)), say);
}
