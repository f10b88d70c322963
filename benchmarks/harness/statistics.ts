/** Samples to figures. */
import type { Sample } from "./runner.ts";

/** The smallest sample that `share` (0 to 1) of all samples do not exceed; NaN of none. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** That percentile of what the calls took from exec to exit: milliseconds. */
export function wallMs(samples: readonly Sample[], share: number): number {
  return percentile(
    samples.map((sample) => sample.wallMs),
    share,
  );
}

export function mean(samples: readonly number[]): number {
  return samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
}

/** Three significant digits, never an exponent: 0.123, 4.56, 78.9, 1234. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const decimals = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 4));
}
