/**
 * Kubernetes label selectors: decoded here, matched without a server.
 * Called by the pools' affinities.
 * Effects: none.
 */
import { z } from "zod";
import { parsedText, textMap } from "../lib/schema.ts";
import { isDnsSubdomain } from "./fields/names.ts";
import { MAX_LABEL_LENGTH } from "./limits.ts";

export type Labels = Readonly<Record<string, string>>;

export type LabelRequirement =
  | { readonly key: string; readonly operator: "In" | "NotIn"; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: "Exists" | "DoesNotExist" };

/** All labels and all expressions must hold; an empty selector matches everything. */
export interface LabelSelector {
  readonly matchLabels: Labels;
  readonly matchExpressions: readonly LabelRequirement[];
}

const LABEL_PART = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/;

function isLabelPart(text: string): boolean {
  return text.length <= MAX_LABEL_LENGTH && LABEL_PART.test(text);
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

const labels = textMap().check(({ value, issues }) => {
  for (const [key, text] of Object.entries(value)) {
    const wanted = parseLabelKey(key) === undefined ? KEY_FORM : parseLabelValue(text) === undefined ? VALUE_FORM : "";
    if (wanted !== "") issues.push({ code: "custom", path: [key], message: wanted, input: value });
  }
});

const requirement = z
  .strictObject({
    key: parsedText(parseLabelKey, KEY_FORM),
    operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
    values: z.array(parsedText(parseLabelValue, VALUE_FORM)).optional(),
  })
  .transform(({ key, operator, values = [] }, context): LabelRequirement => {
    const needsValues = operator === "In" || operator === "NotIn";
    if (needsValues !== values.length > 0) {
      const message = `${needsValues ? "at least one value" : "no values"} with the operator ${operator}`;
      context.addIssue({ code: "custom", path: ["values"], message });
    }
    return needsValues ? { key, operator, values } : { key, operator };
  });

/** A LabelSelector of Kubernetes. */
export const labelSelector = z
  .strictObject({ matchLabels: labels.optional(), matchExpressions: z.array(requirement).optional() })
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

/** Whether the selector matches; `NotIn` matches an absent key, as in Kubernetes. */
export function matchLabels(selector: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(selector.matchLabels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    selector.matchExpressions.every((requirement) => requirementHolds(requirement, labels))
  );
}
