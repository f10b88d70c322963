/** Durations such as `30s`, `200ms` or `1h30m`. */
import { type CelRule, cel, rawText } from "../../lib/cel.ts";
import { parsedText } from "../../lib/schema.ts";

/** Longest text of a duration: characters. */
const MAX_DURATION_LENGTH = 32;

/** Longest duration, that of a timer of Node.js: milliseconds. */
export const MAX_DURATION_MS = 2_147_483_647;

/** The form that {@link parseDuration} accepts, for error texts. */
const DURATION_FORM = 'a duration such as "30s", "200ms" or "1h30m", at most 24 days';

/** Units from long to short; each at most once and in this order. */
const DURATION = /^(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?$/;
const UNIT_MS = [3_600_000, 60_000, 1_000, 1];

/** Returns milliseconds; undefined if the text is not a duration or exceeds MAX_DURATION_MS. */
function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null || text === "") return undefined;
  const ms = UNIT_MS.reduce((sum, unit, index) => sum + Number(match[index + 1] ?? 0) * unit, 0);
  return ms <= MAX_DURATION_MS ? ms : undefined;
}

/** Returns the shortest text of a duration in milliseconds: `90000` is `1m30s`. */
export function formatDuration(ms: number): string {
  const units = ["h", "m", "s", "ms"];
  let rest = ms;
  let text = "";
  for (const [index, unitMs] of UNIT_MS.entries()) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) text += `${count}${units[index]}`;
  }
  return text === "" ? "0s" : text;
}

/** {@link DURATION} with few enough digits for CEL's 64 bits of nanoseconds. Longer ones exceed the limit anyway. */
const COUNTABLE = "^(0*[0-9]{1,3}h)?(0*[0-9]{1,5}m)?(0*[0-9]{1,7}s)?(0*[0-9]{1,10}ms)?$";

function durationRule(message: string, comparison: string): CelRule {
  const inRange = `duration(self) ${comparison} && duration(self) <= duration('${MAX_DURATION_MS}ms')`;
  return { rule: `self != '' && self.matches(${rawText(COUNTABLE)}) && ${inRange}`, message };
}

/** A duration of 0 or more, in milliseconds. */
export const duration = parsedText(parseDuration, DURATION_FORM, MAX_DURATION_LENGTH).meta({
  title: "duration",
  ...cel(durationRule(DURATION_FORM, ">= duration('0s')")),
});

const POSITIVE_FORM = `${DURATION_FORM}, longer than 0`;

/** A duration longer than 0, in milliseconds. */
export const positiveDuration = parsedText(
  (text) => parseDuration(text) || undefined,
  POSITIVE_FORM,
  MAX_DURATION_LENGTH,
).meta({ title: "duration", ...cel(durationRule(POSITIVE_FORM, "> duration('0s')")) });
