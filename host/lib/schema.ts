/**
 * Decodes unknown values with zod schemas. A mismatch has the path, the found and the wanted value.
 * In these schemas an issue's message is the wanted value; `params.got` replaces the found value.
 */
import * as z from "zod";
import { findClosest } from "./closest.ts";
import { describeValue } from "./describe.ts";

/** Most mismatches that one error shows. */
const MAX_SHOWN_MISMATCHES = 8;

/** One mismatch: `path` as in `routes[0].gw` ("" is the value itself), `got` and `wanted` as phrases. */
export interface Mismatch {
  readonly path: string;
  readonly got: string;
  readonly wanted: string;
}

export type Mismatches = readonly [Mismatch, ...Mismatch[]];

type Decoded<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly mismatches: Mismatches };

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** Formats a path: `spec.routes[0].gw`, `metadata.labels["a.b/c"]`. */
function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    const key = String(step);
    if (!PLAIN_KEY.test(key)) return `${text}[${describeValue(key)}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");
}

const TYPE_PHRASES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

function limitPhrase(origin: string, side: "at least" | "at most", limit: number | bigint): string {
  if (origin === "string") return `text of ${side} ${limit} characters`;
  if (origin === "array") return `a list of ${side} ${limit} ${limit === 1 ? "entry" : "entries"}`;
  return `a number of ${side} ${limit}`;
}

/** Separates the known keys in the message of an issue about unknown keys. No key of Berth contains it. */
const KEY_SEPARATOR = ", ";

/** Returns the message of an issue whose schema has none. */
function messageOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return TYPE_PHRASES[issue.expected] ?? issue.expected;
    case "invalid_value":
      return `${issue.values.length > 1 ? "one of " : ""}${issue.values.map(describeValue).join(", ")}`;
    case "too_small":
      return limitPhrase(issue.origin, "at least", issue.minimum);
    case "too_big":
      return limitPhrase(issue.origin, "at most", issue.maximum);
    case "unrecognized_keys":
      return issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape).join(KEY_SEPARATOR) : "";
    default:
      return `a value that passes the check ${issue.code}`;
  }
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, step)) return undefined;
    return (inner as Record<PropertyKey, unknown>)[step];
  }, value);
}

const UNKNOWN_KEY = "an unknown key";

function unknownKey(path: readonly PropertyKey[], key: string, known: readonly string[]): Mismatch {
  const closest = findClosest(key, known);
  const wanted = closest === undefined ? `one of the keys ${known.join(", ")}` : `the key "${closest}"`;
  return { path: formatPath([...path, key]), got: UNKNOWN_KEY, wanted };
}

function mismatchesOf(issue: z.core.$ZodIssue, root: unknown): Mismatch[] {
  if (issue.code === "unrecognized_keys") {
    const known = issue.message.split(KEY_SEPARATOR);
    return issue.keys.slice(0, MAX_SHOWN_MISMATCHES + 1).map((key) => unknownKey(issue.path, key, known));
  }
  const got = issue.code === "custom" && issue.params?.got;
  const value = () => describeValue(valueAt(root, issue.path));
  return [{ path: formatPath(issue.path), got: typeof got === "string" ? got : value(), wanted: issue.message }];
}

/** Returns the decoded value, or the mismatches in the schema's order, only the first ones of many unknown keys. */
export function decode<S extends z.ZodType>(schema: S, value: unknown): Decoded<z.output<S>> {
  const result = schema.safeParse(value, { error: messageOf });
  if (result.success) return { ok: true, value: result.data };
  const [first, ...rest] = result.error.issues.flatMap((issue) => mismatchesOf(issue, value));
  if (first === undefined) throw new TypeError("zod refused a value without an issue");
  return { ok: false, mismatches: [first, ...rest] };
}

/** Returns the mismatches as one sentence without its full stop: `field "a.b": found 3, want text; …`. */
export function formatMismatches(mismatches: Mismatches): string {
  const shown = mismatches.slice(0, MAX_SHOWN_MISMATCHES).map(({ path, got, wanted }) => {
    return `${path === "" ? "" : `field ${JSON.stringify(path)}: `}found ${got}, want ${wanted}`;
  });
  return [...shown, ...(shown.length < mismatches.length ? ["and more"] : [])].join("; ");
}

/** Returns the schema of a text of at most `maxLength` characters that `parse` accepts; `wanted` describes it. */
export function parsedText<T>(parse: (text: string) => T | undefined, wanted: string, maxLength?: number) {
  const text = z.string({ error: wanted });
  const limited = maxLength === undefined ? text : text.max(maxLength, { error: wanted, abort: true });
  return limited.transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: wanted });
    return z.NEVER;
  });
}

/** Returns the schema of an optional value. null counts as absent, because Go encodes it so. */
export function orAbsent<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** The same with a value in place of an absent one. */
export function orDefault<S extends z.ZodType>(schema: S, absent: z.output<S>) {
  return schema.nullish().transform((value): z.output<S> => value ?? absent);
}

/** Returns the schema that decodes a list by `list`, and any other value by `other`. */
export function listOr<L extends z.ZodType, O extends z.ZodType>(list: L, other: O) {
  return z.unknown().transform((value, context): z.output<L> | z.output<O> => {
    const { data, error } = (Array.isArray(value) ? list : other).safeParse(value, { error: messageOf });
    if (error === undefined) return data as z.output<L> | z.output<O>;
    context.issues.push(...error.issues.map((issue) => ({ ...issue, input: value }) as z.core.$ZodRawIssue));
    return z.NEVER;
  });
}

/**
 * Returns the schema of an object with any keys and text values. Unlike `z.record` it refuses the key `__proto__`
 * instead of dropping it.
 */
export function textMap() {
  return z
    .unknown()
    .transform((value, context) => {
      const fail = (path: PropertyKey[], message: string) => context.addIssue({ code: "custom", path, message });
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        fail([], "an object of texts");
        return z.NEVER;
      }
      const texts: Record<string, string> = {};
      for (const [key, text] of Object.entries(value)) {
        if (key === "__proto__") fail([key], "another key");
        else if (typeof text === "string") texts[key] = text;
        else fail([key], "text");
      }
      return texts;
    })
    .meta({ type: "object", additionalProperties: { type: "string" } });
}

/** Returns the schema of a whole number from `min` to `max`, both inclusive. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const open = max === Number.MAX_SAFE_INTEGER;
  const error = open ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** Reports each key of the object at `path` that looks like a misspelling of a known key. */
export function refuseSlips(
  value: object,
  known: readonly string[],
  context: z.RefinementCtx,
  path: PropertyKey[] = [],
) {
  for (const key of Object.keys(value)) {
    const closest = known.includes(key) ? undefined : findClosest(key, known);
    if (closest === undefined) continue;
    const [message, params] = [`the key "${closest}"`, { got: UNKNOWN_KEY }];
    context.addIssue({ code: "custom", path: [...path, key], message, params });
  }
}
