/**
 * The allocators of other projects that the benchmark `core` measures: benchmarks/core/peers, whose go.mod fixes their versions.
 * Effects: dist/bench/allocators; Go's own caches.
 */
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

const FLAGS = ["-trimpath", "-ldflags", "-s -w"];
const ENVIRONMENT = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly -buildvcs=false", GOWORK: "off" };

const source = join(root, "benchmarks", "core", "peers");
const output = join(root, "dist", "bench", "allocators");

export function allocatorsSteps() {
  return [
    buildStep({
      name: "allocators of other projects",
      inputs: [source],
      outputs: [output],
      texts: [process.arch, ...FLAGS],
      build: () => {
        mkdirSync(dirname(output), { recursive: true });
        run(requireGo(), ["build", ...FLAGS, "-o", `${output}.tmp`, "."], { cwd: source, env: ENVIRONMENT });
        rmSync(output, { recursive: true, force: true });
        renameSync(`${output}.tmp`, output);
      },
    }),
  ];
}

function requireGo() {
  const go = findCommand("go", ["/usr/local/go/bin"]);
  if (go !== undefined) return go;
  throw new SetupError(
    "The allocators of other projects cannot be built",
    'there is no "go" in PATH; Go 1.26.4 or newer is needed',
    "install Go from go.dev, then npm run setup",
  );
}
