/** The admission policies of deploy: each refusal names what was found. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { root } from "../../../scripts/setup/paths.mjs";

interface Policy {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly validations: readonly { readonly expression: string; readonly messageExpression?: string }[];
  };
}

const policies = ["policies.yaml", "host-agents.yaml"]
  .flatMap((file) => parseAllDocuments(readFileSync(join(root, "deploy", file), "utf8")))
  .map((document): Policy => document.toJS())
  .filter(({ kind }) => kind === "ValidatingAdmissionPolicy");

it.each(policies.map((policy) => [policy.metadata.name, policy] as const))("%s", (_, { spec }) => {
  expect(spec.validations.length).toBeGreaterThan(0);
  for (const { expression, messageExpression = "" } of spec.validations)
    expect(messageExpression, expression).toMatch(/variables\.|object\.|oldObject\.|request\./);
});
