/**
 * The pause between two questions of a loop that waits for something: a tenth of the time that has passed, so that a long wait does not keep those busy
 * who answer, and ends at most a tenth late.
 */
import { setTimeout as sleep } from "node:timers/promises";

const LEAST_MS = 10;
const MOST_MS = 50;

/** `startMs`: when the loop began, by performance.now(). */
export async function pauseSince(startMs: number): Promise<void> {
  await sleep(Math.min(MOST_MS, Math.max(LEAST_MS, (performance.now() - startMs) / 10)));
}
