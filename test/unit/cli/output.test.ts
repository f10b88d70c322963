import { expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { type Format, Output, type Table } from "../../../host/cli/output.ts";

interface Item {
  readonly name: string;
  readonly count: number;
  readonly note?: string;
}

const TABLE: Table<Item> = {
  nameOf: ({ name }) => name,
  columns: [
    { title: "NAME", cell: ({ name }) => name },
    {
      ...{ title: "COUNT", cell: ({ count }) => String(count), isNumber: true },
      style: ({ count }) => (count > 9 ? "red" : undefined),
    },
    { title: "NOTE", cell: ({ note }) => note, isWide: true },
  ],
};
const ITEMS: readonly Item[] = [
  { name: "a", count: 7 },
  { name: "long-name", count: 12, note: "full" },
];

async function print(format: Format, work: (out: Output) => Promise<void>, options = {}): Promise<string> {
  let text = "";
  const output = new Output({
    format,
    hasHeaders: true,
    isColored: false,
    write: (part) => {
      text += part;
    },
    ...options,
  });
  await work(output);
  return text;
}

const list = (format: Format, options: object) => print(format, (out) => out.list(TABLE, ITEMS, "HERE"), options);

it("a wide table has more columns; without headers it has neither titles nor heading", async () => {
  expect(await list("wide", { hasHeaders: false })).toBe("a           7  -\nlong-name  12  full\n");
});

it("colours do not move columns", async () => {
  expect(await list("table", { isColored: true, hasHeaders: false })).toBe(
    "a           7\nlong-name  \u001b[31m12\u001b[0m\n",
  );
});

it("rows that follow a table are aligned with it", async () => {
  const text = await print("table", async (out) => {
    await out.list(TABLE, ITEMS);
    await out.more(TABLE, [{ name: "b", count: 1 }]);
  });
  expect(text.split("\n").at(-2)).toBe("b              1");
});

it("rows that follow in JSON and YAML are one document for each record", async () => {
  const more = (format: Format) => print(format, (out) => out.more(TABLE, ITEMS));
  const lines = (await more("json")).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual(ITEMS);
  expect(parseAllDocuments(await more("yaml")).map((document) => document.toJS())).toEqual(ITEMS);
});

it.each(["a\u001b[31m", "\u009b", "two\nlines", "tab\t", "true", "- x", "\u202e", "#", " a "])(
  "YAML of %j stays the same value",
  async (name) => {
    const text = await print("yaml", (out) => out.value({ name }));
    expect(text).not.toMatch(/[[\p{Cc}\p{Cf}]--\n]/v);
    expect(parse(text)).toEqual({ name });
  },
);

it("a table of very many rows is one", async () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => ({ name: `a${index}`, count: index }));
  expect((await print("table", (out) => out.list(TABLE, rows))).split("\n")).toHaveLength(200_002);
});
