/**
 * `npm run release`: writes images, tarballs, their SBOMs, the chart, a layout for registries, source maps, the
 * documentation, THIRD_PARTY_LICENSES, the provenance and SHA256SUMS into dist/release. It needs no network once the
 * set-up has run, and the same commit gives the same bytes.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildSite } from "../docs/site.ts";
import { root } from "../setup/paths.mjs";
import { tagOf } from "../setup/version.mjs";
import { compress, writeTar } from "./archive.ts";
import { buildBerthctl } from "./berthctl.ts";
import { build } from "./build.ts";
import { buildChart } from "./chart.ts";
import { type Facts, readFacts } from "./facts.ts";
import { npmComponent, takeInventory, writeNotices } from "./inventory.ts";
import { buildLayout } from "./layout.ts";
import { below, withDirectories } from "./product.ts";
import { sealRelease } from "./seal.ts";
import { sha256 } from "./sources.ts";
import type { Artifact, Release, Step } from "./step.ts";

/** The steps of a release, in the order of the work. */
const STEPS: readonly Step[] = [
  async ({ notices }) => [["THIRD_PARTY_LICENSES", notices]],
  (release) => build("amd64", release),
  (release) => build("arm64", release),
  ({ facts }) => buildChart(facts),
  buildLayout,
  buildBerthctl,
  async ({ facts }) => [[`berth-${tagOf(facts.version)}-source-maps.tar.gz`, await packSourceMaps(facts)]],
  packSite,
];

/**
 * Returns the archive of the bundles' source maps, which images and tarballs do without: unpacked beside the bundles
 * they name lines of the source.
 */
async function packSourceMaps(facts: Facts): Promise<Buffer> {
  const dist = join(root, "dist");
  const names = readdirSync(dist).filter((name) => name.endsWith(".mjs.map"));
  const entries = names.sort().map((path) => ({ path, mode: 0o644, content: readFileSync(join(dist, path)) }));
  return compress(await writeTar(entries, facts.timeSeconds));
}

/** The documentation as a site, for any server of files. */
async function packSite({ facts, site }: Release): Promise<Artifact[]> {
  const folder = `berth-${tagOf(facts.version)}-docs`;
  const archive = await writeTar(withDirectories(below(folder, site.entries)), facts.timeSeconds);
  return [[`${folder}.tar.gz`, await compress(archive)]];
}

async function prepare(output: string): Promise<Release> {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const site = buildSite();
  const inventories = { amd64: await takeInventory("amd64"), arm64: await takeInventory("arm64") };
  const ofSite = site.packages.map((path) => npmComponent(join(root, path)));
  const notices = writeNotices([...inventories.amd64.image, ...inventories.arm64.image, ...ofSite]);
  return { facts: readFacts(), output, site, inventories, notices };
}

const { values } = parseArgs({ options: { output: { type: "string", default: join(root, "dist", "release") } } });
const release = await prepare(values.output);
const digests = new Map<string, string>();
for (const step of STEPS) {
  for (const [name, content] of await step(release)) {
    writeFileSync(join(values.output, name), content);
    digests.set(name, sha256(content));
    console.log(`${name.padEnd(40)} ${(content.length / 1e6).toFixed(1).padStart(6)} MB`);
  }
}
sealRelease(values.output, digests, release.facts);
