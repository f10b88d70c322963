/**
 * The process of `berth-agent` from its first statement on. The registry's thread takes as long to start as the program to be loaded, so one starts beside
 * the other.
 */
import { getCompileCacheDir } from "node:module";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runScript } from "../lib/compiled-script.ts";
import { startRegistryThread } from "../registry/sqlite/registry-thread.ts";

/** The options of which a serving agent has one. Without them, as with `berth-agent install`, hardly anything needs the thread. */
const MODES = /^--(config|kubeconfig|in-cluster)(=|$)/;

// The main thread has its limits by now. Those of the command line would hold for every other thread, too, whatever its own `resourceLimits` are.
for (const limit of ["min-semi-space-size", "max-semi-space-size", "max-old-space-size"])
  setFlagsFromString(`--${limit}=0`);

// Registry, spool and socket belong to root alone, whatever the umask of the caller: SQLite creates files by the umask, and a socket exists before its mode is set.
process.umask(0o077);

const mode = process.argv.map((argument) => MODES.exec(argument)?.[1]).find((name) => name !== undefined);
const registryThread = mode === undefined ? undefined : startRegistryThread({ isJournal: mode !== "config" });
// Until it has something to open it keeps no process alive that serves nothing.
registryThread?.worker.unref();

// The bundle of agent-program.ts. Its code is kept where Node.js keeps its own, in a directory for this version of V8 and this user.
const path = fileURLToPath(new URL("agent-program.cjs", import.meta.url));
const { exports, keepCode } = runScript<typeof import("./agent-program.ts")>(path, getCompileCacheDir());
await exports.runProgram(process.argv, { registryThread, keepCode });
// An installation comes before the first start, which finds a part of its code then. The rest of the agent's it keeps itself.
if (registryThread === undefined) await keepCode?.(false).catch(() => undefined);
