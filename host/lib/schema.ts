/** One disagreement: `path` as in `routes[0].gw` ("" is the value itself), `got` and `wanted` as phrases. */
export interface Mismatch {
  readonly path: string;
  readonly got: string;
  readonly wanted: string;
}

export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly mismatches: readonly [Mismatch, ...Mismatch[]] };

/** Longest text of a found value in an error, in UTF-16 units. */
const SHOWN_VALUE_LENGTH = 80;

/** A found value as a short phrase: quoted and cut when it is text, by its kind when it is big. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  const cut = value.length > SHOWN_VALUE_LENGTH ? `${value.slice(0, SHOWN_VALUE_LENGTH)}…` : value;
  return JSON.stringify(cut).replace(/[\p{Cc}\p{Cf}]/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** Formats a path: `spec.routes[0].gw`, `metadata.labels["a.b/c"]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    const key = String(step);
    if (!PLAIN_KEY.test(key)) return `${text}[${describeValue(key)}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");
}
