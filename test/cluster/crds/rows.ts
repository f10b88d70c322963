/** A manifest, and the verdict that the API server and the embedded decoder must share. */
export interface Row {
  readonly kind: string;
  readonly title: string;
  /** Absent: one that no other row has. */
  readonly name?: string;
  readonly spec?: unknown;
  /** Beside the spec. */
  readonly more?: object;
  /** The decoder's first mismatch; undefined: accepted. */
  readonly field?: string | undefined;
  /** The API server's field where it cannot name the entry of a list or a map, which the decoder names or accepts. */
  readonly serverField?: string | undefined;
  /** Further fields that the API server blames, where one fault breaks two rules. */
  readonly also?: readonly string[];
  /** Types, lengths and unknown keys: the API server has its own words for them. */
  readonly isStructural?: boolean | undefined;
}

const TITLE_LENGTH = 160;

export function accept(kind: string, spec: unknown, more: Partial<Row> = {}): Row {
  return { kind, spec, title: titleOf(spec, more), ...more };
}

/** Both refuse the field in the same words. */
export function refuse(kind: string, spec: unknown, field: string, more: Partial<Row> = {}): Row {
  return { kind, spec, title: titleOf(spec, more), field, ...more };
}

/** Both refuse the field; the API server says so in its own words. */
export function refuseForm(kind: string, spec: unknown, field: string, more: Partial<Row> = {}): Row {
  return refuse(kind, spec, field, { isStructural: true, ...more });
}

function titleOf(spec: unknown, more: Partial<Row>): string {
  const text = JSON.stringify({ ...(more.name === undefined ? {} : { name: more.name }), spec, ...more.more });
  return text.length <= TITLE_LENGTH ? text : `${text.slice(0, TITLE_LENGTH)}…`;
}

/** `count` entries made of their number. */
export function times<T>(count: number, entry: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => entry(index));
}

/** 10.x.y.z by number. */
export const tenth = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
