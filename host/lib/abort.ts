import { setTimeout as sleep } from "node:timers/promises";

/**
 * Returns the result of `work`, or rejects with the signal's reason if that aborts first. The work itself continues;
 * its failure after the abort is ignored.
 */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Resolves when `work` has ended, however it ends, or after this time. The work itself continues. */
export async function waitAtMost(work: Promise<unknown>, milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  try {
    await Promise.race([promise, work.catch(() => {})]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after so many milliseconds, or when the signal aborts. */
export async function pauseUnlessAborted(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {});
}
