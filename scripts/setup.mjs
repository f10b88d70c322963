/**
 * Set-up: makes the needs of the product, the tests, the demo and the benchmarks, unless they exist already.
 *
 *   node scripts/setup.mjs [product] [reference] [demo] [test] [cluster] [chart] [docs] [nodes] [versions] [podman]
 *     [nautobot] [embeddings] [release] [last-release-product] [last-release] [bench] [peers]
 *                                                                                            default: all of them
 *
 * Runs on the machine's own Node.js (20 or newer), so it imports no npm package and no TypeScript. One set-up works at
 * a time in a checkout, and one with a cache unless it makes the product or the site alone (flock on .setup.lock in
 * both); the question whether anything is stale is asked without the locks first.
 * Effects: node_modules, dist, the user's cache, Debian packages (as root).
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { benchPrograms, pauseStep, pinnsStep } from "./setup/c-programs.mjs";
import { manifestsStep, schemasSteps } from "./setup/chart.mjs";
import { SetupError } from "./setup/command.mjs";
import { debianStep } from "./setup/debian.mjs";
import { embeddingsSteps } from "./setup/embeddings.mjs";
import { goProgramStep, toolsSteps } from "./setup/go.mjs";
import { lastReleaseProductSteps, lastReleaseSteps } from "./setup/last-release.mjs";
import { nautobotSteps } from "./setup/nautobot.mjs";
import { npmStep } from "./setup/npm.mjs";
import { cacheDir, root } from "./setup/paths.mjs";
import { netavarkStep } from "./setup/podman.mjs";
import { productSteps } from "./setup/product.mjs";
import { releaseSteps } from "./setup/release.mjs";

const LOCKED = "--locked";
const LOCK_IS_HELD = 75;
/** After how many compiled packages a large build says that it goes on. */
const PROGRESS_STEP = 250;

/**
 * The needs of each target besides its Debian packages (debian.mjs): tools in Go (paths.mjs), steps in the order of
 * their work, and the last ones, which call tools.
 */
const targets = {
  product: { steps: productSteps },
  reference: { tools: ["plugins", "cnitool"] },
  demo: {},
  test: {},
  cluster: { tools: ["etcd", "kubernetes", "kubectl", "health"] },
  chart: { tools: ["helm"], steps: schemasSteps, last: () => [manifestsStep()] },
  docs: { steps: () => [npmStep()] },
  nodes: { tools: ["nodes", "multus"], steps: () => [pauseStep()] },
  // For the long tests alone: other versions of the nodes' programs, and the checker of the core's Go module.
  versions: {
    tools: ["containerd", "coredns", "crio", "kubernetes-1.31", "metallb", "modzip", "registry"],
    steps: () => [pinnsStep()],
  },
  podman: { tools: ["podman"], steps: () => [netavarkStep()] },
  nautobot: { steps: nautobotSteps },
  embeddings: { steps: embeddingsSteps },
  release: { tools: ["nfpm"], steps: releaseSteps },
  "last-release-product": { steps: lastReleaseProductSteps },
  "last-release": { steps: lastReleaseSteps },
  bench: { steps: () => [...benchPrograms(), goProgramStep("bench/caller", "benchmarks/node/caller")] },
  peers: { tools: ["whereabouts", "spiderpool"] },
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

async function runStep(step) {
  if (step.isCurrent()) return;
  const startMs = performance.now();
  process.stdout.write(`Set-up: ${step.name} …`);
  try {
    await step.run();
  } finally {
    process.stdout.write(` ${seconds(startMs)}\n`);
  }
}

/**
 * A step is asked `isCurrent` after the steps before it have run. Tools are compiled beside the steps, most of which
 * wait for the network or use one processor.
 */
async function runSteps({ steps, builds, last }) {
  const stop = new AbortController();
  const compiling = compileBeside(
    builds.filter((build) => !build.isCurrent()),
    stop.signal,
  );
  try {
    for (const step of steps) await runStep(step);
    await compiling.finish();
    for (const step of last) await runStep(step);
  } finally {
    stop.abort();
  }
}

/** `finish` waits for the builds, and shows that they go on. */
function compileBeside(builds, signal) {
  if (builds.length === 0) return { finish: () => {} };
  console.log(`Set-up, beside the other steps (minutes, the first time): ${builds.map(({ name }) => name).join(", ")}`);
  let said = 0;
  let isShown = false;
  const say = (count) => {
    if (!isShown || (count >= said && count < said + PROGRESS_STEP)) return;
    said = count;
    process.stdout.write(` ${count}`);
  };
  const compile = async () => {
    for (const build of builds) await build.run({ signal, say });
  };
  const compiling = compile();
  compiling.catch(() => {});
  const run = () => {
    isShown = true;
    return compiling;
  };
  return { finish: () => runStep({ name: "tools in Go, packages compiled", isCurrent: () => false, run }) };
}

async function main() {
  process.env.HOME ||= userInfo().homedir;
  const { names, locked } = readArguments();
  const wanted = names.map((name) => targets[name]);
  const of = (part) => wanted.flatMap((target) => target[part]?.() ?? []);
  const builds = toolsSteps(wanted.flatMap(({ tools = [] }) => tools));
  const parts = { steps: [debianStep(...names), ...of("steps")], builds, last: of("last") };
  if (locked) await runSteps(parts);
  else if (
    !Object.values(parts)
      .flat()
      .every((step) => step.isCurrent())
  )
    process.exitCode = runLocked(names);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`\nSet-up failed. ${error.message}`);
  process.exitCode = 1;
}
