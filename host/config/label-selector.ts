/** Decodes and matches Kubernetes label selectors. */
import * as z from "zod";
import { type CelRule, cel, rawText } from "../lib/cel.ts";
import { parsedText, textMap } from "../lib/schema.ts";
import { DNS_SUBDOMAIN, isDnsSubdomain, MAX_LABEL_LENGTH, MAX_NAME_LENGTH } from "./fields/names.ts";

/** Longest key of a label: characters. A name of 253, a slash and a name of 63. */
const MAX_LABEL_KEY_LENGTH = MAX_NAME_LENGTH + 1 + MAX_LABEL_LENGTH;

/** Most labels, expressions, or values of one expression, in a label selector. @limit */
const MAX_SELECTOR_ENTRIES = 128;

export type Labels = Readonly<Record<string, string>>;

type LabelRequirement =
  | { readonly key: string; readonly operator: "In" | "NotIn"; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: "Exists" | "DoesNotExist" };

/** All labels and all expressions must hold; an empty selector matches everything. */
export interface LabelSelector {
  readonly matchLabels: Labels;
  readonly matchExpressions: readonly LabelRequirement[];
}

const PART = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?";
const LABEL_PART = new RegExp(`^${PART}$`);

function isLabelPart(text: string): boolean {
  return LABEL_PART.test(text);
}

function parseLabelKey(text: string): string | undefined {
  const slash = text.indexOf("/");
  const prefixHolds = slash < 0 || isDnsSubdomain(text.slice(0, slash));
  return prefixHolds && isLabelPart(text.slice(slash + 1)) ? text : undefined;
}

function parseLabelValue(text: string): string | undefined {
  return text === "" || isLabelPart(text) ? text : undefined;
}

const KEY_FORM = "a label's key, such as app or example.com/app";
const VALUE_FORM = `a label's value: at most ${MAX_LABEL_LENGTH} letters, digits, -, _ and .`;

/** Returns the CEL condition that `text`, a CEL expression, is a label's key. */
function isKey(text: string): string {
  const pattern = `^(?:${DNS_SUBDOMAIN.source.slice(1, -1)}/)?${PART}$`;
  return `${text}.indexOf('/') <= ${MAX_NAME_LENGTH} && ${text}.matches(${rawText(pattern)})`;
}

/** Returns the CEL condition that `text`, a CEL expression, is a label's value. */
function isValue(text: string): string {
  return `${text}.matches(${rawText(`^(?:${PART})?$`)})`;
}

const KEY_RULE: CelRule = { rule: isKey("self"), message: KEY_FORM };
const VALUE_RULE: CelRule = { rule: isValue("self"), message: VALUE_FORM };

/** Rules of a map of labels. The API server's error names the map, not the entry. */
const LABEL_RULES: readonly CelRule[] = [
  { rule: `self.all(key, ${isKey("key")})`, message: KEY_FORM },
  { rule: `self.all(key, ${isValue("self[key]")})`, message: VALUE_FORM },
];

const labels = textMap()
  .check(({ value, issues }) => {
    const entries = Object.keys(value).length;
    if (entries > MAX_SELECTOR_ENTRIES) {
      issues.push({ code: "custom", path: [], message: `at most ${MAX_SELECTOR_ENTRIES} labels`, input: value });
    }
    for (const [key, text] of Object.entries(value)) {
      const wanted =
        parseLabelKey(key) === undefined ? KEY_FORM : parseLabelValue(text) === undefined ? VALUE_FORM : "";
      if (wanted !== "") issues.push({ code: "custom", path: [key], message: wanted, input: value });
    }
  })
  .meta({
    maxProperties: MAX_SELECTOR_ENTRIES,
    additionalProperties: { type: "string", maxLength: MAX_LABEL_LENGTH },
    ...cel(...LABEL_RULES),
  });

