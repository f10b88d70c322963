/**
 * The one deterministic fault seam: every durable or visible effect of the agent reports here just before
 * (or after) it happens, and a test can make effect number n fail or kill the process.
 * Called by the registry, the spool and the answer path; in production every point is a no-op.
 * Effects: none, or SIGKILL to the own process when told so.
 */

/** Reports that the effect called `point` is about to happen. Throws {@link FaultError} or does not return when it was chosen. */
export type Faults = (point: string) => void;

export interface FaultPlan {
  readonly action: "fail" | "kill";
  /** Which effect, counted from 1 over all threads of the agent. */
  readonly number: number;
  /** Only effects of this name count, when given. */
  readonly point?: string;
}

/** The failure that a test ordered. `errcode` is SQLite's SQLITE_IOERR, so that storage code treats it as its own. */
export class FaultError extends Error {
  override readonly name = "FaultError";
  readonly errcode = 10;
}

export const noFaults: Faults = () => {};

const PLAN = /^(fail|kill)@([1-9][0-9]*)(?::([a-z.-]+))?$/;

/** Parses `kill@7`, `fail@2:registry.commit`. Throws on anything else: a test with a typing mistake must not pass. */
export function parseFaultPlan(text: string): FaultPlan {
  const match = PLAN.exec(text);
  if (match === null) throw new Error(`Fault plan "${text}" is not of the form fail@N, kill@N or kill@N:point`);
  const [, action, number, point] = match;
  return {
    action: action === "kill" ? "kill" : "fail",
    number: Number(number),
    ...(point === undefined ? {} : { point }),
  };
}

/** One counter for all threads of one agent: four bytes of shared memory. */
export function createFaultCounter(): SharedArrayBuffer {
  return new SharedArrayBuffer(4);
}

/** Opens the seam in one thread. All threads that share `counter` count together. */
export function openFaults(plan: FaultPlan | undefined, counter: SharedArrayBuffer): Faults {
  if (plan === undefined) return noFaults;
  const reached = new Int32Array(counter);
  return (point) => {
    if (plan.point !== undefined && plan.point !== point) return;
    if (Atomics.add(reached, 0, 1) + 1 !== plan.number) return;
    if (plan.action === "kill") process.kill(process.pid, "SIGKILL");
    throw new FaultError(`Effect ${plan.number} (${point}) failed by order of the fault plan`);
  };
}
