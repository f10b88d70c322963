/**
 * A release as `npm run release` writes it, but for the images, which have one small file: chart, SBOMs, layout,
 * provenance and sums are real.
 * Effects: a folder; runs Helm.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeTar } from "../../scripts/release/archive.ts";
import { buildChart } from "../../scripts/release/chart.ts";
import type { Facts } from "../../scripts/release/facts.ts";
import { writeImage } from "../../scripts/release/image.ts";
import { buildLayout } from "../../scripts/release/layout.ts";
import { writeSbom } from "../../scripts/release/sbom.ts";
import { sealRelease } from "../../scripts/release/seal.ts";
import { type Architecture, sha256 } from "../../scripts/release/sources.ts";
import { tagOf } from "../../scripts/setup/version.mjs";

export interface SmallRelease {
  /** Makes images differ. */
  readonly text?: string;
  /** In place of the small ones. */
  readonly images?: Partial<Record<Architecture, Buffer>>;
}

export async function writeSmallRelease(output: string, facts: Facts, release: SmallRelease): Promise<void> {
  const { text = "an image", images = {} } = release;
  mkdirSync(output, { recursive: true });
  const digests = new Map<string, string>();
  const add = (name: string, content: Buffer): void => {
    writeFileSync(join(output, name), content);
    digests.set(name, sha256(content));
  };
  for (const architecture of ["amd64", "arm64"] as const) {
    const name = `berth-${tagOf(facts.version)}-image-${architecture}`;
    const content = Buffer.from(`${text} of ${architecture}`);
    const files = await writeTar([{ path: "file", mode: 0o644, content }], facts.timeSeconds);
    const image = images[architecture] ?? (await writeImage(architecture, files, facts));
    add(`${name}.tar`, image);
    const subject = { name: `${name}.tar`, type: "container", sha256: sha256(image) } as const;
    add(`${name}.cdx.json`, writeSbom(subject, [], facts));
  }
  for (const [name, content] of await buildChart(facts)) add(name, content);
  for (const [name, content] of await buildLayout({ facts, output })) add(name, content);
  sealRelease(output, digests, facts);
}
