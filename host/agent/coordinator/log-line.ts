/**
 * One line of a log that people read in terminals and that strangers' texts go into: nothing in it but what it shows.
 * Called by log-stream.ts with what pino wrote: one JSON object and a line feed.
 */

/** Longest line of such a log: UTF-16 units. In a longer one the texts are cut. @limit */
export const MAX_LOG_LINE = 16 * 1024;

/** Longest text in a line that is too long: UTF-16 units. @limit */
export const MAX_LOG_TEXT = 1024;

/** What JSON lets through and a terminal obeys or hides: C1 controls, DEL, separators, directions, zero widths. */
const UNSEEN = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu;

/** The line with all that is invisible escaped, and with its texts cut when it is too long. */
export function cleanLine(line: string): string {
  const whole = line.replace(UNSEEN, escapeUnits);
  return whole.length <= MAX_LOG_LINE ? whole : shortenLine(line);
}

/** As JSON escapes: both halves of what has two. */
function escapeUnits(text: string): string {
  return text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

function shortenLine(line: string): string {
  const value: unknown = JSON.parse(line);
  const cut = (_key: string, inner: unknown): unknown =>
    typeof inner === "string" && inner.length > MAX_LOG_TEXT ? `${inner.slice(0, MAX_LOG_TEXT)}…` : inner;
  const short = `${JSON.stringify(value, cut)}\n`.replace(UNSEEN, escapeUnits);
  if (short.length <= MAX_LOG_LINE) return short;
  const { level, time, name } = { ...(typeof value === "object" ? value : {}) } as Readonly<Record<string, unknown>>;
  return `${JSON.stringify({ level, time, name, msg: `A line of ${line.length} characters is left out` })}\n`;
}
