/**
 * Set-up: makes what the product, the tests, the demo and the benchmarks need, and nothing that is there already.
 *
 *   node scripts/setup.mjs [product] [reference] [demo] [test] [cluster] [chart] [docs] [nodes] [versions] [podman]
 *     [nautobot] [embeddings] [release] [last-release-product] [last-release] [bench] [allocators] [peers]
 *                                                                                            default: all of them
 *
 * Runs on the machine's own Node.js (20 or newer), so it imports no npm package and no TypeScript.
 * One set-up works at a time in a checkout, and one with a cache unless it makes the product or the site alone (flock
 * on .setup.lock in both); the question whether anything is stale is asked without the locks first.
 * Effects: node_modules, dist, the user's cache, Debian packages (as root).
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { allocatorsSteps } from "./setup/allocators.mjs";
import { benchSteps } from "./setup/bench.mjs";
import { chartSteps } from "./setup/chart.mjs";
import { clusterSteps } from "./setup/cluster.mjs";
import { SetupError } from "./setup/command.mjs";
import { embeddingsSteps } from "./setup/embeddings.mjs";
import { lastReleaseProductSteps, lastReleaseSteps } from "./setup/last-release.mjs";
import { nautobotSteps } from "./setup/nautobot.mjs";
import { nodesSteps } from "./setup/nodes.mjs";
import { npmStep } from "./setup/npm.mjs";
import { cacheDir, root } from "./setup/paths.mjs";
import { peersSteps } from "./setup/peers.mjs";
import { podmanSteps } from "./setup/podman.mjs";
import { productSteps } from "./setup/product.mjs";
import { referenceSteps } from "./setup/reference.mjs";
import { releaseSteps } from "./setup/release.mjs";
import { demoSteps, testSteps } from "./setup/test.mjs";
import { versionsSteps } from "./setup/versions.mjs";

const LOCKED = "--locked";
const LOCK_IS_HELD = 75;

/** In the order of their work; a step is asked `isCurrent` after the steps before it have run. */
const targets = {
  product: productSteps,
  reference: referenceSteps,
  demo: demoSteps,
  test: testSteps,
  cluster: clusterSteps,
  chart: chartSteps,
  docs: () => [npmStep()],
  nodes: nodesSteps,
  versions: versionsSteps,
  podman: podmanSteps,
  nautobot: nautobotSteps,
  embeddings: embeddingsSteps,
  release: releaseSteps,
  "last-release-product": lastReleaseProductSteps,
  "last-release": lastReleaseSteps,
  bench: benchSteps,
  allocators: allocatorsSteps,
  peers: peersSteps,
};

function readArguments() {
  const names = process.argv.slice(2).filter((word) => word !== LOCKED);
  const unknown = names.find((name) => !(name in targets));
  if (unknown !== undefined) {
    throw new SetupError(
      `There is no set-up target "${unknown}"`,
      `the targets are ${Object.keys(targets).join(", ")}`,
    );
  }
  return { names: names.length > 0 ? names : Object.keys(targets), locked: process.argv.includes(LOCKED) };
}

/** Runs this file again under the locks, which the kernel frees however it ends; its exit code is ours. */
function runLocked(names) {
  const places = [
    join(root, "dist"),
    ...(names.every((name) => name === "product" || name === "docs") ? [] : [cacheDir()]),
  ];
  for (const place of places) mkdirSync(place, { recursive: true });
  const call = (...options) => {
    const locks = places.flatMap((place) => ["flock", ...options, join(place, ".setup.lock")]);
    const [program, ...args] = [...locks, process.execPath, fileURLToPath(import.meta.url), LOCKED, ...names];
    const { status, error } = spawnSync(program, args, { stdio: "inherit" });
    if (error) throw new SetupError("Cannot lock .setup.lock", error.message, "apt-get install util-linux");
    return status ?? 1;
  };
  const status = call("--nonblock", "--conflict-exit-code", String(LOCK_IS_HELD));
  if (status !== LOCK_IS_HELD) return status;
  console.log(`Set-up: another one works in ${places.join(" or ")}, waiting for it`);
  return call();
}

function seconds(sinceMs) {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}

async function runSteps(steps) {
  for (const step of steps) {
    if (step.isCurrent()) continue;
    const startMs = performance.now();
    process.stdout.write(`Set-up: ${step.name} …`);
    try {
      await step.run();
    } finally {
      process.stdout.write(` ${seconds(startMs)}\n`);
    }
  }
}

async function main() {
  process.env.HOME ||= userInfo().homedir;
  const { names, locked } = readArguments();
  const steps = names.flatMap((name) => targets[name]());
  if (locked) await runSteps(steps);
  else if (!steps.every((step) => step.isCurrent())) process.exitCode = runLocked(names);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`\nSet-up failed. ${error.message}`);
  process.exitCode = 1;
}
