/**
 * The Python embedding: the core copied into its package, the wheel, and an environment of this checkout in which the
 * wheel is installed. What the wheel needs is installed once per requirements.txt and Python, in the user's cache;
 * with that there, nothing is downloaded.
 * Effects: embeddings/python/src/berth_core/berth-core.wasm, dist/embeddings/python, the user's cache.
 */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir, root } from "../paths.mjs";
import { buildStep, hashInputs } from "../stamp.mjs";

const source = join(root, "embeddings", "python");
const output = join(root, "dist", "embeddings", "python");
const requirements = join(source, "requirements.txt");
const publishing = join(source, "requirements-publish.txt");

const core = join(root, "dist", "core", "berth-core.wasm");
const packaged = join(source, "src", "berth_core", "berth-core.wasm");
const [, version] = /^version = "(.*)"$/m.exec(readFileSync(join(source, "pyproject.toml"), "utf8"));
const wheel = `berth_core-${version}-py3-none-any.whl`;

/** Beside the wheel: what replays the vectors. */
const programs = ["conformance"];

/** Prints what distinguishes one Python from another; fails when it is too old or lacks venv. */
const PROBE =
  "import sys, venv, ensurepip; assert sys.version_info >= (3, 10); print(sys.executable, sys.version, sys.maxsize)";

export function pythonSteps() {
  return [copyStep(), wheelStep()];
}

function copyStep() {
  return buildStep({
    name: "core for Python",
    inputs: [core],
    outputs: [packaged],
    build: () => copyFileSync(core, packaged),
  });
}

/** Python is looked up when the step runs: an earlier step may install it. */
function wheelStep() {
  const step = () => buildWith(findPython());
  return { name: "Python embedding", isCurrent: () => step().isCurrent(), run: () => step().run() };
}

function buildWith(python) {
  const files = readdirSync(join(source, "src", "berth_core")).filter((name) => /\.(py|typed)$/.test(name));
  return buildStep({
    name: "Python embedding",
    inputs: [
      ...files.map((name) => join(source, "src", "berth_core", name)),
      ...["pyproject.toml", "README.md", "requirements.txt"].map((name) => join(source, name)),
      core,
    ],
    outputs: [wheel, join("venv", "bin", "python"), ...programs].map((name) => join(output, name)),
    texts: [python?.identity ?? ""],
    build: () => {
      const tools = requireTools(python);
      rmSync(output, { recursive: true, force: true });
      mkdirSync(output, { recursive: true });
      buildWheel(tools);
      installWheel(tools);
      for (const program of programs) writeLauncher(program);
    },
  });
}

/** The first Python that will do; an executable may be there and yet not run, or lack venv. */
function findPython() {
  for (const command of [findCommand("python3"), "/usr/bin/python3"]) {
    if (command === undefined) continue;
    const { status, stdout } = spawnSync(command, ["-c", PROBE], { encoding: "utf8" });
    if (status === 0) return { command, identity: stdout };
  }
  return undefined;
}

/** The step for what `publishingPython` needs: beside the package's own requirements, build and twine. */
export function publishingStep() {
  return {
    name: "build and twine for Python",
    isCurrent: () => existsSync(toolsOf(findPython(), publishing)),
    run: () => void requireTools(findPython(), publishing),
  };
}

/** The `python` that has build, twine and setuptools. */
export function publishingPython() {
  return join(toolsOf(findPython(), publishing), "bin", "python");
}

const toolsOf = (python, list) =>
  join(cacheDir(), "embeddings", `python-${hashInputs([list], [python?.identity ?? ""]).slice(0, 16)}`);

/** The environment with what a list names, made when it is not there: its `python`, and its packages. */
function requireTools(python, list = requirements) {
  if (python === undefined) {
    throw new SetupError(
      "The Python embedding cannot be built",
      "there is no python3 of version 3.10 or newer with venv",
      "apt-get install python3 python3-venv",
    );
  }
  const directory = toolsOf(python, list);
  if (!existsSync(directory)) makeTools(python.command, directory, list);
  return { python: join(directory, "bin", "python"), packages: packagesOf(directory) };
}

function makeTools(command, directory, list) {
  mkdirSync(join(directory, ".."), { recursive: true });
  const temporary = mkdtempSync(`${directory}.`);
  try {
    run(command, ["-m", "venv", temporary]);
    pip(
      join(temporary, "bin", "python"),
      "install",
      "--no-deps",
      "--require-hashes",
      "--only-binary",
      ":all:",
      "-r",
      list,
    );
    renameSync(temporary, directory);
  } catch (error) {
    // Another checkout's set-up may have been quicker.
    if (!existsSync(directory)) throw error;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Builds a copy: setuptools leaves its own files in the tree, and takes old ones from there. */
function buildWheel({ python }) {
  const copy = join(output, "source");
  for (const name of ["pyproject.toml", "README.md", "src"]) {
    cpSync(join(source, name), join(copy, name), {
      recursive: true,
      filter: (path) => !/__pycache__|\.egg-info/.test(path),
    });
  }
  pip(python, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", output, copy);
  rmSync(copy, { recursive: true });
}

/** An environment of this checkout: the wheel, and by a path file the packages of the cache. */
function installWheel({ python, packages }) {
  const environment = join(output, "venv");
  run(python, ["-m", "venv", "--without-pip", environment]);
  writeFileSync(join(packagesOf(environment), "berth-requirements.pth"), `${packages}\n`);
  const target = ["--target", packagesOf(environment)];
  pip(python, "install", "--no-deps", "--no-index", ...target, join(output, wheel));
}

/** Python as the wheel's user has it: -I keeps the source tree out, -B leaves no compiled files in it. */
function writeLauncher(program) {
  const here = '"$(dirname "$0")"';
  const line = `exec ${here}/venv/bin/python -I -B ${here}/../../../embeddings/python/${program}.py "$@"`;
  writeFileSync(join(output, program), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
}

function packagesOf(environment) {
  const [version] = readdirSync(join(environment, "lib")).filter((name) => name.startsWith("python3"));
  return join(environment, "lib", version, "site-packages");
}

function pip(python, command, ...args) {
  const options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"];
  return run(python, ["-m", "pip", command, ...options, ...args]);
}
