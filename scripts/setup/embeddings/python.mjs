/**
 * The Python embedding: a wheel, and both programs with the wheel installed for them. Its requirements are installed
 * once per requirements.txt and Python, in the user's cache; later runs download nothing.
 * Effects: dist/embeddings/python, the user's cache.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir } from "../paths.mjs";
import { hashInputs } from "../stamp.mjs";
import { embeddingStep, readmeProgram, sourceOf, writeLauncher } from "./embedding.mjs";

const source = sourceOf("python");
const parts = ["pyproject.toml", "README.md", "src"];

/** Prints the identity of a Python; fails when it is too old or lacks venv. */
const PROBE = "import sys, venv, ensurepip; assert sys.version_info >= (3, 10); print(sys.executable, sys.version)";

export function pythonStep() {
  return embeddingStep("python", { files: ["conformance.py", "requirements.txt", ...parts], build });
}

function build(output) {
  const python = requireTools();
  // A copy: setuptools leaves its own files in the tree, and takes old ones from there.
  const filter = (path) => !path.endsWith("__pycache__");
  for (const name of parts) cpSync(join(source, name), join(output, "source", name), { recursive: true, filter });
  const offline = ["--no-deps", "--no-index"];
  pip(python, "wheel", ...offline, "--no-build-isolation", "--wheel-dir", output, join(output, "source"));
  const [wheel] = readdirSync(output).filter((name) => name.endsWith(".whl"));
  pip(python, "install", ...offline, "--target", join(output, "site"), join(output, wheel));
  writeFileSync(join(output, "readme.py"), readmeProgram("python"));
  const interpreter = `env PYTHONPATH="$HERE/site" "${python}" -B`;
  writeLauncher(join(output, "conformance"), `${interpreter} "${join(source, "conformance.py")}"`);
  writeLauncher(join(output, "readme"), `${interpreter} "$HERE/readme.py"`);
}

/** Returns the Python of an environment with the packages of requirements.txt. */
function requireTools() {
  const probe = (file) => spawnSync(file, ["-c", PROBE], { encoding: "utf8" });
  const command = [findCommand("python3"), "/usr/bin/python3"].find((file) => file && probe(file).status === 0);
  if (command === undefined) {
    throw new SetupError(
      "The Python embedding cannot be built",
      "there is no python3 of version 3.10 or newer with venv",
      "apt-get install python3 python3-venv",
    );
  }
  const requirements = join(source, "requirements.txt");
  const key = hashInputs([requirements], [probe(command).stdout]).slice(0, 16);
  const environment = join(cacheDir(), "embeddings", `python-${key}`);
  const python = join(environment, "bin", "python");
  if (existsSync(join(environment, "complete"))) return python;
  run(command, ["-m", "venv", "--clear", environment]);
  pip(python, "install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", requirements);
  writeFileSync(join(environment, "complete"), "");
  return python;
}

function pip(python, command, ...args) {
  run(python, ["-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-input", ...args]);
}
