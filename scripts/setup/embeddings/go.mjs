/**
 * The Go embedding.
 * Effects: dist/embeddings/go, Go's caches below the user's cache.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir } from "../paths.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

/** Go's caches stand with the others of set-up: the user's home may be empty. */
export function goEnvironment() {
  const caches = join(cacheDir(), "embeddings", "go");
  return {
    CGO_ENABLED: "0",
    GOFLAGS: "-mod=readonly -modcacherw -buildvcs=false",
    GOWORK: "off",
    GOCACHE: join(caches, "build"),
    GOMODCACHE: join(caches, "modules"),
  };
}

export function requireGo() {
  const go = findCommand("go", ["/usr/local/go/bin"]);
  if (go !== undefined) return go;
  throw new SetupError(
    "The Go embedding cannot be built",
    'there is no "go" in PATH; Go 1.25 or newer is needed',
    "apt-get install golang-go (Debian 13 or newer; before that from go.dev), then npm run setup",
  );
}

export function goStep() {
  return embeddingStep("go", { files: ["core.go", "conformance", "go.mod", "go.sum", "README.md", "raw.go"], build });
}

function build(output) {
  const go = requireGo();
  const options = { cwd: sourceOf("go"), env: goEnvironment() };
  const readme = join(output, "source", "readme.go");
  mkdirSync(join(output, "source"), { recursive: true });
  writeFileSync(readme, readmeProgram("go"));
  run(go, ["build", "-trimpath", "-o", join(output, "conformance"), "./conformance"], options);
  run(go, ["build", "-trimpath", "-o", join(output, "readme"), readme], options);
  run(go, ["vet", "./..."], options);
}
