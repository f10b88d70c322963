/**
 * The package berth-core for JavaScript, in dist/embeddings/browser/node_modules as npm would install it, and the
 * programs: Node.js imports the package as a stranger would.
 * Effects: dist/embeddings/browser.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { root } from "../paths.mjs";
import { core, embeddingStep, readmeProgram, sourceOf, writeLauncher } from "./embedding.mjs";

const source = sourceOf("browser");
const bin = join(root, "node_modules", ".bin");
const esbuild = join(root, "node_modules", "@esbuild", `linux-${process.arch}`, "bin", "esbuild");

/** If the engine does not know `using`, its symbol is the one that compilers then agree on. */
const symbol = "--banner:js=Symbol.dispose??=Symbol.for('Symbol.dispose');";
const options = ["--bundle", "--format=esm", "--log-level=warning", "--platform=neutral", "--target=es2022", symbol];

export function browserStep() {
  const host = ["core", "lib", "net"].map((name) => join("..", "..", "host", name));
  const files = ["README.md", "berth-core.ts", "package.json", "tsconfig.json", ...host];
  return embeddingStep("browser", { files, texts: options, build });
}

function build(output) {
  const library = join(output, "node_modules", "berth-core");
  mkdirSync(library, { recursive: true });
  run(esbuild, [join(source, "berth-core.ts"), ...options, `--outdir=${library}`]);
  run(join(bin, "tsc"), ["-p", source, "--outDir", join(library, "types")]);
  cpSync(core, join(library, "berth-core.wasm"));
  for (const name of ["package.json", "README.md"]) cpSync(join(source, name), join(library, name));
  cpSync(join(root, "LICENSE"), join(library, "LICENSE"));
  writeFileSync(join(output, "readme.mjs"), readmeProgram("browser"));
  const conformance = `"${join(bin, "node")}" "${join(source, "conformance.ts")}"`;
  writeLauncher(join(output, "conformance"), conformance);
  writeLauncher(join(output, "chromium"), `${conformance} --chromium`);
  writeLauncher(join(output, "readme"), `"${join(bin, "node")}" "$HERE/readme.mjs"`);
}
