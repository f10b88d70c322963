/** All generated files of the chart: its metadata, values and page, and the plain manifests that it renders to. */
import manifest from "../../package.json" with { type: "json" };
import { type GeneratedText, withHeader } from "../generate/generated-text.ts";
import { CHART, valuesSchemaText, valuesText } from "./generated-values.ts";
import { copyChart, PLAIN_RELEASE, renderChart } from "./helm.ts";

/** Templates that are also plain manifests, for tests and for installations without Helm. */
const PLAIN_MANIFESTS = [
  "agent.yaml",
  "controller.yaml",
  "flowschema.yaml",
  "host-agents.yaml",
  "policies.yaml",
  "rbac.yaml",
];

function chartMetadata(): GeneratedText {
  const { name, version, description } = manifest;
  const lines = [
    "apiVersion: v2",
    `name: ${name}`,
    `description: ${JSON.stringify(description)}`,
    "type: application",
    `version: ${version}`,
    `appVersion: ${version}`,
    'kubeVersion: ">=1.31.0-0"',
  ];
  return { path: `${CHART}/Chart.yaml`, text: `${lines.join("\n")}\n` };
}

/**
 * Helm puts roles before policies, kubectl applies the documents in the order of the file: a right is to come after
 * its limits.
 */
function policiesFirst(text: string): string {
  const documents = text.split("---\n");
  const isPolicy = (document: string) => /^kind: ValidatingAdmissionPolicy/m.test(document);
  return [...documents.filter(isPolicy), ...documents.filter((document) => !isPolicy(document))].join("---\n");
}

/** Returns the files with a header. values.schema.json, which can have none, is in generated-values.ts. */
export function chartTexts(): GeneratedText[] {
  const inputs = [withHeader("package.json", chartMetadata()), withHeader("scripts/chart/values.ts", valuesText())];
  using chart = copyChart([...inputs, valuesSchemaText()]);
  const rendered = renderChart(chart, PLAIN_RELEASE, "--set", "hostAgents.enabled=true");
  const plain = PLAIN_MANIFESTS.map((file) => ({
    path: `deploy/${file}`,
    text: policiesFirst(rendered.get(file) ?? ""),
  }));
  return [...inputs, ...plain.map((text) => withHeader(CHART, text))];
}
