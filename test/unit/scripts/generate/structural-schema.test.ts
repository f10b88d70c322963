import { describe, expect, it } from "vitest";
import { z } from "zod";
import { structuralSchema } from "../../../../scripts/generate/crds/structural-schema.ts";

describe("structuralSchema", () => {
  it("keeps what the API server knows, in one order, and drops the rest", () => {
    const schema = z.strictObject({
      mode: z.literal([4, 6]).meta({ title: "family", description: "Which." }),
      count: z.int().min(0).optional(),
      on: z.boolean().default(true),
      list: z.array(z.string().max(9)).max(3).default([]),
    });
    const text = JSON.stringify(structuralSchema(schema));
    expect(text).toBe(
      JSON.stringify({
        type: "object",
        required: ["mode"],
        properties: {
          mode: { description: "Which.", type: "integer", enum: [4, 6] },
          count: { type: "integer", minimum: 0 },
          on: { type: "boolean", default: true },
          list: { type: "array", maxItems: 3, items: { type: "string", maxLength: 9 } },
        },
      }),
    );
  });

  it("passes rules on, and the values of a map", () => {
    const rules = [{ rule: "self", message: "true" }];
    const map = z.unknown().meta({ type: "object", additionalProperties: { type: "string" } });
    const schema = z.object({ a: z.boolean().meta({ "x-kubernetes-validations": rules }), map });
    expect(structuralSchema(schema)).toMatchObject({
      properties: {
        a: { "x-kubernetes-validations": rules },
        map: { type: "object", additionalProperties: { type: "string" } },
      },
    });
  });

  it.each([
    ["a choice of types", z.object({ a: z.union([z.string(), z.number()]) }), '.a has "anyOf"'],
    ["a choice of objects in a list", z.array(z.union([z.object({}), z.boolean()])), '[] has "anyOf"'],
    ["a value that may be null", z.object({ a: z.string().nullable() }), '.a has "nullable"'],
  ])("refuses %s", (_title, schema, message) => expect(() => structuralSchema(schema)).toThrow(message));

  it("refuses what JSON Schema cannot say", () => {
    expect(() => structuralSchema(z.object({ a: z.bigint() }))).toThrow();
  });
});
