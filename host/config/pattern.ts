/**
 * Patterns of pool names: `*` any text, `?` one character, `[a-c]` one of, `[!a-c]` one not of (spec.md, Resolved A).
 * Called by the annotations (syntax) and by selection (matching).
 * Effects: none.
 */

/** Whether the text is a pattern rather than a plain name. */
export function isPattern(text: string): boolean {
  return /[*?[\]]/.test(text);
}

/** Whether the whole name matches; a plain name matches itself. */
export function matchPattern(_pattern: string, _name: string): boolean {
  throw new Error("matchPattern is under construction");
}
