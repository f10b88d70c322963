/**
 * Waiting for work that goes on by itself, but not too long.
 * Effects: a timer, gone when the wait is over.
 */

/** Resolves when the work has ended, however, or after so many milliseconds. */
export async function atMost(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  try {
    await Promise.race([promise, work.catch(() => {})]);
  } finally {
    clearTimeout(timer);
  }
}
