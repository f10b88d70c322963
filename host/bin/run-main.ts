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

/** How Node.js is to run a program. */
interface NodeSettings {
  readonly options: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Runs `main`, a file beside this one. Unless the process has these settings already it is replaced by one that has, which costs a second start of
 * Node.js; what was given on the command line stays.
 */
export async function become(main: string, { options, environment }: NodeSettings): Promise<void> {
  const url = new URL(main, import.meta.url);
  const { execArgv, execPath, env } = process;
  const hasOptions = options.every((option) => execArgv.includes(option));
  if (hasOptions && Object.entries(environment).every(([name, value]) => env[name] === value)) {
    await import(url.href);
    return;
  }
  const args = [execPath, ...options, ...execArgv, fileURLToPath(url), ...process.argv.slice(2)];
  process.execve?.(execPath, args, { ...env, ...environment } as Record<string, string>);
}

/** SIGUSR1 would open the inspector on loopback: code as root for every process of the node. */
const DISABLE_SIGUSR1 = "--disable-sigusr1";

/**
 * Limits on V8's heap, in megabytes, one heap of the C library, and more threads for what the kernel takes long for (docs/decisions/0038), all of which
 * can be set before the start only. Without them the agent works as well and takes a third more memory. The young generation holds what a call makes; the
 * agent keeps no object per address. V8 would shrink it to 1 MB between calls, and collect it with every second pod (docs/decisions/0037). With a lower limit of
 * the old generation it would collect that before the first pod's ADD (docs/decisions/0041).
 * Other options of V8, such as `--expose-gc`, make Node.js compile its own modules at each start (host/lib/collect-garbage.ts).
 */
export const AGENT_SETTINGS: NodeSettings = {
  options: ["--min-semi-space-size=4", "--max-semi-space-size=4", "--max-old-space-size=256", DISABLE_SIGUSR1],
  environment: { MALLOC_ARENA_MAX: "1", UV_THREADPOOL_SIZE: "8" },
};

/**
 * The controller keeps a record for each allocation, and decoding one makes many times its size in garbage. V8 would let the heap grow to several times
 * what is alive: with 150,000 records the process takes half as much memory with these limits.
 */
export const CONTROLLER_SETTINGS: NodeSettings = {
  options: ["--max-semi-space-size=4", "--heap-growing-percent=15", DISABLE_SIGUSR1],
  environment: { MALLOC_ARENA_MAX: "1" },
};
