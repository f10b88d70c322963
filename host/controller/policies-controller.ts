/**
 * Reports the admission policies that are not in force: without them, a node's token may write objects of others. Their
 * removal needed a right that Berth does not have, so Berth does not restore them.
 */
import * as z from "zod";
import { collectionPath } from "../kubernetes/paths.ts";
import { followObjects } from "./follow-objects.ts";
import type { StartController } from "./types.ts";

/** Ends of their names (deploy/policies.yaml), without the policy of the kinds, which is optional. */
export const POLICIES = [
  ...["agent-changes", "agent-creates", "agent-deletes", "agent-epochs", "agent-pools"],
  ...["controller-allocations", "controller-balancers", "controller-claims", "controller-networks"],
  ...["controller-notices", "controller-services", "controller-specifications"],
  ...["bound-allocations", "gates", "generated-pools"],
];

const policy = z
  .object({ metadata: z.object({ name: z.string() }), spec: z.object({ failurePolicy: z.literal("Fail") }) })
  .transform(({ metadata }) => metadata.name);
const actions = z.array(z.string()).refine((all) => all.includes("Deny"));
const binding = z
  .object({ spec: z.object({ policyName: z.string(), validationActions: actions }) })
  .transform(({ spec }) => spec.policyName);

export const startPolicies: StartController = (deps) => {
  const follow = (name: string, schema: typeof policy | typeof binding) => {
    const path = collectionPath({ apiVersion: "admissionregistration.k8s.io/v1", plural: name });
    return followObjects(deps, () => {}, { name, path, decode: (object) => schema.safeParse(object).data });
  };
  const policies = follow("validatingadmissionpolicies", policy);
  const bindings = follow("validatingadmissionpolicybindings", binding);
  const both = [policies, bindings];
  const text = "is not in force: it or its binding is missing or denies nothing; apply the chart's policies again";
  return {
    get problems() {
      const bound = new Set(bindings.items.values());
      const inForce = [...policies.items.values()].filter((name) => bound.has(name));
      const isAway = (end: string): boolean => !inForce.some((name) => name.endsWith(`-${end}`));
      const away = both.every(({ isSynced }) => isSynced) ? POLICIES.filter(isAway) : [];
      const faults = both.flatMap(({ problems }) => problems);
      return [...away.map((end) => `The ValidatingAdmissionPolicy berth-${end} ${text}`), ...faults];
    },
    close: async () => void (await Promise.all(both.map((each) => each.close()))),
  };
};
