/** Progress of a benchmark of many minutes: lines on stderr, with the seconds since this process began to measure. */
const startMs = performance.now();

export function sayProgress(text: string): void {
  process.stderr.write(`${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}
