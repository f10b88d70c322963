/**
 * The process of `berth-agent` from its first statement on. The registry's thread takes as long to start as the program to be loaded, so one starts beside
 * the other.
 */
import { setFlagsFromString } from "node:v8";
import { startRegistryThread } from "../registry/sqlite/registry-thread.ts";

/** The options of which a serving agent has one. Without them, as with `berth-agent install`, hardly anything needs the thread. */
const MODES = /^--(config|kubeconfig|in-cluster)(=|$)/;

// The main thread has its limits by now. Those of the command line would hold for every other thread, too, whatever its own `resourceLimits` are.
for (const limit of ["min-semi-space-size", "max-semi-space-size", "max-old-space-size"])
  setFlagsFromString(`--${limit}=0`);

// Registry, spool and socket belong to root alone, whatever the umask of the caller: SQLite creates files by the umask, and a socket exists before its mode is set.
process.umask(0o077);

const registryThread = process.argv.some((argument) => MODES.test(argument)) ? startRegistryThread() : undefined;
// Until it has something to open it keeps no process alive that serves nothing.
registryThread?.worker.unref();

const { runProgram } = await import("./agent-program.ts");
await runProgram(process.argv, registryThread);
