/**
 * The common part of the embeddings: each has two programs in dist/embeddings/LANGUAGE, `conformance`, which replays
 * vectors, and `readme`, which is the program in its README.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../paths.mjs";
import { buildStep } from "../stamp.mjs";

/** The built core. */
export const core = join(root, "dist", "core", "berth-core.wasm");

export const sourceOf = (language) => join(root, "embeddings", language);

export const outputOf = (language) => join(root, "dist", "embeddings", language);

/** Returns the program in the README. */
export function readmeProgram(language) {
  const [, program] = /^```\w+\n(.*?)^```$/ms.exec(readFileSync(join(sourceOf(language), "README.md"), "utf8")) ?? [];
  if (program === undefined) throw new Error(`embeddings/${language}/README.md has no program`);
  return program;
}

/** Writes a program that is a line of the shell, in which $HERE is its folder. */
export function writeLauncher(path, line) {
  writeFileSync(path, `#!/bin/sh\nHERE=$(dirname "$(readlink -f "$0")")\nexec ${line} "$@"\n`);
  chmodSync(path, 0o755);
}

/** The step that makes both programs; `files` are the embedding's own, `build` gets an empty folder. */
export function embeddingStep(language, { files, texts = [], build }) {
  const output = outputOf(language);
  return buildStep({
    name: `embedding ${language}`,
    inputs: [core, ...files.map((name) => join(sourceOf(language), name))],
    outputs: ["conformance", "readme"].map((name) => join(output, name)),
    texts: [process.arch, ...texts],
    build: () => {
      rmSync(output, { recursive: true, force: true });
      mkdirSync(output, { recursive: true });
      build(output);
    },
  });
}
