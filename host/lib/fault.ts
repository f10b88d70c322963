/**
 * Deterministic fault injection: every durable or visible effect of the agent reports here just before (or after) it
 * happens, and a test can make effect number n fail or kill the process. In production every point is a no-op.
 */

/** Reports that the effect `point` is about to happen. Throws {@link FaultError}, or ends, if the plan chose it. */
export type Faults = (point: string) => void;

export interface FaultPlan {
  readonly action: "fail" | "kill";
  /** Which effect, counted from 1 over all threads of the agent. */
  readonly number: number;
  /** If set, only effects of this name count. */
  readonly point?: string;
}

/** An injected failure. `errcode` is SQLITE_IOERR, so that storage code handles it like a real one. */
class FaultError extends Error {
  override readonly name = "FaultError";
  readonly errcode = 10;
}

export const noFaults: Faults = () => {};

const PLAN = /^(fail|kill)@([1-9][0-9]*)(?::([a-z.-]+))?$/;

/** Parses `kill@7`, `fail@2:registry.commit`. Throws on anything else. */
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

/** Returns a counter that all threads of one agent share. */
export function createFaultCounter(): SharedArrayBuffer {
  return new SharedArrayBuffer(4);
}

/** Returns the fault points of one thread. Threads with the same `counter` count together. */
export function openFaults(plan: FaultPlan | undefined, counter: SharedArrayBuffer): Faults {
  if (plan === undefined) return noFaults;
  const reached = new Int32Array(counter);
  return (point) => {
    if (plan.point !== undefined && plan.point !== point) return;
    if (Atomics.add(reached, 0, 1) + 1 !== plan.number) return;
    if (plan.action === "kill") process.kill(process.pid, "SIGKILL");
    throw new FaultError(`Effect ${plan.number} (${point}) failed: injected by the fault plan`);
  };
}
