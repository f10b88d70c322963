/**
 * The package berth-core for JavaScript, and what plays it: in dist/embeddings/browser, where node_modules/berth-core
 * is the package as npm would install it, so that the programs and pages beside it import it as a stranger would.
 * Effects: dist/embeddings/browser.
 */
import { cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { run } from "../command.mjs";
import { root } from "../paths.mjs";
import { buildStep } from "../stamp.mjs";

const source = join(root, "embeddings", "browser");
const output = join(root, "dist", "embeddings", "browser");
const wasm = join(root, "dist", "core", "berth-core.wasm");

const external = ["--external:berth-core", "--external:berth-core/*", "--external:playwright-core"];
const common = ["--bundle", "--format=esm", "--log-level=warning", ...external];
const forBrowsers = [...common, "--platform=neutral", "--target=es2022"];
const forNode = [...common, "--platform=node", "--target=node26", "--out-extension:.js=.mjs"];

/** If the engine does not know `using`, its symbol is the one that compilers then agree on. */
const symbol = "--banner:js=Symbol.dispose??=Symbol.for('Symbol.dispose');";

/** Each bundle's name in the build, and its entry. */
const pages = { "conformance-page": "conformance/page.ts", demo: "demo/demo.ts" };
const tests = { "test/core": "test/core.ts", "test/pool": "test/pool.ts", "test/range-set": "test/range-set.ts" };
const programs = { conformance: "conformance/main.ts", ...tests };

export function browserSteps() {
  return [
    buildStep({
      name: "embedding for browsers and Node.js",
      inputs: [
        ...[source, join(root, "host"), join(root, "test", "lab", "browser.ts"), wasm],
        ...[join(root, "package-lock.json"), join(root, "tsconfig.json")],
      ],
      outputs: [
        ...Object.keys(pages).map((name) => `${name}.js`),
        ...Object.keys(programs).map((name) => `${name}.mjs`),
      ]
        .concat("node_modules/berth-core/berth-core.js")
        .map((name) => join(output, name)),
      texts: [...forBrowsers, symbol, ...forNode],
      build,
    }),
  ];
}

function build() {
  const folder = `${output}.new`;
  rmSync(folder, { recursive: true, force: true });
  buildPackage(join(folder, "node_modules", "berth-core"));
  bundle(forBrowsers, pages, folder);
  bundle(forNode, programs, folder);
  for (const path of ["runner.html", "demo/demo.html"]) cpSync(join(source, path), join(folder, basename(path)));
  rmSync(output, { recursive: true, force: true });
  renameSync(folder, output);
}

/** Builds the package that `npm publish` would send, were it called there. */
function buildPackage(folder) {
  mkdirSync(folder, { recursive: true });
  bundle([...forBrowsers, symbol], { "berth-core": "src/index.ts" }, folder);
  const tsc = join(root, "node_modules", ".bin", "tsc");
  run(tsc, ["-p", join(source, "tsconfig.types.json"), "--outDir", join(folder, "types")]);
  cpSync(wasm, join(folder, "berth-core.wasm"));
  for (const name of ["package.json", "README.md"]) cpSync(join(source, name), join(folder, name));
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
}

function bundle(options, entries, folder) {
  const esbuild = join(root, "node_modules", "@esbuild", `linux-${process.arch}`, "bin", "esbuild");
  const paths = Object.entries(entries).map(([name, path]) => `${name}=${join(source, path)}`);
  run(esbuild, [...paths, ...options, `--outdir=${folder}`]);
}
