/** The generated files of the chart: its metadata, values and page. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { API_VERSION } from "../../host/resources/fields/metadata.ts";
import manifest from "../../package.json" with { type: "json" };
import { CUSTOM_KINDS } from "../generate/crds/custom-kinds.ts";
import { type GeneratedText, withHeader } from "../generate/generated-text.ts";
import { root } from "../setup/paths.mjs";
import { CHART, chartReadme, valuesText } from "./generated-values.ts";

/** Objects to begin with, for each kind that a person writes: the first one of each file. */
const EXAMPLES = ["20-pools.yaml", "30-reserved.yaml", "80-subnet.yaml"];

function chartMetadata(): GeneratedText {
  const { name, version, description, homepage, author } = manifest;
  const metadata = {
    ...{ apiVersion: "v2", name, description, type: "application", version, appVersion: version },
    ...{ kubeVersion: ">=1.31.0-0", keywords: ["cni", "ipam", "macvlan", "multus", "networking", "underlay", "vlan"] },
    ...{ home: homepage, sources: [homepage], icon: `${homepage}/icon.svg`, maintainers: [author] },
    annotations: artifactHub(),
  };
  return { path: `${CHART}/Chart.yaml`, text: stringify(metadata, { lineWidth: 0 }) };
}

/**
 * Returns the annotations that Artifact Hub reads (https://artifacthub.io/docs/topics/annotations/helm/): texts, some
 * of them YAML.
 */
function artifactHub(): Readonly<Record<string, string>> {
  const { homepage, license, version } = manifest;
  const definitions = CUSTOM_KINDS.map(({ kind, plural, description }) => {
    const [group = "", version = ""] = API_VERSION.split("/");
    return { kind, version, name: `${plural}.${group}`, displayName: kind, description };
  });
  const examples = EXAMPLES.map((file) => {
    const [first] = parseAllDocuments(readFileSync(join(root, "deploy", "examples", file), "utf8"));
    return first?.toJS();
  });
  const links = [
    { name: "Documentation", url: `${homepage}/docs` },
    { name: "Changes", url: `${homepage}/CHANGELOG.md` },
    { name: "Support", url: `${homepage}/SUPPORT.md` },
  ];
  return {
    "artifacthub.io/category": "networking",
    "artifacthub.io/license": license,
    "artifacthub.io/operator": "true",
    "artifacthub.io/prerelease": String(version.includes("-")),
    "artifacthub.io/crds": stringify(definitions),
    "artifacthub.io/crdsExamples": stringify(examples),
    "artifacthub.io/links": stringify(links),
  };
}

/** Returns the files with a header. values.schema.json, which can have none, is in generated-values.ts. */
export function chartTexts(): GeneratedText[] {
  return [
    withHeader("package.json", chartMetadata()),
    withHeader("scripts/chart/values.ts", valuesText()),
    withHeader("scripts/chart/values.ts and scripts/chart/readme.md", chartReadme()),
  ];
}
