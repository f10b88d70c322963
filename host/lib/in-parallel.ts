/**
 * Runs `work` for all items, at most `most` at a time. Returns the results in the order of the items. Throws the
 * first error once all started work has ended.
 */
export async function inParallel<T, R>(items: readonly T[], most: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  const waiting = items.entries();
  const run = async (): Promise<void> => {
    for (const [at, item] of waiting) {
      if (errors.length > 0) return;
      try {
        results[at] = await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, run));
  if (errors.length > 0) throw errors[0];
  return results;
}