const requirementKeys = z
  .strictObject({
    key: parsedText(parseLabelKey, KEY_FORM, MAX_LABEL_KEY_LENGTH).meta({
      description: "Key of the label.",
      ...cel(KEY_RULE),
    }),
    operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).meta({
      description:
        "`In`: the label has one of the values. `NotIn`: it has none of them. `Exists`, `DoesNotExist`: the label exists or not.",
    }),
    values: z
      .array(parsedText(parseLabelValue, VALUE_FORM, MAX_LABEL_LENGTH).meta(cel(VALUE_RULE)))
      .max(MAX_SELECTOR_ENTRIES)
      .optional()
      .meta({ description: "Values for `In` and `NotIn`." }),
  })
  .meta(
    cel({
      rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
      message: "values with the operators In and NotIn only",
      messageExpression:
        "(self.operator in ['In', 'NotIn'] ? 'at least one value' : 'no values') + ' with the operator ' + self.operator",
      fieldPath: ".values",
    }),
  );

const requirement = requirementKeys.transform(({ key, operator, values = [] }, context): LabelRequirement => {
  const needsValues = operator === "In" || operator === "NotIn";
  if (needsValues !== values.length > 0) {
    const message = `${needsValues ? "at least one value" : "no values"} with the operator ${operator}`;
    context.addIssue({ code: "custom", path: ["values"], message });
  }
  return needsValues ? { key, operator, values } : { key, operator };
});

/** A Kubernetes LabelSelector. */
export const labelSelector = z
  .strictObject({
    matchLabels: labels.optional().meta({ description: "Labels and values that must match." }),
    matchExpressions: z
      .array(requirement)
      .max(MAX_SELECTOR_ENTRIES)
      .optional()
      .meta({ description: "Expressions that must be true." }),
  })
  .transform(({ matchLabels = {}, matchExpressions = [] }): LabelSelector => ({ matchLabels, matchExpressions }))
  .meta({ title: "label selector" });

function requirementHolds(requirement: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
  switch (requirement.operator) {
    case "In":
      return value !== undefined && requirement.values.includes(value);
    case "NotIn":
      return value === undefined || !requirement.values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}

/** Returns whether the selector matches. `NotIn` matches an absent label, as in Kubernetes. */
export function matchLabels(selector: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(selector.matchLabels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    selector.matchExpressions.every((requirement) => requirementHolds(requirement, labels))
  );
}

/** The form that {@link parseLabelSelector} accepts, for error texts. */
export const LABEL_SELECTOR_FORM = "a label selector such as app=web or tier in (front,back),!canary";

/** One requirement; its groups are the parts. */
const REQUIREMENT =
  /^(?:(?<absent>!)\s*)?(?<key>[^\s=!,()]+)\s*(?:(?<equality>==?|!=)\s*(?<value>[^\s=!,()]*)|(?<set>in|notin)\s*\((?<values>[^()]*)\))?$/;

/** Requirements behind commas; commas between brackets divide values. Each character of a text is looked at once. */
const PARTS = /,(?:[^,(]|\([^()]*\)?)*/g;

/**
 * Parses the text form of kubectl and of the API server, without `<` and `>`. Returns undefined if it has another form,
 * selects everything, or has more than MAX_SELECTOR_ENTRIES requirements or values.
 */
export function parseLabelSelector(text: string): LabelSelector | undefined {
  const parts = `,${text}`.match(PARTS) ?? [];
  if (parts.length > MAX_SELECTOR_ENTRIES) return undefined;
  const found = parts.map((part) => parseRequirement(part.slice(1).trim()));
  const matchExpressions = found.filter((each) => each !== undefined);
  return matchExpressions.length < found.length ? undefined : { matchLabels: {}, matchExpressions };
}

function parseRequirement(text: string): LabelRequirement | undefined {
  const groups = REQUIREMENT.exec(text)?.groups;
  const key = groups?.key === undefined ? undefined : parseLabelKey(groups.key);
  if (groups === undefined || key === undefined) return undefined;
  const { absent, equality, value = "", set, values: list = "" } = groups;
  if (equality === undefined && set === undefined)
    return { key, operator: absent === undefined ? "Exists" : "DoesNotExist" };
  const values = (set === undefined ? [value] : list.split(",")).map((each) => parseLabelValue(each.trim()));
  const known = values.filter((each) => each !== undefined);
  if (absent !== undefined || known.length < values.length || known.length > MAX_SELECTOR_ENTRIES) return undefined;
  return { key, operator: equality === "!=" || set === "notin" ? "NotIn" : "In", values: known };
}
