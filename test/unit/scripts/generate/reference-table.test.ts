import { describe, expect, it } from "vitest";
import { z } from "zod";
import { referenceTable } from "../../../../scripts/generate/pages/reference-table.ts";

describe("referenceTable", () => {
  it("lists fields, those of inner objects and those of lists", () => {
    const inner = z.strictObject({ dst: z.string().meta({ title: "CIDR", description: "Where." }) });
    const schema = z.strictObject({
      on: z.boolean().default(true).meta({ description: "Whether." }),
      routes: z.array(inner).optional(),
      mode: z.enum(["a", "b"]),
      wait: z.int().optional().meta({ description: "How long. Default `3`." }),
    });
    expect(referenceTable(schema).split("\n").slice(2)).toEqual([
      "| `on` | boolean | `true` | Whether. |",
      "| `routes` | list of object |  |  |",
      "| `routes[].dst` | CIDR | required | Where. |",
      '| `mode` | `"a"`, `"b"` | required |  |',
      "| `wait` | integer | `3` | How long. |",
    ]);
  });
  it("describes equal objects once", () => {
    const inner = z.strictObject({ a: z.int() });
    const schema = z.strictObject({ all: z.array(inner), last: inner.optional(), old: z.array(inner) });
    expect(referenceTable(schema).split("\n").slice(2)).toEqual([
      "| `all` | list of object | required |  |",
      "| `all[].a` | integer | required |  |",
      "| `last` | as `all[]` |  |  |",
      "| `old` | as `all[]` | required |  |",
    ]);
  });
  it("leaves out fields that another table has, unless they differ", () => {
    const known = z.strictObject({ a: z.int(), b: z.int() });
    const schema = z.strictObject({ a: z.int(), b: z.int().optional(), c: z.int() });
    const rows = ["| `b` | integer |  |  |", "| `c` | integer | required |  |"];
    expect(referenceTable(schema, known).split("\n").slice(2)).toEqual(rows);
  });
  it("is empty for a value without fields", () => expect(referenceTable(z.array(z.string()))).toBe(""));
});
