/**
 * The executable `berth-agent`: the same process again with limits on V8's heap and one heap of the C library, both of
 * which can be set before the start only. Without them the agent works as well and takes a third more memory.
 * Effects: replaces itself by berth-agent-main.mjs; exits with 1 on a Node.js that is too old for it.
 */
import { fileURLToPath } from "node:url";

/** Megabytes. The young generation holds what a call makes; the agent keeps no object per address. */
const HEAP_LIMITS = ["--max-semi-space-size=4", "--max-old-space-size=96"];

/** The first with all that the agent uses, as pinned in package.json. */
const MIN_NODE_MAJOR = 26;

if (process.execve === undefined || Number.parseInt(process.versions.node, 10) < MIN_NODE_MAJOR) {
  console.error(
    `berth-agent needs Node.js ${MIN_NODE_MAJOR} or newer, this is ${process.versions.node} (${process.execPath})`,
  );
  process.exit(1);
}
const main = fileURLToPath(new URL("berth-agent-main.mjs", import.meta.url));
const args = [process.execPath, ...HEAP_LIMITS, ...process.execArgv, main, ...process.argv.slice(2)];
process.execve(process.execPath, args, { ...process.env, MALLOC_ARENA_MAX: "1" } as Record<string, string>);
