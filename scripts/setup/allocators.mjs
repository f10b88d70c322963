/**
 * The allocators of other projects that ours is measured beside: programs in benchmarks/allocators/peers, whose go.mod files fix the versions.
 * Effects: dist/bench/allocators; Go's own caches.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

const PEERS = ["cilium", "host-local", "kube-ovn", "kubernetes", "spiderpool", "whereabouts"];
const FLAGS = ["-trimpath", "-ldflags", "-s -w"];
const ENVIRONMENT = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly -buildvcs=false", GOWORK: "off" };

const sources = join(root, "benchmarks", "allocators", "peers");
const outputs = join(root, "dist", "bench", "allocators");

export function allocatorsSteps() {
  return PEERS.map((peer) => {
    const output = join(outputs, peer);
    return buildStep({
      name: `allocator ${peer}`,
      inputs: [join(sources, "contest"), join(sources, peer)],
      outputs: [output],
      texts: [process.arch, ...FLAGS],
      build: () => {
        mkdirSync(outputs, { recursive: true });
        const args = ["build", ...FLAGS, "-o", `${output}.tmp`, "."];
        run(requireGo(), args, { cwd: join(sources, peer), env: ENVIRONMENT });
        renameSync(`${output}.tmp`, output);
      },
    });
  });
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
