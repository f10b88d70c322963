/**
 * A User-Mode Linux: a whole kernel as one process, with the kinds of links that the machine's own kernel may lack.
 *
 *   const exitCode = await runInMachine(["vitest", "run", "--project", "uml"], { directory });
 *
 * Its files are the machine's files, which it cannot change: only `directory` can be written to, by the same path
 * inside and outside. It has no networks but those made inside. It boots in a second or two, and is slow at system
 * calls: for function, not for speed. Needs root, for a process namespace: whatever ends, nothing of the guest stays
 * behind. Effects: a process of about a gigabyte; a folder inside `directory`; prints the output of the guest.
 */
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { cacheDir, root } from "../setup/paths.mjs";

/** Node.js packages are built for it, but Debian has User-Mode Linux for nothing else. */
export const hasMachine = process.arch === "x64";

const MEMORY_MB = 1024;
const isLong = process.env.BERTH_LONG !== undefined;
/** Lines of init.sh. */
const READY = "berth-uml: ready";
const DONE = "berth-uml: done";
/** Longest time that the guest may take to halt when its command has ended: its exit code is known then. */
const HALT_MS = 10_000;

export interface MachineOptions {
  /** A folder that is there; its path must do without quotes and commas. */
  readonly directory: string;
  /** Further words of the kernel's command line, such as `ipv6.disable=1`, which its modules read, too. */
  readonly kernel?: readonly string[];
  /** Longest time that the guest may take until the command starts. Default: 60,000. */
  readonly bootMs?: number;
  /** Longest time that the whole run may take. Default: 600,000, and an hour with all cases of the long tests. */
  readonly deadlineMs?: number;
  /** Receives the output of the guest and the machine, line by line. Default: the console. */
  readonly print?: (line: string) => void;
}

/**
 * Boots, runs `argv` (found in node_modules/.bin too) in the repository's root, halts. Gives the command's exit code.
 * Throws when the guest did not come to its end, with its output during the boot, or the reason of its end.
 */
export async function runInMachine(argv: readonly string[], options: MachineOptions): Promise<number> {
  await using folder = await mkdtempDisposable(join(options.directory, "uml-"));
  const { path: place } = folder;
  if (/["',\n]/.test(place)) throw new Error(`The kernel's command line cannot name folder ${place}; set TMPDIR`);
  const init = join(place, "init");
  const exitCode = join(place, "exit-code");
  const script = join(root, "scripts", "uml", "init.sh");
  const words = ["/bin/sh", script, options.directory, exitCode, root, ...argv].map(quote);
  // The guest's home is its own; the reference tools are where the machine has them.
  const cache = `BERTH_CACHE=${quote(cacheDir())}`;
  await writeFile(init, `#!/bin/sh\n${cache} exec ${words.join(" ")}\n`, { mode: 0o755 });
  await buildPreload(place);
  const why = await boot(place, init, options);
  const code = await readFile(exitCode, "utf8").catch(() => undefined);
  if (code === undefined) throw new Error(`User-Mode Linux did not come to the end of its command: ${why}`);
  return Number(code);
}

/** The library for registers of the processor that the kernel of the guest does not know: wide-registers.c. */
const PRELOAD = "wide-registers.so";

async function buildPreload(place: string): Promise<void> {
  const source = join(root, "scripts", "uml", "wide-registers.c");
  const words = ["-O2", "-Wall", "-shared", "-fPIC", "-o", join(place, PRELOAD), source];
  await promisify(execFile)("cc", words).catch((error: Error) => {
    throw new Error(`Cannot build what User-Mode Linux needs on this processor: ${error.message}`);
  });
}

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

/** The kernel's command line: memory in a file of `place`, the console on stdout and nowhere else, `init` first. */
function spawnKernel(
  place: string,
  init: string,
  words: readonly string[],
): ChildProcessByStdio<null, Readable, Readable> {
  const console = ["con=null", "con0=null,fd:1", "con1=null", "quiet", "loglevel=2"];
  const files = [
    "root=/dev/root",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    `uml_dir=${place}/`,
    `init="${init}"`,
    ...words,
  ];
  const kernel = ["linux.uml", `mem=${MEMORY_MB}M`, ...files, ...console];
  // When this process ends, so does unshare, and with it the kernel and every process of the guest, however far they
  // are.
  const [file = "", ...args] = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    ...kernel,
  ];
  // By a path without blanks, whatever `place` is called.
  const env = { ...process.env, TMPDIR: place, LD_PRELOAD: `./${PRELOAD}` };
  return spawn(file, args, { cwd: place, env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Resolves when it is off, with the reason for the case that it left no exit code. */
function boot(place: string, init: string, options: MachineOptions): Promise<string> {
  const { bootMs = 60_000, deadlineMs = isLong ? 3_600_000 : 600_000, print = console.log, kernel = [] } = options;
  const startMs = performance.now();
  const seconds = () => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
  let why: string | undefined;
  const end = (reason: string) => {
    why ??= `${reason} after ${seconds()}, and was ended`;
    child.kill("SIGKILL");
  };
  const booting = setTimeout(() => end("it had not booted"), bootMs);
  const deadline = setTimeout(() => end("it was not done"), deadlineMs);
  let halting: NodeJS.Timeout | undefined;
  let stage: "booting" | "running" | "done" = "booting";
  /** Its output while it boots: of interest if it fails. */
  const said: string[] = [];
  const receive = (line: string): void => {
    if (line === READY) {
      stage = "running";
      clearTimeout(booting);
      print(`User-Mode Linux: booted in ${seconds()}`);
    } else if (line === DONE) {
      stage = "done";
      halting = setTimeout(() => end("it did not halt"), HALT_MS);
    } else if (stage === "running") print(line);
    else if (stage === "booting") said.push(line);
  };
  const child = spawnKernel(place, init, kernel);
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on("line", receive);
  return new Promise<string>((resolve, reject) => {
    child.on("error", ({ message }) => reject(new Error(`Cannot start User-Mode Linux: ${message}`)));
    child.on("close", (code, signal) => {
      why ??= `it ended with ${code ?? signal} after ${seconds()}`;
      resolve(stage === "booting" ? `${why}; it said:\n${said.join("\n")}` : why);
    });
  }).finally(() => {
    for (const timer of [booting, deadline, halting]) clearTimeout(timer);
  });
}

/** The command line of those tests: nothing of vitest's own is written. The guest has an environment of its own. */
export function umlVitest(args: readonly string[]): string[] {
  const env = isLong ? ["env", "BERTH_LONG=1"] : [];
  return [...env, "vitest", "run", "--project", "uml", "--configLoader=native", "--fsModuleCache=false", ...args];
}
