import { describe, expect, it } from "vitest";
import { z } from "zod";
import { annotationsPage } from "../../../host/resources/pages/annotations-page.ts";
import { referenceTable } from "../../../host/resources/pages/reference-table.ts";
import { resourcesPage } from "../../../host/resources/pages/resources-page.ts";
import { expectCommitted } from "../house/committed-page.ts";

it("docs/annotations.md is what the schemas say", () => expectCommitted("docs/annotations.md", annotationsPage()));

it("docs/resources.md is what the schemas say", () => expectCommitted("docs/resources.md", resourcesPage()));

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
      "| `on` | boolean |  | `true` | Whether. |",
      "| `routes` | list of object |  |  |  |",
      "| `routes[].dst` | CIDR | yes |  | Where. |",
      '| `mode` | `"a"`, `"b"` | yes |  |  |',
      "| `wait` | integer |  | `3` | How long. |",
    ]);
  });
  it("is empty for a value without fields", () => {
    expect(referenceTable(z.array(z.string()))).toBe("");
  });
});
