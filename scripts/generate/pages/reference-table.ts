/** A schema as a table of the reference pages: the fields that a person may write. */
import { z } from "zod";

/** The part of JSON Schema that our schemas come out as. */
export interface JsonSchema {
  readonly title?: string;
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly { readonly $ref: string }[];
  readonly definitions?: Readonly<Record<string, JsonSchema>>;
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function typeOf({ title, type, enum: values, items }: JsonSchema): string {
  if (title !== undefined) return title;
  if (values !== undefined) return values.map(code).join(", ");
  return items === undefined ? (type ?? "any") : `list of ${typeOf(items)}`;
}

/** A default that is described but not set ends the description: `… Default 3.` */
function explain({ description = "", default: value }: JsonSchema): { meaning: string; fallback: string } {
  const [, meaning = description, described = ""] = /^(.*?)\.? Default (.+)\.$/.exec(description) ?? [];
  return {
    meaning: described === "" ? meaning : `${meaning}.`,
    fallback: value === undefined ? described : code(value),
  };
}

/** Paths of objects by their fields: the second object with the same fields refers to the first. */
type Described = Map<string, string>;

/** Fields of objects, and of objects in lists; a type that has a title is explained elsewhere. */
function fieldsOf(schema: JsonSchema, path: string, described: Described): string[] {
  if (schema.items !== undefined) return fieldsOf(schema.items, `${path}[]`, described);
  if (schema.title !== undefined) return [];
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const name = path === "" ? key : `${path}.${key}`;
    const { meaning, fallback } = explain(field);
    const like = findLike(field, name, described);
    const type = like === undefined ? typeOf(field) : `as \`${like}\``;
    const cells = [`\`${name}\``, type, schema.required?.includes(key) ? "required" : fallback, meaning];
    return [`| ${cells.join(" | ")} |`, ...(like === undefined ? fieldsOf(field, name, described) : [])];
  });
}

/** Returns the path of an earlier object with these fields, and else notes this one. */
function findLike({ title, items, properties = items?.properties }: JsonSchema, path: string, described: Described) {
  if (properties === undefined || (items ?? { title }).title !== undefined) return undefined;
  const fields = JSON.stringify(properties);
  const found = described.get(fields);
  if (found === undefined) described.set(fields, items === undefined ? path : `${path}[]`);
  return found;
}

function rowsOf(schema: z.ZodType): string[] {
  const json = z.toJSONSchema(schema, { io: "input", target: "openapi-3.0", unrepresentable: "throw" });
  return fieldsOf(json as JsonSchema, "", new Map());
}

/**
 * Returns the Markdown table of all fields, without rows that the table of `described` has, too; a list's fields
 * begin with `[]`. Empty for a schema without fields.
 */
export function referenceTable(schema: z.ZodType, described?: z.ZodType): string {
  const known = new Set(described === undefined ? [] : rowsOf(described));
  const fields = rowsOf(schema).filter((row) => !known.has(row));
  if (fields.length === 0) return "";
  return ["| Field | Type | Default | Meaning |", "|---|---|---|---|", ...fields].join("\n");
}
