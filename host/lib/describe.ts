/** Values and errors as short phrases for error texts, on one line and without invisible characters. */
import { printable } from "./printable.ts";

/** Longest part of a value that an error shows: UTF-16 units. */
const MAX_SHOWN_VALUE = 80;

/** Returns a value as a short phrase: text quoted and cut, lists and objects by their type. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  const cut = value.length > MAX_SHOWN_VALUE ? `${value.slice(0, MAX_SHOWN_VALUE)}…` : value;
  return printable(JSON.stringify(cut));
}

/** Returns the message of an error, or the text of another thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code of a system error, such as `ENOENT`; undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Returns whether there is no such file. */
export function isMissing(error: unknown): boolean {
  return errnoOf(error) === "ENOENT";
}

/** Returns the text, cut to `most` characters with a note of how many more there are. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most).toWellFormed();
  return `${kept}… (${text.length - kept.length} more characters)`;
}

/** Returns the first `most` of the names, and how many more there are: `n1, n2 and 40 more`. */
export function listSome(names: readonly string[], most: number): string {
  return listed(names.slice(0, most), names.length);
}

/** Returns the names, followed by the number of those that are left out of `count`. */
export function listed(names: readonly string[], count: number): string {
  const more = count - names.length;
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
