/** Suggests the known word for a misspelled one. */

/** Returns the restricted Damerau-Levenshtein distance. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(replace, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** Returns the closest of `known`, ignoring case, the first one of equals; undefined if none is close enough. */
export function findClosest(word: string, known: readonly string[]): string | undefined {
  // So many edits (insert, delete, replace, swap) are a misspelling of so long a word.
  const tolerance = word.length <= 4 ? 1 : word.length <= 8 ? 2 : 3;
  let best: { word: string; edits: number } | undefined;
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) > tolerance) continue;
    const edits = distance(word.toLowerCase(), candidate.toLowerCase());
    if (edits <= tolerance && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { word: candidate, edits };
  }
  return best?.word;
}
