/**
 * The Go embedding.
 * Effects: dist/embeddings/go, Go's own caches.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../command.mjs";
import { GO_ENVIRONMENT, requireGo } from "../go.mjs";
import { GO_FLAGS } from "../paths.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

export function goStep() {
  return embeddingStep("go", { files: ["core.go", "conformance", "go.mod", "go.sum", "README.md", "raw.go"], build });
}

/** With the flags of the reference tools: Go's library is compiled once for both. */
function build(output) {
  const go = requireGo();
  const options = { cwd: sourceOf("go"), env: GO_ENVIRONMENT };
  const readme = join(output, "source", "readme.go");
  mkdirSync(join(output, "source"), { recursive: true });
  writeFileSync(readme, readmeProgram("go"));
  run(go, ["build", ...GO_FLAGS, "-o", join(output, "conformance"), "./conformance"], options);
  run(go, ["build", ...GO_FLAGS, "-o", join(output, "readme"), readme], options);
  run(go, ["vet", ...GO_FLAGS, "./..."], options);
}
