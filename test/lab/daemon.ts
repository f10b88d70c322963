/**
 * A long-running child whose life is the caller's: its output is stored; it ends on request, and with this process at
 * the latest.
 * Effects: a child.
 */
import { spawn } from "node:child_process";
import type { Netns } from "./netns.ts";
import { pauseSince } from "./waiting.ts";

export interface Daemon {
  readonly name: string;
  readonly pid: number;
  /** Returns its output to stdout and stderr; if there is much, the end. */
  output(): string;
  isRunning(): boolean;
  /** Throws with its output when it has ended. */
  requireRunning(): void;
  /**
   * Asks until `isReady` says so; throws with the output when the daemon ends or `limitMs` is over. An error of
   * `isReady` means no, and is named then.
   */
  until(isReady: () => Promise<boolean>, limitMs: number): Promise<void>;
  /** SIGKILL, and waits for the end: its remains are disposable. */
  kill(): Promise<void>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>;
}

const MAX_OUTPUT_CHARACTERS = 200_000;

/** Starts `argv`, in the namespace when there is one. Rejects when it cannot be started. */
export async function startDaemon(name: string, argv: readonly string[], netns?: Netns): Promise<Daemon> {
  // The kernel ends the child with us, so that an aborted test run leaves no servers behind.
  const bound = ["setpriv", "--pdeathsig", "KILL", "--", ...argv];
  const [file = "", ...args] = netns?.enter(bound) ?? bound;
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT_CHARACTERS);
    });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const fail = (what: string): never => {
    throw new Error(`${name} ${what}:\n${output.split("\n").slice(-30).join("\n")}`);
  };
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (isRunning()) child.kill(signal);
    await ended;
    return child.exitCode;
  };
  const daemon: Daemon = {
    name,
    pid: child.pid ?? 0,
    output: () => output,
    isRunning,
    requireRunning: () => isRunning() || fail(`has ended (${child.exitCode ?? child.signalCode})`),
    until: async (isReady, limitMs) => {
      const start = performance.now();
      let reason = "";
      const refused = (error: unknown): false => {
        reason = `: ${error}`;
        return false;
      };
      while (!(await isReady().catch(refused))) {
        daemon.requireRunning();
        if (performance.now() - start > limitMs) fail(`is not ready after ${limitMs} ms${reason}`);
        await pauseSince(start);
      }
    },
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
  };
  return daemon;
}
