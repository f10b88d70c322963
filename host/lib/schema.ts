/**
 * Decoding of unknown values by zod schemas, with mismatches a person can act on: where, what was found, what is wanted.
 * In these schemas an issue's message is the phrase of what is wanted; `params.got` replaces that of what was found.
 */
import { z } from "zod";
import { findClosest } from "./closest.ts";
import { describeValue } from "./describe.ts";

/** Most mismatches that one error shows. @limit */
export const MAX_SHOWN_MISMATCHES = 8;

/** One disagreement: `path` as in `routes[0].gw` ("" is the value itself), `got` and `wanted` as phrases. */
export interface Mismatch {
  readonly path: string;
  readonly got: string;
  readonly wanted: string;
}

export type Mismatches = readonly [Mismatch, ...Mismatch[]];

export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly mismatches: Mismatches };

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** Formats a path: `spec.routes[0].gw`, `metadata.labels["a.b/c"]`. */
export function formatPath(path: readonly PropertyKey[]): string {
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

/** Between the known keys that an issue of unknown keys carries as its message; no key of ours contains it. */
const KEY_SEPARATOR = ", ";

/** The message of every issue whose schema gives none. */
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

/** The checked value, or what is wrong with it in the order of the schema; of many unknown keys the first ones. */
export function decode<S extends z.ZodType>(schema: S, value: unknown): Decoded<z.output<S>> {
  const result = schema.safeParse(value, { error: messageOf });
  if (result.success) return { ok: true, value: result.data };
  const [first, ...rest] = result.error.issues.flatMap((issue) => mismatchesOf(issue, value));
  if (first === undefined) throw new TypeError("zod refused a value without an issue");
  return { ok: false, mismatches: [first, ...rest] };
}

/** Formats mismatches as one sentence without its end: `field "a.b": found 3, want text; …`. */
export function formatMismatches(mismatches: Mismatches): string {
  const shown = mismatches.slice(0, MAX_SHOWN_MISMATCHES).map(({ path, got, wanted }) => {
    return `${path === "" ? "" : `field ${JSON.stringify(path)}: `}found ${got}, want ${wanted}`;
  });
  return [...shown, ...(shown.length < mismatches.length ? ["and more"] : [])].join("; ");
}

/** Text that `parse` understands, of at most `maxLength` characters; `wanted` says what that is. */
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

/** A value that may be absent; null, which Go writes for that, is the same. */
export function orAbsent<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** An object of texts under free keys; unlike `z.record` it refuses the key `__proto__` instead of dropping it. */
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

/** A whole number from `min` to `max`, both inclusive. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const open = max === Number.MAX_SAFE_INTEGER;
  const error = open ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** Reports each key of the value, which stands at `path`, that looks like a slip of a known key. */
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

/**
 * An object of which only the keys of `shape` are read. Other keys pass and are dropped, except one that looks like
 * a slip of a key that is read.
 */
export function openObject<T extends z.ZodRawShape>(shape: T) {
  const known = Object.keys(shape);
  return z.looseObject(shape).transform((value, context) => {
    refuseSlips(value, known, context);
    return Object.fromEntries(known.map((key) => [key, value[key]])) as z.output<z.ZodObject<T>>;
  });
}
