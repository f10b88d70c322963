/**
 * Rules in CEL of a schema (`x-kubernetes-validations`), with those for updates, which see the value before. As in the
 * API server, a value that an update does not change may break all others.
 */
import { isDeepStrictEqual } from "node:util";
import type { CelRule } from "../../../host/lib/cel.ts";
import { type Finding, fieldPath, isJson } from "./finding.ts";
import { celValue, compile, optional } from "./kubernetes-cel.ts";
import type { SchemaNode } from "./structural-schema.ts";

/** Values as expressions see them. */
interface Values {
  readonly self: unknown;
  /** Undefined: there was none, or it is in a list, whose entries have no identity. */
  readonly oldSelf: unknown;
  /** The value, or its parent, is unchanged. */
  readonly isSame: boolean;
}

export class SchemaRule {
  readonly #rule: CelRule;
  readonly #isOfUpdate: boolean;

  constructor(rule: CelRule) {
    this.#rule = rule;
    this.#isOfUpdate = /\boldSelf\b/.test(rule.rule);
  }

  /** Returns undefined if the rule holds. */
  finding({ self, oldSelf, isSame }: Values, path: string): Finding | undefined {
    const { optionalOldSelf = false, rule } = this.#rule;
    if (this.#isOfUpdate ? oldSelf === undefined && !optionalOldSelf : isSame) return undefined;
    const scope = { self, oldSelf: optionalOldSelf ? optional(oldSelf) : oldSelf };
    const evaluate = compile(rule);
    try {
      if (evaluate(scope) === true) return undefined;
      return this.#findingOf(self, path, this.#messageFor(scope));
    } catch (error) {
      return this.#findingOf(self, path, `rule evaluation error: ${error instanceof Error ? error.message : error}`);
    }
  }

  #messageFor(scope: Readonly<Record<string, unknown>>): string {
    const { message, messageExpression } = this.#rule;
    return messageExpression === undefined ? message : String(compile(messageExpression)(scope));
  }

  #findingOf(self: unknown, path: string, text: string): Finding {
    const field = `${path}${this.#rule.fieldPath ?? ""}`.replace(/^[.]/, "");
    return { field, message: `Invalid value: "${typeNameOf(self)}": ${text}`, isBlocking: false };
  }
}

/** Returns the findings of the object's rules; `old`: the object before an update. */
export function ruleFindings(node: SchemaNode, object: unknown, old: unknown): Finding[] {
  const [self, oldSelf] = [celValue(object), celValue(old)];
  return findingsIn(node, { self, oldSelf, isSame: false }, "");
}

function findingsIn(node: SchemaNode, { self, oldSelf, isSame: isPartSame }: Values, path: string): Finding[] {
  const isSame = oldSelf === undefined ? isPartSame : isDeepStrictEqual(self, oldSelf);
  const own = node.rules.flatMap((rule) => rule.finding({ self, oldSelf, isSame }, path) ?? []);
  if (Array.isArray(self))
    return [
      ...own,
      ...self.flatMap((each, index) => inEntry(node, { self: each, oldSelf: undefined, isSame }, `${path}[${index}]`)),
    ];
  if (!isJson(self)) return own;
  const before = isJson(oldSelf) ? oldSelf : {};
  const inner = Object.entries(self).flatMap(([key, each]) => {
    const field = node.inside(key);
    return field === undefined
      ? []
      : findingsIn(field, { self: each, oldSelf: before[key], isSame }, fieldPath(path, key));
  });
  return [...own, ...inner];
}

function inEntry({ entries }: SchemaNode, values: Values, path: string): Finding[] {
  return entries === undefined ? [] : findingsIn(entries, values, path);
}

/** The type's name in a schema. */
function typeNameOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "bigint" ? "integer" : typeof value;
}
