/**
 * Running a command: `runCommand(argv)` gives the outcome whatever it is, `requireCommand(argv)` throws unless it
 * exits with 0.
 * Effects: starts a child and waits for it.
 */
import { spawn } from "node:child_process";
import { cacheDir, root } from "../../scripts/setup/paths.mjs";

export interface CommandOptions {
  /** Written to the child's stdin, which is then closed. Default: nothing. */
  readonly stdin?: string;
  /** Added to this program's own environment; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** After this long the child is killed. Default: 60,000. */
  readonly timeoutMs?: number;
}

/** `exitCode` is 128 + the signal's number when a signal ended the child, as a shell has it. */
export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

/** Runs `argv` to its end. Rejects only when it cannot be started. */
export function runCommand(argv: readonly string[], options: CommandOptions = {}): Promise<CommandOutcome> {
  const [file, ...args] = argv;
  if (file === undefined) throw new TypeError("A command needs at least its name");
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      env: { ...process.env, ...options.env },
      timeout: options.timeoutMs ?? 60_000,
      killSignal: "SIGKILL",
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.stdin.on("error", () => {}); // A child that does not read its stdin is no failure.
    child.stdin.end(options.stdin ?? "");
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const exitCode = code ?? 128 + (SIGNAL_NUMBERS[signal ?? ""] ?? 0);
      resolve({ exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() });
    });
  });
}

/** Returns `argv` as words of a line for a shell: the checkout may be in a folder of any name. */
export function formatShell(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}

/**
 * Returns lines for `sh -e` that mount something over folders of the machine, and then show the checkout and the
 * tools again, if they were below those.
 */
export function mountOver(mounts: string): string {
  const kept = [root, cacheDir()].map((path, index) => [8 + index, formatShell([path])] as const);
  const open = kept.map(([number, path]) => `exec ${number}<${path}`);
  const show = kept.map(
    ([number, path]) =>
      `[ ${path} -ef /proc/self/fd/${number} ] || { mkdir -p ${path}; mount --no-canonicalize --bind /proc/self/fd/${number} ${path}; }; exec ${number}<&-`,
  );
  return [...open, mounts, ...show].join("\n");
}

/** Like {@link runCommand}, but throws the output unless the exit code is 0. Returns stdout. */
export async function requireCommand(argv: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runCommand(argv, options);
  if (exitCode === 0) return stdout;
  throw new Error(`Command "${argv.join(" ")}" failed with exit code ${exitCode}: ${(stderr || stdout).trim()}`);
}
