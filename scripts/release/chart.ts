/** The Helm chart as a package, and its default plain manifests, in one file with the custom resource definitions. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyChart, PLAIN_RELEASE, renderChart } from "../chart/helm.ts";
import { tagOf } from "../setup/version.mjs";
import { compress, writeTar } from "./archive.ts";
import type { Facts } from "./facts.ts";

/**
 * Returns the artifacts `berth-VERSION.tgz` and `berth-VERSION.yaml`. Not by `helm package`, which writes the time of
 * packaging.
 */
export async function buildChart({ version, timeSeconds }: Facts): Promise<[name: string, content: Buffer][]> {
  using chart = copyChart();
  const { directory } = chart;
  const metadata = join(directory, "Chart.yaml");
  writeFileSync(metadata, readFileSync(metadata, "utf8").replace(/^(version|appVersion): .*/gm, `$1: ${version}`));
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(directory, path)).isFile())
    // Helm reads the first file's folder as the chart's name.
    .sort((a, b) => Number(b === "Chart.yaml") - Number(a === "Chart.yaml") || (a < b ? -1 : 1));
  const entries = paths.map((path) => ({
    path: `berth/${path}`,
    mode: 0o644,
    content: readFileSync(join(directory, path)),
  }));
  const crds = paths
    .filter((path) => path.startsWith("crds/"))
    .map((path) => readFileSync(join(directory, path), "utf8"));
  const documents = [...crds, ...renderChart(chart, PLAIN_RELEASE).values()];
  return [
    [`berth-${tagOf(version)}.tgz`, await compress(await writeTar(entries, timeSeconds))],
    [`berth-${tagOf(version)}.yaml`, Buffer.from(documents.map((text) => `---\n${text.trimEnd()}\n`).join(""))],
  ];
}
