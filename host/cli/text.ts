/** Values as text for a terminal: numbers and colours. */

/** Whole numbers above this are shown by the nearest power of two: 2^32. Below it digits are as short. */
const MAX_DIGITS = 1n << 32n;

/** A larger number within this distance of a power of two is shown as a sum or difference: `2^64-3`. */
const NEAR_POWER = 1_000_000n;

/** Returns `4096`, `2^64`, `2^64-3`, or `~1.2e20`. */
export function formatCount(count: bigint): string {
  if (count <= MAX_DIGITS) return String(count);
  const exponent = count.toString(2).length - 1;
  for (const power of [exponent, exponent + 1]) {
    const rest = count - (1n << BigInt(power));
    if (rest === 0n) return `2^${power}`;
    if (rest < NEAR_POWER && rest > -NEAR_POWER) return `2^${power}${rest > 0n ? "+" : ""}${rest}`;
  }
  const digits = String(count);
  return `~${digits[0]}.${digits[1]}e${digits.length - 1}`;
}

/** Returns whole percents, rounded down: `0%` only for none (else `<1%`), `100%` only for all. "-" of nothing. */
export function formatPercent(part: bigint, whole: bigint): string {
  if (whole <= 0n) return "-";
  const percent = (part * 100n) / whole;
  return percent === 0n && part > 0n ? "<1%" : `${percent}%`;
}

export type Style = "red" | "yellow" | "green" | "dim" | "bold";

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

/** Returns the text in a colour; the text must be printable. */
export function paint(text: string, style: Style): string {
  return `\u001b[${CODES[style]}m${text}\u001b[0m`;
}
