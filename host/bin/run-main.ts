/**
 * The start of an executable: checks that Node.js is new enough before anything is loaded that an old one cannot parse, and replaces the process by
 * itself with options that can only be given before the start. Imports nothing but what every Node.js has.
 */
import { fileURLToPath } from "node:url";

/** The first version with everything that Berth uses, as pinned in package.json. */
const MIN_NODE_MAJOR = 26;

/** Ends the process with a sentence when Node.js is too old for `program`. */
export function requireNode(program: string): void {
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= MIN_NODE_MAJOR) return;
  console.error(
    `${program} needs Node.js ${MIN_NODE_MAJOR} or newer, this is ${node} (${process.execPath}); install a newer version, or run ${program} with one`,
  );
  process.exit(1);
}

/** Replaces the process by `main`, a file beside this one, with `options` of Node.js; what was given on the command line stays. */
export function become(main: string, options: readonly string[], environment: Readonly<Record<string, string>>): void {
  const path = fileURLToPath(new URL(main, import.meta.url));
  const args = [process.execPath, ...options, ...process.execArgv, path, ...process.argv.slice(2)];
  process.execve?.(process.execPath, args, { ...process.env, ...environment } as Record<string, string>);
}

/** SIGUSR1 would open the inspector on loopback: code as root for every process of the node. */
export const DISABLE_SIGUSR1 = "--disable-sigusr1";
