/**
 * Rules in the Common Expression Language, by which the API server checks an object without asking anybody.
 * Called by the schemas of resources and of what they are made of: each rule stands in the metadata of the check that it mirrors.
 */

export interface CelRule {
  /** True when the value is right; `self` is the value, `oldSelf` the one before an update. */
  readonly rule: string;
  /** What is wanted, word for word as the check says it. */
  readonly message: string;
  /** The same as an expression, where the words depend on the value. */
  readonly messageExpression?: string;
  /** Of the field to blame inside the value: `.gateway`. Entries of lists cannot be named. */
  readonly fieldPath?: string;
}

/** For `.meta`; a later `.meta` with rules replaces these. */
export function cel(...rules: readonly CelRule[]) {
  return { "x-kubernetes-validations": rules };
}

/** A raw string of CEL: regular expressions keep their backslashes. */
export function rawText(text: string): string {
  return `r'${text}'`;
}

/** Text that the expression matches; without the flags, which CEL has not. */
export function matchRule({ source }: RegExp, message: string): CelRule {
  return { rule: `self.matches(${rawText(source)})`, message };
}

/** The value may not change after the object was made. */
export const IMMUTABLE: CelRule = { rule: "self == oldSelf", message: "what it was made with: it is immutable" };
