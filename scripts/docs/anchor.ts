/** Returns the name that a heading's text has in links to it: as GitHub makes it. */
export function anchorOf(text: string): string {
  const words = text.trim().toLowerCase();
  return words.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
}
