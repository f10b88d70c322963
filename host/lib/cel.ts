/** Rules in the Common Expression Language for the API server, each in the metadata of the zod check it mirrors. */

export interface CelRule {
  /** True if the value is valid; `self` is the value, `oldSelf` the one before an update. */
  readonly rule: string;
  /** The wanted value, in the words of the mirrored check. */
  readonly message: string;
  /** The message as a CEL expression, if it depends on the value. */
  readonly messageExpression?: string;
  /** Path of the faulty field inside the value: `.gateway`. Entries of lists cannot be named. */
  readonly fieldPath?: string;
  /** `oldSelf` is optional: absent when the object is created. Without it, a rule with `oldSelf` is for updates. */
  readonly optionalOldSelf?: boolean;
}

/** Returns metadata for zod's `.meta`. A later `.meta` with rules replaces it. */
export function cel(...rules: readonly CelRule[]) {
  return { "x-kubernetes-validations": rules };
}

/** Returns a raw CEL string, in which regular expressions keep their backslashes. */
export function rawText(text: string): string {
  return `r'${text}'`;
}

/** Returns the text as a CEL string. */
export function celText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Longest value that a message shows: characters, as {@link MAX_SHOWN_VALUE}. */
const SHOWN = 80;

/** Returns the CEL expression for `found "…", want `; `value`: an expression of a text of up to `maxLength`. */
export function foundText(value: string, maxLength = SHOWN): string {
  const shown =
    maxLength <= SHOWN ? value : `(size(${value}) > ${SHOWN} ? ${value}.substring(0, ${SHOWN}) + '…' : ${value})`;
  return `'found "' + ${shown} + '", want '`;
}

/** Returns the rule that the text matches the regular expression. Its flags are dropped: CEL has none. */
export function matchRule({ source }: RegExp, message: string): CelRule {
  return { rule: `self.matches(${rawText(source)})`, message };
}

/** The value cannot change after the object was created. */
export const IMMUTABLE: CelRule = { rule: "self == oldSelf", message: "the original value; the field is immutable" };
