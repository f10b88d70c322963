/**
 * When a step has nothing to do: its outputs exist and its stamp holds the hash of today's inputs.
 * Effects: reads the inputs; writes stamps by rename.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./paths.mjs";

/**
 * Feeds a file, or all files below a folder in the order of their names, into `hash`. An absent one counts as absent.
 */
function feed(hash, path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) {
    for (const name of readdirSync(path).sort()) feed(hash, join(path, name));
    return;
  }
  const content = stat === undefined ? "absent" : readFileSync(path);
  hash.update(`${path.slice(root.length)}\0${content.length}\0`).update(content);
}

/** The hash of texts and of the contents of `inputs` (files and folders). */
export function hashInputs(inputs, texts = []) {
  const hash = createHash("sha256");
  for (const path of inputs) feed(hash, path);
  for (const text of texts) hash.update(`\0${text}`);
  return hash.digest("hex");
}

export function readStamp(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

export function writeStamp(path, hash) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, hash);
  renameSync(`${path}.tmp`, path);
}

/**
 * A step {name, isCurrent, run} that builds `outputs` from `inputs`. The hash is taken before the build:
 * an input that changes meanwhile makes the next set-up build again.
 */
export function buildStep({ name, inputs, outputs, texts = [], build }) {
  const stamp = join(root, "dist", ".stamps", name.replaceAll(/[^a-z0-9]+/gi, "-"));
  const current = () => hashInputs(inputs, texts);
  return {
    name,
    isCurrent: () => outputs.every((path) => existsSync(path)) && readStamp(stamp) === current(),
    run: () => {
      const hash = current();
      build();
      writeStamp(stamp, hash);
    },
  };
}
