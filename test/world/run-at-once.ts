import type { Steps } from "../../host/lib/turns.ts";

/** Does the work without a pause. */
export function runAtOnce<R>(steps: Steps<R>): R {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}
