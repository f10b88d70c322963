/**
 * The embedding for C: the library, its tests (plain and under the sanitizers), and the conformance runner, by its
 * Makefile.
 * Effects: dist/embeddings/c; a copy of the core in embeddings/c.
 */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { root } from "../paths.mjs";
import { buildStep } from "../stamp.mjs";

const source = join(root, "embeddings", "c");
const output = join(root, "dist", "embeddings", "c");
const wasm = join(root, "dist", "core", "berth-core.wasm");

const sources = ["Makefile", "berth-core.pc.in", "include", "src", "test", "tools"];
const outputs = ["libberth_core.a", "libberth_core.so", "berth-core.pc", "conformance", "sanitized/pool_test"];
const command = "apt-get install -y gcc make pkg-config wabt libjansson-dev";

export function cSteps() {
  return [
    buildStep({
      name: "embedding for C",
      inputs: [...sources.map((name) => join(source, name)), wasm],
      outputs: outputs.map((name) => join(output, name)),
      texts: [process.arch],
      build,
    }),
  ];
}

function build() {
  requireTools();
  mkdirSync(output, { recursive: true });
  copyFileSync(wasm, join(source, "berth-core.wasm"));
  run("make", ["-j2", `BUILD=${output}`, "all", "tools", "tests"], { cwd: source });
}

function requireTools() {
  const missing = ["cc", "make", "pkg-config", "wasm2c"].find((name) => findCommand(name) === undefined);
  if (missing !== undefined) {
    throw new SetupError("The embedding for C cannot be built", `there is no "${missing}" in PATH`, command);
  }
  try {
    run("pkg-config", ["--exists", "jansson"]);
  } catch {
    throw new SetupError(
      "The embedding for C cannot be built",
      "there is no jansson, which reads the vectors",
      command,
    );
  }
}
