/**
 * The Rust embedding. Cargo's target folder is in the user's cache, so that checkouts share their compiled
 * dependencies.
 * Effects: dist/embeddings/rust, embeddings/rust/examples/readme.rs, the user's cache, cargo's registry cache.
 */
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findCommand, run, SetupError } from "../command.mjs";
import { cacheDir } from "../paths.mjs";
import { embeddingStep, readmeProgram, sourceOf } from "./embedding.mjs";

const source = sourceOf("rust");
const target = join(cacheDir(), "embeddings", "rust");

/** The oldest compiler that the crate was tried with. */
const OLDEST = [1, 95];

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

export function rustStep() {
  const files = ["src", "examples/conformance.rs", "Cargo.toml", "Cargo.lock", "README.md"];
  return embeddingStep("rust", { files, build });
}

function build(output) {
  const { cargo, env } = requireRust();
  writeFileSync(join(source, "examples", "readme.rs"), readmeProgram("rust"));
  // Only the dependencies, which are compiled once, are optimized: without that, which is a minute less, the vectors
  // take six seconds in each run.
  const dependencies = 'profile.dev.package."*".opt-level=1';
  const quick = { ...env, CARGO_PROFILE_DEV_DEBUG: "0" };
  run(cargo, ["build", "--locked", "--examples", "--config", dependencies], { cwd: source, env: quick });
  for (const name of ["conformance", "readme"])
    copyFileSync(join(target, "debug", "examples", name), join(output, name));
}
