/**
 * The embedding for C: the library, installed by its Makefile, which programs link as pkg-config says. Paths are
 * relative, since make knows no blank in a name.
 * Effects: dist/embeddings/c, embeddings/c/build.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

const installed = "../../dist/embeddings/c";

export function cStep() {
  const files = ["Makefile", "README.md", "berth_core.h", "core.c", "conformance.c", "berth_raw.h", "raw.c"];
  return embeddingStep("c", { files, build });
}

function build(output) {
  const cwd = sourceOf("c");
  const warnings = ["-Wall", "-Wextra", "-Werror"];
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
