/**
 * Decodes objects of peers. Nothing of them is ignored silently: fields that the schema does not have become findings.
 */
import * as z from "zod";
import { describeValue } from "../../host/lib/describe.ts";
import { decode } from "../../host/lib/schema.ts";
import type { PlacedField } from "./findings.ts";

/**
 * Returns the decoded value; undefined if it does not fit the schema, with a problem for each mismatch. Fields that
 * the schema lacks are lost. `field` is the place of the value in its object.
 */
export function decodePlaced<S extends z.ZodType>(
  schema: S,
  value: unknown,
  { place, field }: PlacedField,
): z.output<S> | undefined {
  const decoded = decode(schema, value);
  if (!decoded.ok) {
    for (const { path, got, wanted } of decoded.mismatches)
      place.addPhrase("problem", joinPath(field, path), got, `want ${wanted}`);
    return undefined;
  }
  for (const { path, found } of unknownFields(schema, value))
    place.lost(joinPath(field, path), found, "this field is unknown to the converter");
  return decoded.value;
}

/** Returns `spec.a`, `spec[0]` or `spec`. */
export function joinPath(field: string, path: string): string {
  return path === "" || field === "" ? `${field}${path}` : `${field}${path.startsWith("[") ? "" : "."}${path}`;
}

interface UnknownField {
  readonly path: string;
  readonly found: unknown;
}

/**
 * Returns the fields of the value that the schema does not name, at any depth, except where it accepts any. The value
 * fits the schema.
 */
function unknownFields(schema: z.core.$ZodType, value: unknown, path = ""): UnknownField[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value))
    return value.flatMap((item, at) => unknownFields(inner.element, item, `${path}[${at}]`));
  if (!(inner instanceof z.ZodObject) || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, found]) => {
    const own: z.core.$ZodType | undefined = Object.hasOwn(inner.shape, key) ? inner.shape[key] : undefined;
    const at = joinPath(path, /^[\w-]+$/.test(key) ? key : `[${describeValue(key)}]`);
    if (own !== undefined) return unknownFields(own, found, at);
    return inner.def.catchall === undefined ? [{ path: at, found }] : [];
  });
}

/** Returns the schema inside optional ones, defaults and transforms. */
function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in);
  const isWrapped =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault;
  return isWrapped ? unwrap(schema.def.innerType) : schema;
}
