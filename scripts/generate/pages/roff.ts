/** Text for man pages: roff with the macros of man(7), also out of the Markdown of the reference pages. */

/** Text for roff: no line begins with a control character, and a hyphen is what a user types. */
export function roff(text: string): string {
  const escaped = text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("`", "").replaceAll('"', "\\(dq");
  return escaped
    .replace(/^(['.])/gm, "\\&$1")
    .replace(
      /[^\x20-\x7e\n]/g,
      (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    );
}

/** Text between the marks of Markdown: links are their words. */
const plain = (text: string): string =>
  text
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replaceAll(/\*\*?([^*\s][^*]*)\*\*?/g, "$1")
    .replaceAll("\\|", "|")
    .replaceAll("&lt;", "<");

const cellsOf = (row: string): string[] =>
  row
    .replaceAll("\\|", "\0")
    .split("|")
    .slice(1, -1)
    .map((cell) => plain(cell.trim().replaceAll("\0", "|")));

/** Returns a table's rows as terms: the first cell, and what its other cells say under their titles. */
function termsOf(table: readonly string[]): string[] {
  const [titles = [], , ...rows] = table.map(cellsOf);
  return rows.flatMap(([term = "", ...cells]) => {
    const meaning = cells.flatMap((cell, index) => {
      if (cell === "") return [];
      const title = titles[index + 1] ?? "";
      return [index === cells.length - 1 ? cell : `${title}: ${cell}.`];
    });
    return [".TP", `.B ${roff(term)}`, roff(meaning.join(" ")) || "\\&"];
  });
}

/** Returns the body of a page of this repository, without its title: headings, paragraphs, lists, tables, examples. */
export function roffOf(markdown: string): string[] {
  const blocks =
    markdown.replaceAll(/<!--.*?-->\n?/gs, "").match(/^```[\s\S]*?^```$|^#+ .*$|(?:^(?!```|#+ ).+$\n?)+/gm) ?? [];
  return blocks.flatMap((block) => {
    const lines = block.trimEnd().split("\n");
    const [first = ""] = lines;
    if (first.startsWith("```")) return [".PP", ".nf", ...lines.slice(1, -1).map((line) => roff(line) || "\\&"), ".fi"];
    if (first.startsWith("# ")) return [];
    if (first.startsWith("#"))
      return [`${first.startsWith("## ") ? ".SH" : ".SS"} "${roff(plain(first.replace(/^#+ /, "")))}"`];
    if (first.startsWith("|")) return termsOf(lines);
    if (/^(?:[*-]|\d+\.) /.test(first)) {
      const items = lines
        .join("\n")
        .split(/^(?:[*-]|\d+\.) /m)
        .slice(1);
      return items.flatMap((item) => [".IP \\(bu 2", roff(plain(item.replaceAll(/\s+/g, " ").trim()))]);
    }
    return [".PP", roff(plain(lines.map((line) => line.trim()).join("\n")))];
  });
}
