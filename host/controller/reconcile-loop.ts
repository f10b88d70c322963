/**
 * The loop of a controller: each pass compares the whole actual state with the desired one and corrects it. It decides
 * from the caches, so the next pass makes up for a lost one.
 */
import { pauseMs } from "../kubernetes/http/retry.ts";
import { type PeriodicOptions, PeriodicWorker } from "../lib/periodic.ts";
import type { ControllerDeps } from "./types.ts";

/** Time for which a controller waits after a failed pass, plus its rest and a random back-off: milliseconds. */
export const RECONCILE_RETRY_MS = 1_000;

interface ReconcileOptions extends Required<Pick<PeriodicOptions, "failure" | "work" | "restMs">> {
  /** Subscribes to the triggers of the next pass. Returns the functions that end the subscriptions. Default: none. */
  readonly follow?: (wake: () => void) => readonly (() => void)[];
}

class ReconcileLoop extends PeriodicWorker {
  readonly #ends: readonly (() => void)[];

  constructor({ follow = () => [], ...options }: PeriodicOptions & Pick<ReconcileOptions, "follow">) {
    super(options);
    this.#ends = follow(() => this.wake());
  }

  override async close(): Promise<void> {
    for (const end of this.#ends) end();
    await super.close();
  }
}

/** Starts the first pass at once. No pass starts after this process has stopped leading. */
export function startReconciling(
  { leading, log, random }: Pick<ControllerDeps, "leading" | "log" | "random">,
  options: ReconcileOptions,
): PeriodicWorker {
  const retryMs = (failures: number) => options.restMs() + RECONCILE_RETRY_MS + pauseMs(failures, random());
  return new ReconcileLoop({ ...options, retryMs, signal: leading, log });
}
