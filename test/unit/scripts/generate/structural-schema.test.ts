import { describe, expect, it } from "vitest";
import { z } from "zod";
import { structuralSchema } from "../../../../scripts/generate/crds/structural-schema.ts";

describe("structuralSchema", () => {
  it.each([
    ["a choice of types", z.object({ a: z.union([z.string(), z.number()]) }), '.a has "anyOf"'],
    ["a choice of objects in a list", z.array(z.union([z.object({}), z.boolean()])), '[] has "anyOf"'],
    ["a value that may be null", z.object({ a: z.string().nullable() }), '.a has "nullable"'],
  ])("refuses %s", (_title, schema, message) => expect(() => structuralSchema(schema)).toThrow(message));

  it("refuses what JSON Schema cannot say", () => {
    expect(() => structuralSchema(z.object({ a: z.bigint() }))).toThrow();
  });
});
