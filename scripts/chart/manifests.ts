/** The set-up's step behind `npm run manifests`: the rendered chart, as files of deploy for kubectl. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { copyChart, PLAIN_RELEASE, renderChart } from "./helm.ts";

/**
 * Helm puts roles before policies, kubectl applies the documents in the order of the file: a right is to come after
 * its limits.
 */
function policiesFirst(text: string): string {
  const documents = text.split("---\n");
  const isPolicy = (document: string) => /^kind: ValidatingAdmissionPolicy/m.test(document);
  return [...documents.filter(isPolicy), ...documents.filter((document) => !isPolicy(document))].join("---\n");
}

const [, , ...names] = process.argv;
using chart = copyChart();
const rendered = renderChart(chart, PLAIN_RELEASE, "--set", "hostAgents.enabled=true");
for (const name of names) writeFileSync(join(root, "deploy", name), policiesFirst(rendered.get(name) ?? ""));
