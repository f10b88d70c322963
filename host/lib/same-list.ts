/** Returns whether the lists have the same elements in the same order. */
export function isSameList<T>(
  a: readonly T[],
  b: readonly T[],
  isSame: (a: T, b: T) => boolean = (one, other) => one === other,
): boolean {
  return a.length === b.length && a.every((each, at) => isSame(each, b[at] as T));
}
