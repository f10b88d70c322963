/**
 * One layout for a registry: the image of both processors as one index, the chart as Helm pushes it, and each image's
 * SBOM as a referrer. `npm run publish` sends it as it is.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { tagOf } from "../setup/version.mjs";
import { readTar } from "./archive.ts";
import { labelsOf } from "./image.ts";
import { type Descriptor, describe, INDEX, json, Layout, MANIFEST, REF_NAME, TITLE } from "./oci.ts";
import type { Architecture } from "./sources.ts";
import type { Artifact, Release } from "./step.ts";

export const SBOM_TYPE = "application/vnd.cyclonedx+json";
const ARCHITECTURES: readonly Architecture[] = ["amd64", "arm64"];

/**
 * Returns the layout, and the index of the image as a file: its hash is the image's digest. The artifacts of the steps
 * before are in the folder of the release.
 */
export async function buildLayout({ facts, output }: Pick<Release, "facts" | "output">): Promise<Artifact[]> {
  const tag = tagOf(facts.version);
  const read = (name: string): Buffer => readFileSync(join(output, name));
  const layout = new Layout();
  const images: Descriptor[] = [];
  const sboms: Descriptor[] = [];
  for (const architecture of ARCHITECTURES) {
    const name = `berth-${tag}-image-${architecture}`;
    const image = await addImage(layout, read(`${name}.tar`));
    images.push(image);
    sboms.push(layout.addReferrer(image, SBOM_TYPE, [`${name}.cdx.json`, read(`${name}.cdx.json`)]));
  }
  const index = layout.addManifest({ mediaType: INDEX, manifests: images, annotations: labelsOf(facts) });
  const named = (entry: Descriptor, name: string): Descriptor => ({ ...entry, annotations: { [REF_NAME]: name } });
  const chart = await addChart(layout, read(`berth-${tag}.tgz`), facts.timeSeconds);
  layout.entries.push(named(index, `berth:${tag}`), named(chart, `charts/berth:${tag}`), ...sboms);
  return [
    [`berth-${tag}-oci.tar`, await layout.write(facts.timeSeconds)],
    [`berth-${tag}-image.json`, layout.require(index.digest)],
  ];
}

/** Takes the image of an archive over, and returns its descriptor. */
async function addImage(layout: Layout, archive: Buffer): Promise<Descriptor> {
  const image = await Layout.read(archive);
  const [{ annotations: _, ...entry } = { mediaType: "", digest: "", size: 0 }] = image.entries;
  const { config, layers = [] } = image.readManifest(entry.digest);
  for (const { digest } of [entry, ...(config ? [config] : []), ...layers]) layout.add(image.require(digest));
  return entry;
}

/** As `helm push` describes a package: Artifact Hub shows the configuration. */
async function addChart(layout: Layout, archive: Buffer, timeSeconds: number): Promise<Descriptor> {
  const text = (await readTar(archive)).get("berth/Chart.yaml") ?? "";
  const metadata = parse(text.toString());
  const config = json(metadata);
  for (const content of [config, archive]) layout.add(content);
  const { mediaType, digest, size } = layout.addManifest({
    mediaType: MANIFEST,
    config: describe("application/vnd.cncf.helm.config.v1+json", config),
    layers: [describe("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)],
    annotations: {
      "org.opencontainers.image.created": new Date(timeSeconds * 1000).toISOString(),
      "org.opencontainers.image.description": metadata.description,
      "org.opencontainers.image.source": metadata.sources[0],
      [TITLE]: metadata.name,
      "org.opencontainers.image.url": metadata.home,
      "org.opencontainers.image.version": metadata.version,
    },
  });
  return { mediaType, digest, size };
}
