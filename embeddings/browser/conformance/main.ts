/**
 * The conformance runner: replays a folder of vectors in headless Chromium, or with --node in this process.
 *
 *   node conformance.mjs [--node] FOLDER
 *
 * Effects: reads the vectors; starts Chromium; prints a line per vector, or ends with 1 and the first difference.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readReport, visit } from "../chromium.ts";
import { replayAll, type Vector } from "./replay.ts";

const args = process.argv.slice(2);
const folder = args.find((word) => word !== "--node");

function say(line: string): void {
  console.log(line);
}

function replayHere(given: string, names: readonly string[]): Promise<string | undefined> {
  const wasm = readFileSync(new URL(import.meta.resolve("berth-core/berth-core.wasm")));
  const read = async (name: string) => JSON.parse(readFileSync(join(given, name), "utf8")) as Vector;
  return replayAll(names, read, new WebAssembly.Module(new Uint8Array(wasm)), say);
}

async function run(given: string): Promise<string | undefined> {
  const names = readdirSync(given)
    .filter((name) => name.endsWith(".json"))
    .sort();
  if (names.length === 0) return `No vectors in ${given}`;
  if (args.includes("--node")) return replayHere(given, names);
  const page = "runner.html?conformance-page";
  return visit({ site: import.meta.dirname, given: resolve(given), page, use: (opened) => readReport(opened, say) });
}

const complaint = folder === undefined ? "Usage: conformance.mjs [--node] FOLDER" : await run(folder);
if (complaint !== undefined) {
  console.error(complaint);
  process.exitCode = 1;
}
