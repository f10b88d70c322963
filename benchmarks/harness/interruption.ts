/**
 * SIGINT and SIGTERM: the benchmark stops at its next step, so that its namespaces, agents and files are removed as at
 * its normal end. A second signal ends the process at once.
 */
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** The run was interrupted. `exitCode`: the shell's for the signal. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

let interrupted: Interrupted | undefined;

/** Calls `print` when the first signal comes. */
export function watchSignals(print: (line: string) => void = console.error): void {
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (interrupted !== undefined) process.exit(interrupted.exitCode);
      interrupted = new Interrupted(signal);
      print(`${interrupted.message}: removing what the benchmark has made`);
    });
  }
}

/** Throws {@link Interrupted} after a signal. To be called before a step that takes long or makes something. */
export function requireUninterrupted(): void {
  if (interrupted !== undefined) throw interrupted;
}
