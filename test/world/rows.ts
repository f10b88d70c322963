/**
 * The rows of a table that is written as text, for inputs and messages that are full of quotes: `input => expected`, one a line. A row that
 * is too long for a line continues on the next one, which begins with `=>`. Backslashes mean themselves.
 */
export function rows(table: TemplateStringsArray): [input: string, expected: string][] {
  const [text = ""] = table.raw;
  const lines = text
    .trim()
    .replaceAll(/\n\s*=> /g, " => ")
    .split(/\n\s*/);
  return lines.map((line) => {
    const [input, expected, ...more] = line.split(" => ");
    if (input === undefined || expected === undefined || more.length > 0) throw new Error(`Not a row: ${line}`);
    return [input.trim(), expected];
  });
}
