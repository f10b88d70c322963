/** Search in lists that are in order. */

/** Returns the number of elements before the place. `isBefore` holds for the first ones, and for none after. */
export function countLeading<T>(list: readonly T[], isBefore: (each: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
