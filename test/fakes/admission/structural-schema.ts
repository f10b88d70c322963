/**
 * A structural schema of a CustomResourceDefinition: the fields that an object keeps, their defaults, and the faults of
 * its form. The rules in CEL: schema-rules.ts. Texts are those of k8s.io/kube-openapi.
 */
import { isDeepStrictEqual } from "node:util";
import type { CelRule } from "../../../host/lib/cel.ts";
import { type Finding, fieldPath, isJson, type Json } from "./finding.ts";
import { SchemaRule } from "./schema-rules.ts";

/** To use another keyword, teach it to this file. */
const KEYWORDS = new Set([
  ...["description", "type", "format", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "pattern"],
  ...[
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "items",
    "required",
    "properties",
    "additionalProperties",
  ],
  "x-kubernetes-validations",
]);

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/i;

export class SchemaNode {
  readonly properties: ReadonlyMap<string, SchemaNode>;
  /** Of a list's entries, or of a map's values. */
  readonly entries: SchemaNode | undefined;
  readonly rules: readonly SchemaRule[];
  readonly #schema: Json;
  readonly #pattern: RegExp | undefined;

  constructor(schema: Json) {
    const strange = Object.keys(schema).find((key) => !KEYWORDS.has(key));
    if (strange !== undefined) throw new Error(`The fake knows no keyword ${strange} of a schema`);
    const { properties = {}, items, additionalProperties, pattern } = schema;
    const entries = items ?? additionalProperties;
    this.#schema = schema;
    this.properties = new Map(
      Object.entries(properties as Json).map(([key, each]) => [key, new SchemaNode(each as Json)]),
    );
    this.entries = entries === undefined ? undefined : new SchemaNode(entries as Json);
    this.rules = ((schema["x-kubernetes-validations"] ?? []) as CelRule[]).map((rule) => new SchemaRule(rule));
    this.#pattern = pattern === undefined ? undefined : new RegExp(String(pattern), "u");
  }

  /** Returns the schema of a field, or of an entry. */
  inside(key: string): SchemaNode | undefined {
    return this.properties.get(key) ?? this.entries;
  }

  /**
   * Returns the value without fields that the schema does not have, whose paths it adds to `dropped`, and with
   * defaults.
   */
  shape(value: unknown, path: string, dropped: string[]): unknown {
    if (Array.isArray(value))
      return value.map((each, index) => this.entries?.shape(each, `${path}[${index}]`, dropped) ?? each);
    if (!isJson(value)) return value;
    const shaped: Record<string, unknown> = {};
    for (const [key, each] of Object.entries(value)) {
      const inner = this.inside(key);
      const place = fieldPath(path, key);
      if (inner === undefined) dropped.push(place);
      else if (each !== null) shaped[key] = inner.shape(each, place, dropped);
    }
    for (const [key, { defaultValue }] of this.properties)
      if (shaped[key] === undefined && defaultValue !== undefined) shaped[key] = structuredClone(defaultValue);
    return shaped;
  }

  get defaultValue(): unknown {
    return this.#schema.default;
  }

  /** Returns the faults of the form; `old`: the value before, whose faults are tolerated. */
  findings(value: unknown, old: unknown, path: string): Finding[] {
    if (old !== undefined && isDeepStrictEqual(value, old)) return [];
    if (!this.#hasType(value)) {
      const found = typeOf(value);
      const text = `${path} in body must be of type ${this.#schema.type}: "${found}"`;
      return [{ field: path, message: `Invalid value: "${found}": ${text}`, isBlocking: true }];
    }
    const own = this.#ownFindings(value, path);
    if (Array.isArray(value))
      return [...own, ...value.flatMap((each, index) => this.#inner(undefined, each, undefined, `${path}[${index}]`))];
    if (!isJson(value)) return own;
    const before: Json = isJson(old) ? old : {};
    const inner = Object.entries(value).flatMap(([key, each]) =>
      this.#inner(key, each, before[key], fieldPath(path, key)),
    );
    return [...own, ...inner];
  }

  #inner(key: string | undefined, value: unknown, old: unknown, path: string): Finding[] {
    return (key === undefined ? this.entries : this.inside(key))?.findings(value, old, path) ?? [];
  }

  #hasType(value: unknown): boolean {
    const { type } = this.#schema;
    return type === typeOf(value) || (type === "number" && typeof value === "number");
  }

  #ownFindings(value: unknown, path: string): Finding[] {
    if (typeof value === "string") return this.#ofText(value, path);
    if (typeof value === "number") return this.#ofNumber(value, path);
    if (Array.isArray(value)) return this.#ofCount(value.length, path, ["minItems", "maxItems"]);
    if (!isJson(value)) return [];
    const missing = ((this.#schema.required ?? []) as string[]).filter((key) => value[key] === undefined);
    return [
      ...missing.map((key) => ({ field: fieldPath(path, key), message: "Required value", isBlocking: true })),
      ...this.#ofCount(Object.keys(value).length, path, ["minProperties", "maxProperties"]),
    ];
  }

  #ofText(text: string, path: string): Finding[] {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = this.#schema;
    const length = [...text].length;
    const found = this.#ofEnum(text, path);
    if (length > Number(maxLength)) found.push(blocking(path, `Too long: may not be more than ${maxLength} bytes`));
    if (length < Number(minLength))
      found.push(invalid(path, text, `${path} in body should be at least ${minLength} chars long`));
    if (this.#pattern?.test(text) === false)
      found.push(invalid(path, text, `${path} in body should match '${pattern}'`));
    if (format === "date-time" && !(DATE_TIME.test(text) && !Number.isNaN(Date.parse(text))))
      found.push({ ...invalid(path, text, `${path} in body must be of type date-time: "${text}"`), isBlocking: true });
    return found;
  }

  #ofNumber(value: number, path: string): Finding[] {
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = this.#schema;
    const found = this.#ofEnum(value, path);
    if (value < Number(minimum))
      found.push(invalid(path, value, `${path} in body should be greater than or equal to ${minimum}`));
    if (value > Number(maximum))
      found.push(invalid(path, value, `${path} in body should be less than or equal to ${maximum}`));
    return found;
  }

  #ofEnum(value: unknown, path: string): Finding[] {
    const wanted = this.#schema.enum as readonly unknown[] | undefined;
    if (wanted === undefined || wanted.includes(value)) return [];
    const texts = wanted.map((each) => JSON.stringify(String(each))).join(", ");
    return [blocking(path, `Unsupported value: ${JSON.stringify(value)}: supported values: ${texts}`)];
  }

  #ofCount(count: number, path: string, [least, most]: readonly [string, string]): Finding[] {
    const { [least]: min = 0, [most]: max = Number.POSITIVE_INFINITY } = this.#schema;
    if (count > Number(max)) return [blocking(path, `Too many: ${count}: must have at most ${max} items`)];
    return count < Number(min) ? [invalid(path, count, `${path} in body should have at least ${min} items`)] : [];
  }
}

function blocking(field: string, message: string): Finding {
  return { field, message, isBlocking: true };
}

function invalid(field: string, value: unknown, text: string): Finding {
  return { field, message: `Invalid value: ${JSON.stringify(value)}: ${text}`, isBlocking: false };
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}
