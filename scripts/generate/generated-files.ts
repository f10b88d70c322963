/** Every generated file with its content. The tests compare them with the tree; generate.ts writes them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chartTexts } from "../chart/generated-chart.ts";
import { valuesSchemaText } from "../chart/generated-values.ts";
import { root } from "../setup/paths.mjs";
import { ABI } from "./abi-description.ts";
import { bindingOf } from "./bindings/binding.ts";
import { renderBrowserBindings } from "./bindings/browser.ts";
import { crdFiles } from "./crds/crds.ts";
import { type GeneratedText, headerOf, withHeader } from "./generated-text.ts";
import { abiPage } from "./pages/abi.ts";
import { annotationsPage } from "./pages/annotations.ts";
import { auditLogTables } from "./pages/audit-log.ts";
import { berthctlPage } from "./pages/berthctl.ts";
import { collectionTable } from "./pages/collection-table.ts";
import { findingsPage } from "./pages/findings.ts";
import { limitsPage } from "./pages/limits.ts";
import { innerMetricsPage, metricsTable } from "./pages/metrics.ts";
import { resourcesPage, writtenResourcesPage } from "./pages/resources.ts";

/** Returns the files that are generated as a whole, each with its header. */
export async function generatedTexts(): Promise<GeneratedText[]> {
  const limits = { path: "docs/limits.md", text: await limitsPage() };
  return [
    ...chartTexts(),
    ...crdFiles().map((file) => withHeader("the schemas in host/resources", file)),
    withHeader("the commands in host/cli", { path: "docs/berthctl.md", text: berthctlPage() }),
    withHeader("host/config/annotation-schemas.ts", { path: "docs/annotations.md", text: annotationsPage() }),
    withHeader("the tables of problems in host/findings", { path: "docs/findings.md", text: findingsPage() }),
    withHeader("the constants marked @limit", limits),
    withHeader("host/metrics", { path: "docs/develop/metrics.md", text: innerMetricsPage() }),
    withHeader("the schemas in host/resources and host/config", { path: "docs/resources.md", text: resourcesPage() }),
    withHeader("the schemas in host/resources", { path: "docs/develop/resources.md", text: writtenResourcesPage() }),
    withHeader("assembly/abi.json", { path: "docs/develop/wasm-abi.md", text: abiPage(ABI) }),
    withHeader("assembly/abi.json", renderBrowserBindings(bindingOf(ABI))),
  ];
}

/** Returns the generated file that can have no comment. */
export function generatedJson(): GeneratedText[] {
  return [valuesSchemaText()];
}

const SECTION_END = "<!-- End of generated code. -->";

/** Replaces the generated part of a hand-written page: from the header to the end mark. */
function withSection(source: string, path: string, section: string): GeneratedText {
  const header = headerOf(path, source);
  const [before, rest] = readFileSync(join(root, path), "utf8").split(header);
  const after = rest?.split(SECTION_END)[1];
  if (after === undefined) throw new Error(`${path} needs the lines ${header.trim()} and ${SECTION_END}`);
  return { path, text: `${before}${header}${section}\n${SECTION_END}${after}` };
}

/** Returns the hand-written pages that have a generated section. */
export function generatedSections(): GeneratedText[] {
  return [
    withSection("host/controller/gc/plan-collection.ts", "docs/develop/garbage-collection.md", collectionTable()),
    withSection("host/records/audit-line.ts", "docs/audit-log.md", auditLogTables()),
    withSection("host/metrics", "docs/monitoring.md", metricsTable()),
  ];
}

/**
 * Tests whose expected outcomes are in files of test/vectors. They compare like any test; `vitest run -u` rewrites
 * the files. JSON has no comments, and the text cases hold hand-written input: these files have no header.
 */
export const RECORDING_TESTS: readonly string[] = [
  "test/unit/coordinator/plan-vectors.test.ts",
  "test/unit/ifacer/plan-devices.test.ts",
];
