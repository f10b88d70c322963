/**
 * Found values as phrases of error texts: short, on one line, without invisible characters.
 * Called wherever an error says what was found.
 */

/** Longest piece of a found value that an error shows: UTF-16 units. @limit */
export const MAX_SHOWN_VALUE = 80;

/** A found value as a short phrase: quoted and cut when it is text, by its kind when it is big. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  const cut = value.length > MAX_SHOWN_VALUE ? `${value.slice(0, MAX_SHOWN_VALUE)}…` : value;
  return JSON.stringify(cut).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** What was thrown, as text: an error's message, anything else as it prints. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The name of the system's error, such as `ENOENT`; undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** A text that is longer than `most` is cut, and says by how much. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most).toWellFormed();
  return `${kept}… (${text.length - kept.length} more characters)`;
}
