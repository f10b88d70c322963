/**
 * Commands of the set-up: found in PATH, run to their end, shown with their output only when they fail.
 * Effects: starts children.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { root } from "./paths.mjs";

/** A failure that set-up cannot repair: the thing, the reason, and the command for the user to run. */
export class SetupError extends Error {
  constructor(what, why, command) {
    super(`${what}: ${why}${command === undefined ? "" : `\nRun: ${command}`}`);
  }
}

/** The path of an executable in PATH or in `more` folders; undefined when there is none. */
export function findCommand(name, more = ["/usr/sbin", "/sbin"]) {
  for (const directory of [...(process.env.PATH ?? "").split(delimiter), ...more]) {
    try {
      const path = join(directory, name);
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return undefined;
}

/** Runs a command in the repository's root; throws its output, with the command line, unless it exits with 0. */
export function run(file, args, { cwd = root, env = {} } = {}) {
  const { status, signal, stdout, stderr, error } = spawnSync(file, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 28,
  });
  if (error !== undefined) throw new SetupError(`Cannot run ${file}`, error.message);
  if (status === 0) return stdout;
  const line = `(cd ${cwd} && ${[file, ...args].map(quote).join(" ")})`;
  throw new SetupError(`A command ended with ${status ?? signal}`, `\n${stdout}${stderr}`.trimEnd(), line);
}

/** As a POSIX shell needs it. */
function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
