/**
 * Kubernetes label selectors: decoded here, matched without a server.
 * Called by the pools' affinities.
 * Effects: none.
 */

export type Labels = Readonly<Record<string, string>>;

export type LabelRequirement =
  | { readonly key: string; readonly operator: "In" | "NotIn"; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: "Exists" | "DoesNotExist" };

/** All labels and all expressions must hold; an empty selector matches everything. */
export interface LabelSelector {
  readonly matchLabels: Labels;
  readonly matchExpressions: readonly LabelRequirement[];
}

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
