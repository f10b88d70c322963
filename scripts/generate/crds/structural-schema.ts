/** A zod schema as the structural schema of a CustomResourceDefinition. */
import { z } from "zod";
import { type CelRule, celText, foundText } from "../../../host/lib/cel.ts";

/** The keys that come out, in the order in which they are written. */
const KEYS = [
  "description",
  "type",
  "format",
  "enum",
  "default",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "maxProperties",
  "items",
  "required",
  "properties",
  "additionalProperties",
  "x-kubernetes-map-type",
  "x-kubernetes-validations",
] as const;

/** Keys that the API server has no use for; `title` names a type in the reference pages. */
const DROPPED = ["title"];

export type StructuralSchema = { readonly [K in (typeof KEYS)[number]]?: unknown };

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the schema of accepted input. Throws for types that a structural schema lacks, such as a choice. */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  return clean(z.toJSONSchema(schema, { io: "input", target: "openapi-3.0", unrepresentable: "throw" }), "");
}

function clean(schema: unknown, path: string): StructuralSchema {
  if (!isObject(schema)) throw new TypeError(`${path} has no schema`);
  const strange = Object.keys(schema).find((key) => !KEYS.some((known) => known === key) && !DROPPED.includes(key));
  if (strange !== undefined) throw new TypeError(`${path} has "${strange}", which a structural schema has not`);
  const entries = KEYS.map((key) => [key, cleanKey(key, schema, path)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function cleanKey(key: (typeof KEYS)[number], schema: JsonObject, path: string): unknown {
  const value = schema[key];
  switch (key) {
    case "type":
      return value === "number" && isWhole(schema.enum) ? "integer" : value;
    case "minimum":
    case "maximum":
      return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value;
    case "default":
      // Whether a list is absent or empty may matter: absent stays absent.
      return Array.isArray(value) ? undefined : value;
    case "items":
      return value === undefined ? undefined : clean(value, `${path}[]`);
    case "properties":
      if (!isObject(value)) return undefined;
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, clean(inner, `${path}.${name}`)]));
    case "additionalProperties":
      // The API server knows by itself that there are no other keys.
      return isObject(value) && Object.keys(value).length > 0 ? clean(value, `${path}.*`) : undefined;
    case "x-kubernetes-validations":
      return schema.type === "string" && Array.isArray(value)
        ? value.map((rule) => withFound(rule, schema.maxLength))
        : value;
    default:
      return value;
  }
}

/**
 * The API server names only the type of a refused text; with this the message contains it, as those of the agent do.
 */
function withFound(rule: CelRule, maxLength: unknown): CelRule {
  const { messageExpression = celText(rule.message) } = rule;
  const { rule: expression, message, ...rest } = rule;
  return {
    rule: expression,
    message,
    ...rest,
    messageExpression: `${foundText("self", Number(maxLength ?? Number.POSITIVE_INFINITY))} + ${messageExpression}`,
  };
}

function isWhole(values: unknown): boolean {
  return Array.isArray(values) && values.every(Number.isSafeInteger);
}
