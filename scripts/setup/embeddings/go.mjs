/**
 * The Go embedding's conformance runner. `go:embed` finds the core in a committed copy, which `npm run generate`
 * writes.
 * Effects: dist/embeddings/go, Go's caches below the user's cache.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir, root } from "../paths.mjs";
import { buildStep } from "../stamp.mjs";

const source = join(root, "embeddings", "go");
const output = join(root, "dist", "embeddings", "go", "conformance");
const flags = ["-trimpath", "-ldflags", "-s -w"];

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

export function goSteps() {
  return [
    buildStep({ name: "Go embedding", inputs: [source], outputs: [output], texts: [...flags, process.arch], build }),
  ];
}

function build() {
  mkdirSync(dirname(output), { recursive: true });
  const go = requireGo();
  const options = { cwd: source, env: goEnvironment() };
  run(go, ["build", ...flags, "-o", output, "./cmd/conformance"], options);
  run(go, ["vet", "./..."], options); // and so what the tests import is compiled, too
}
