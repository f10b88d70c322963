/** Ends of the agent and the controller as processes: signals, bugs, wrong usage; SIGHUP and SIGUSR1 end nothing. */
import type { Command } from "commander";
import { messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";

const FAILED = 1;
const WRONG_USAGE = 2;

/** Commander's own exit code of wrong usage is 1. */
export function endsOnUsage(program: Command): Command {
  return program.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_USAGE));
}

/** Ends the process; `text` is a clause. */
export function refuseUsage(text: string): never {
  console.error(`error: ${text}`);
  process.exit(WRONG_USAGE);
}

interface Life {
  /** Tells the log and ends the process with 1. */
  readonly die: (error: unknown) => never;
  /** SIGTERM and SIGINT wait for it. */
  stop: () => Promise<void>;
}

/**
 * SIGTERM and SIGINT end the process with 0, also while it starts: the kernel ignores those that the first process of
 * a container does not take. Ignores SIGHUP: log files and settings are reloaded automatically. Ignores SIGUSR1 as
 * well: Node.js would open its inspector on loopback, which runs code as root for every process of the node.
 */
export function openLife(log: Log): Life {
  const die = (error: unknown): never => {
    log.fatal({ err: error }, messageOf(error));
    process.exit(FAILED);
  };
  process.on("uncaughtException", die);
  process.on("SIGHUP", (signal) =>
    log.info({ signal }, "Ignored the signal: log files and settings are reloaded automatically"),
  );
  process.on("SIGUSR1", () => {});
  const life: Life = { die, stop: async () => {} };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      log.info({ signal }, "Stopping");
      life.stop().then(() => process.exit(0), die);
    });
  }
  return life;
}
