/** Changes of a host as a list that can be printed before it is carried out. */

export interface Step {
  /** `replace /opt/cni/bin/berth`. */
  readonly text: string;
  readonly run: () => void | Promise<void>;
}

/** The installation cannot continue; nothing was changed. */
export class InstallError extends Error {
  override readonly name = "InstallError";
}

export interface StepOptions {
  readonly dryRun: boolean;
  readonly print: (line: string) => void;
}

/** Prints each step and carries it out, in order; with `dryRun` only prints. */
export async function runSteps(steps: readonly Step[], { dryRun, print }: StepOptions): Promise<void> {
  for (const { text, run } of steps) {
    print(text);
    if (!dryRun) await run();
  }
}
