/**
 * The executable `berth-agent`: the same process again with limits on V8's heap and one heap of the C library, both of
 * which can be set before the start only. Without them the agent works as well and takes half as much memory more.
 * Effects: replaces itself by berth-agent-main.mjs.
 */
import { fileURLToPath } from "node:url";

/** Megabytes. A small young generation is swept often and stays small; the agent keeps no object per address. */
const HEAP_LIMITS = ["--max-semi-space-size=1", "--max-old-space-size=96"];

const main = fileURLToPath(new URL("berth-agent-main.mjs", import.meta.url));
const args = [process.execPath, ...HEAP_LIMITS, ...process.execArgv, main, ...process.argv.slice(2)];
process.execve?.(process.execPath, args, { ...process.env, MALLOC_ARENA_MAX: "1" } as Record<string, string>);
