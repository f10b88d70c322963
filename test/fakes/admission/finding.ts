/** A reason for which the API server refuses an object, and the path of its field. */

export type Json = Readonly<Record<string, unknown>>;

/** A cause of a refusal, as the API server has it in `details.causes`. */
export interface Finding {
  /** `spec.holders[0].node` */
  readonly field: string;
  /** `Invalid value: "string": …` */
  readonly message: string;
  /** The API server evaluates no rules of an object that has such a finding. */
  readonly isBlocking: boolean;
}

export function fieldPath(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
