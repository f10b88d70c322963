/**
 * Tables that are written as text, for messages that are full of quotes. A row is a line `input => expected`; one
 * that is too long continues on the next line, which begins with `=>`. Backslashes mean themselves.
 */
export function rows(table: TemplateStringsArray): [input: string, expected: string][] {
  return splitRows(table.raw.join("")).map(([input, expected]) => [input.trim(), expected]);
}

/** The same with a value behind the title of each row: `title ${input} => expected`. */
export function cases<T>(table: TemplateStringsArray, ...inputs: T[]): [title: string, input: T, expected: string][] {
  const found = splitRows(table.raw.join(VALUE));
  const count = found.filter(([title]) => title.endsWith(VALUE)).length;
  if (count !== found.length || count !== inputs.length) throw new Error("Want one value behind each title");
  return inputs.map((input, at) => [found[at]?.[0].slice(0, -VALUE.length).trim() ?? "", input, found[at]?.[1] ?? ""]);
}

const VALUE = "\0";

function splitRows(text: string): [left: string, right: string][] {
  const lines = text
    .trim()
    .replaceAll(/\n\s*=> /g, " => ")
    .split(/\n\s*/);
  return lines.map((line) => {
    const [left, right, ...more] = line.split(" => ");
    if (left === undefined || right === undefined || more.length > 0) throw new Error(`Not a row: ${line}`);
    return [left, right];
  });
}
