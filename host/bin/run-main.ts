/**
 * How an executable begins: it looks whether Node.js is new enough before anything is loaded that an old one cannot read, and becomes the
 * same process again with options that can be given before the start only.
 * Called by the executables; imports nothing but what every Node.js has.
 * Effects: ends the process with 1 under an old Node.js; replaces it.
 */
import { fileURLToPath } from "node:url";

/** The first with all that Berth uses, as pinned in package.json. */
const MIN_NODE_MAJOR = 26;

/** Ends the process with a sentence when Node.js is too old for `program`. */
export function requireNode(program: string): void {
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= MIN_NODE_MAJOR) return;
  console.error(
    `${program} needs Node.js ${MIN_NODE_MAJOR} or newer, this is ${node} (${process.execPath}); install a newer one, or call ${program} with it`,
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
export const NO_INSPECTOR = "--disable-sigusr1";
