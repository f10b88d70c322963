/** Times and durations as arguments. Times without a zone are of this machine's, which the caller names to the user. */
import { positiveDuration } from "../config/fields/duration.ts";
import { decode } from "../lib/schema.ts";
import { UsageError } from "./exit-code.ts";

const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
/** RFC 3339 §5.6; everything after the day may be absent. */
const MOMENT = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2}(?:\.\d{1,9})?))?([Zz]|[+-]\d{2}:\d{2})?)?$/;
const AGO = /^(?=\d)(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?$/;

/**
 * Returns the milliseconds of a duration such as `10s` or `1h30m`. A number alone is in `unitMs`, as options once took.
 * Throws UsageError.
 */
export function parseSpan(option: string, text: string, unitMs = 1_000): number {
  const decoded = decode(positiveDuration, /^[\d.]+$/.test(text) ? `${Math.round(Number(text) * unitMs)}ms` : text);
  if (decoded.ok) return decoded.value;
  const [{ wanted }] = decoded.mismatches;
  throw new UsageError(`Option ${option}: found ${JSON.stringify(text)}, want ${wanted}`);
}

interface ParsedTime {
  readonly time: Date;
  /** Whether the zone is this machine's, because the text has none. */
  readonly isLocal: boolean;
}

const FORMS = "14:02, 14:02:30, 2026-01-31T14:02:00Z, or 1h30m";

/**
 * Takes `14:02`, `14:02:30` (today), `2026-01-31T14:02:00Z`, the same without a zone or a time, and `1h30m` (ago).
 * Throws UsageError, also for a time that does not exist.
 */
export function parseTime(text: string, now = new Date()): ParsedTime {
  const parsed = parseAgo(text, now) ?? parseClock(text, now) ?? parseMoment(text);
  if (parsed !== undefined) return parsed;
  throw new UsageError(`Time: found ${JSON.stringify(text)}, want ${FORMS} for that long ago`);
}

function parseAgo(text: string, now: Date): ParsedTime | undefined {
  const [match, ...parts] = AGO.exec(text) ?? [];
  if (match === undefined) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0));
  const spanMs = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
  return { time: new Date(now.getTime() - spanMs), isLocal: false };
}

function parseClock(text: string, now: Date): ParsedTime | undefined {
  const [match, hour = "", minute = "", second = "00"] = CLOCK.exec(text) ?? [];
  if (match === undefined) return undefined;
  const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, "0"));
  return parseMoment(`${day.join("-")}T${hour.padStart(2, "0")}:${minute}:${second}`);
}

/** Date rolls over invalid parts: the result is compared with the text. */
function parseMoment(text: string): ParsedTime | undefined {
  const [match, day = "", minutes = "00:00", seconds = "00", zone] = MOMENT.exec(text) ?? [];
  if (match === undefined) return undefined;
  const clock = `${day}T${minutes}:${seconds}`;
  const asUtc = new Date(`${clock}Z`);
  const wanted = `${day}T${minutes}:${seconds.slice(0, 2)}`;
  if (Number.isNaN(asUtc.getTime()) || !asUtc.toISOString().startsWith(wanted)) return undefined;
  const time = zone === undefined ? new Date(clock) : new Date(`${clock}${zone.toUpperCase()}`);
  if (Number.isNaN(time.getTime())) return undefined;
  // A clock that is put forward skips some.
  const isSkipped = time.getHours() !== asUtc.getUTCHours() || time.getMinutes() !== asUtc.getUTCMinutes();
  if (zone === undefined && isSkipped) return undefined;
  return { time, isLocal: zone === undefined };
}

/** As {@link parseTime}; a duration counts from now on. Throws UsageError, also for a time that has passed. */
export function parseDeadline(option: string, text: string, now = new Date()): Date {
  const ago = parseAgo(text, now);
  const { time } = parseClock(text, now) ?? parseMoment(text) ?? {};
  const end = ago === undefined ? time : new Date(2 * now.getTime() - ago.time.getTime());
  if (end !== undefined && end > now) return end;
  const wanted = end === undefined ? `${FORMS} from now` : "a time to come";
  throw new UsageError(`Option ${option}: found ${JSON.stringify(text)}, want ${wanted}`);
}

/** Returns this machine's zone with its distance from UTC at that time: `Europe/Berlin, UTC+01:00`. */
export function describeZone(time: Date): string {
  const east = -time.getTimezoneOffset();
  const [hours, minutes] = [Math.trunc(Math.abs(east) / 60), Math.abs(east) % 60];
  const distance = [hours, minutes].map((part) => String(part).padStart(2, "0")).join(":");
  return `${Intl.DateTimeFormat().resolvedOptions().timeZone}, UTC${east < 0 ? "-" : "+"}${distance}`;
}
