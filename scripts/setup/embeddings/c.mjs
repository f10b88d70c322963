/**
 * The embedding for C: the library, installed by its Makefile, which programs link as pkg-config says. Paths are
 * relative, since make knows no blank in a name.
 * Effects: dist/embeddings/c, embeddings/c/build.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

const installed = "../../dist/embeddings/c";

export function cStep() {
  const files = ["Makefile", "README.md", "berth_core.h", "core.c", "conformance.c", "berth_raw.h", "raw.c"];
  return embeddingStep("c", { files, build });
}

function build(output) {
  const missing = ["cc", "make", "pkg-config", "wasm2c"].find((name) => findCommand(name) === undefined);
  if (missing !== undefined) {
    const command = "apt-get install -y gcc make pkg-config wabt";
    throw new SetupError("The embedding for C cannot be built", `there is no "${missing}" in PATH`, command);
  }
  const cwd = sourceOf("c");
  const warnings = ["-Wall", "-Wextra", "-Werror"];
  rmSync(output, { recursive: true, force: true });
  run("make", [`PREFIX=${installed}`, "install"], { cwd });
  const env = { PKG_CONFIG_PATH: join(output, "lib", "pkgconfig") };
  const flags = run("pkg-config", ["--cflags", "--libs", "berth-core"], { cwd, env }).trim().split(/\s+/);
  writeFileSync(join(output, "readme.c"), readmeProgram("c"));
  for (const [program, source] of [
    ["readme", join(output, "readme.c")],
    ["conformance", "conformance.c"],
  ]) {
    run("cc", ["-std=c11", "-pedantic", ...warnings, source, ...flags, "-o", join(output, program)], { cwd });
  }
}
