/**
 * Replays vectors (test/vectors/core/README.md), each on a fresh instance: in Node.js, or, when --chromium comes first,
 * in a page of headless Chromium.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { CoreExports } from "../../host/core/core-exports.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { withChromium } from "../../test/lab/browser.ts";

interface Vector {
  readonly file: string;
  readonly lines: readonly string[];
  /** URL of the library's module. */
  readonly library: string;
}

/** Returns a vector's summary, or the first line that differs. A page gets the text of this function. */
async function replay({ file, lines, library }: Vector): Promise<{ isSame: boolean; text: string }> {
  const { openRaw } = (await import(library)) as { openRaw(): Promise<CoreExports> };
  const { memory, ...exports } = await openRaw();
  const calls: Readonly<Record<string, (...args: number[]) => number>> = exports;
  const call = (name: string, ...args: number[]) => calls[name]?.(...args) ?? Number.NaN;
  let [steps, found] = [-1, ""]; // the last line is no step
  for (const [at, line] of lines.entries()) {
    if (line.startsWith("#")) continue;
    const [name = "", args = "", input = "", , output = ""] = line.split(" ");
    if (name === "state") {
      const length = call("state_bytes");
      let hash = 0xcbf29ce484222325n;
      for (const byte of new Uint8Array(memory.buffer, 0, length))
        hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
      found = `state - - ${length} ${hash.toString(16).padStart(16, "0")}`;
    } else {
      const bytes = (input.match(/[0-9a-f]{2}/g) ?? []).map((pair) => Number.parseInt(pair, 16));
      const start = input === "-" ? 0 : call("exchange", bytes.length);
      new Uint8Array(memory.buffer).set(bytes, start);
      const result = call(name, ...(args === "-" ? [] : args.split(",").map(Number)));
      const written = output === "-" ? [] : new Uint8Array(memory.buffer, call("exchange", 0), output.length / 2);
      const hex = Array.from(written, (byte) => byte.toString(16).padStart(2, "0")).join("");
      found = [name, args, input, result, hex || "-"].join(" ");
    }
    if (found !== line) return { isSame: false, text: `${file}:${at + 1}: ${found}` };
    steps++;
  }
  return { isSame: true, text: `${file}: ${steps} steps, ${found}` };
}

const folder = join(root, "dist", "embeddings", "browser", "node_modules", "berth-core");
const isChromium = process.argv[2] === "--chromium";
const site = isChromium ? "http://berth.test/" : pathToFileURL(`${folder}/`).href;
const vectors = process.argv.slice(isChromium ? 3 : 2).map((file) => {
  return {
    file,
    lines: readFileSync(file, "utf8").trimEnd().split("\n"),
    library: new URL("berth-core.js", site).href,
  };
});

async function replayAll(run: typeof replay): Promise<void> {
  for (const vector of vectors) {
    const { isSame, text } = await run(vector);
    (isSame ? console.log : console.error)(text);
    if (!isSame) process.exit(1);
  }
}

if (!isChromium) await replayAll(replay);
else
  await withChromium(async (browser) => {
    const page = await browser.newPage();
    await page.route(`${site}**`, (route) => {
      const path = new URL(route.request().url()).pathname;
      return route.fulfill(path === "/" ? { contentType: "text/html", body: "" } : { path: join(folder, path) });
    });
    await page.goto(site);
    await replayAll((vector) => page.evaluate(replay, vector));
  });
