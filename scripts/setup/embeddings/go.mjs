/**
 * The Go embedding. Its compiled packages are in the user's cache, with those of the other languages.
 * Effects: dist/embeddings/go, the user's cache, Go's modules.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { GO_ENVIRONMENT, requireGo } from "../go.mjs";
import { cacheDir, GO_FLAGS } from "../paths.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

export function goStep() {
  return embeddingStep("go", { files: ["core.go", "conformance", "go.mod", "go.sum", "README.md", "raw.go"], build });
}

function build(output) {
  const go = requireGo();
  const env = { ...GO_ENVIRONMENT, GOCACHE: join(cacheDir(), "embeddings", "go") };
  const options = { cwd: sourceOf("go"), env };
  const readme = join(output, "readme.go");
  writeFileSync(readme, readmeProgram("go"));
  run(go, ["build", ...GO_FLAGS, "-o", join(output, "conformance"), "./conformance"], options);
  run(go, ["build", ...GO_FLAGS, "-o", join(output, "readme"), readme], options);
  run(go, ["vet", ...GO_FLAGS, "./..."], options);
}
