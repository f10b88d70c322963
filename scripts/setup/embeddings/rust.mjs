/**
 * The Rust embedding: the crate with its tests, and the programs for tests.
 * Their dependencies are compiled once per lock file and compiler: the user's cache keeps them for other checkouts.
 * Effects: dist/embeddings/rust, the user's cache, cargo's registry cache.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir, root } from "../paths.mjs";
import { buildStep, hashInputs } from "../stamp.mjs";

const source = join(root, "embeddings", "rust");
const output = join(root, "dist", "embeddings", "rust");
const target = join(output, "target");
const manifests = ["Cargo.toml", "Cargo.lock"].map((name) => join(source, name));

const PROGRAMS = ["conformance", "first"];
/** The oldest compiler that the crate was tried with. */
const OLDEST = [1, 95];
const FOLDERS = ["deps", "build", ".fingerprint"];

/**
 * Cargo and its environment, wherever the user's home is: rustup keeps its folders beside the one with its commands.
 */
export function requireRust() {
  const cargo = findCommand("cargo", [join(process.env.HOME ?? "", ".cargo", "bin")]);
  if (cargo === undefined) throw rustError('there is no "cargo" in PATH');
  const home = dirname(dirname(cargo));
  const isRustup = existsSync(join(dirname(cargo), "rustup")) && basename(home) === ".cargo";
  const homes = isRustup ? { CARGO_HOME: home, RUSTUP_HOME: join(dirname(home), ".rustup") } : {};
  const { CARGO_HOME, RUSTUP_HOME } = process.env;
  const own = { ...(CARGO_HOME && { CARGO_HOME }), ...(RUSTUP_HOME && { RUSTUP_HOME }) };
  const env = { ...homes, ...own, CARGO_TARGET_DIR: target, CARGO_TERM_COLOR: "never" };
  const rustc = findCommand("rustc", [dirname(cargo)]) ?? "rustc";
  const compiler = run(rustc, ["--version", "--verbose"], { cwd: source, env });
  const release = /^release: (\S+)/m.exec(compiler)?.[1] ?? "";
  if (!isEnough(release)) throw rustError(`rustc is ${release || "of an unknown version"}`);
  return { cargo, compiler, env };
}

function isEnough(release) {
  const [major = 0, minor = 0] = release.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

function rustError(why) {
  return new SetupError(
    "The Rust embedding cannot be built",
    `${why}; Rust ${OLDEST.join(".")} or newer is needed, and Debian's own is older`,
    "rustup toolchain install stable && rustup default stable (rustup: package rustup of Debian 13, or rustup.rs), then npm run setup",
  );
}

export function rustSteps() {
  return [crateStep()];
}

function crateStep() {
  const parts = ["src", "examples", "tests", "README.md"].map((name) => join(source, name));
  return buildStep({
    name: "Rust embedding",
    inputs: [...manifests, ...parts],
    outputs: PROGRAMS.map((name) => join(output, name)),
    texts: [process.arch],
    build: () => {
      const { cargo, compiler, env } = requireRust();
      const cache = join(cacheDir(), "embeddings", "rust", hashInputs(manifests, [compiler]).slice(0, 16));
      mkdirSync(output, { recursive: true });
      if (!existsSync(target) && existsSync(cache)) run("cp", ["-a", cache, target]);
      run(cargo, ["build", "--release", "--locked", "--lib", "--examples", "--tests"], { cwd: source, env });
      if (!existsSync(cache)) keepDependencies(cache);
      for (const name of PROGRAMS) {
        const program = join(output, name);
        copyFileSync(join(target, "release", "examples", name), `${program}.tmp`);
        renameSync(`${program}.tmp`, program);
      }
    },
  });
}

/** Copies what cargo has compiled to `cache`, without what is of the crate itself. */
function keepDependencies(cache) {
  mkdirSync(dirname(cache), { recursive: true });
  const temporary = mkdtempSync(`${cache}.`);
  try {
    const release = join(temporary, "release");
    mkdirSync(release);
    for (const folder of FOLDERS) run("cp", ["-a", join(target, "release", folder), release]);
    const own = new RegExp(`^(lib)?(berth[-_]core|${readdirSync(join(source, "tests")).join("|")})-`);
    for (const folder of FOLDERS) {
      for (const name of readdirSync(join(release, folder))) {
        if (own.test(name)) rmSync(join(release, folder, name), { recursive: true });
      }
    }
    renameSync(temporary, cache);
  } catch (error) {
    // Another checkout's set-up may have been quicker.
    if (!existsSync(cache)) throw error;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
