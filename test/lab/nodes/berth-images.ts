/**
 * Images of Berth for nodes of the lab, as `npm run release` makes them, for this machine's processor only: the last
 * release, this tree, and the next release of this tree.
 * Effects: compiles shim and addon; writes archives.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ArchiveEntry, writeTar } from "../../../scripts/release/archive.ts";
import { readFacts } from "../../../scripts/release/facts.ts";
import { rootEntries, writeImage } from "../../../scripts/release/image.ts";
import { buildNative } from "../../../scripts/release/native.ts";
import { productEntries } from "../../../scripts/release/product.ts";
import { type Architecture, readNode } from "../../../scripts/release/sources.ts";
import { lastReleaseDir } from "../../../scripts/setup/paths.mjs";
import { lastRelease, readVersion } from "../../../scripts/setup/version.mjs";
import { requireCommand } from "../command.ts";

export interface BerthVersion {
  readonly version: string;
  /** The registry's format is one higher. */
  readonly hasNewerRegistry?: boolean;
}

/** The version in dist. */
export const CURRENT: BerthVersion = { version: readVersion() };

/** The version that users have. */
export const LAST: BerthVersion = { version: lastRelease.version };

/**
 * Writes one archive for each version into the folder and returns their paths. Those of this tree have the same
 * programs; tags and texts differ.
 */
export async function writeBerthImages(directory: string, versions: readonly BerthVersion[]): Promise<string[]> {
  const architecture: Architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const facts = readFacts();
  const place = await mkdtemp(join(tmpdir(), "berth-images-"));
  try {
    const files = await readNode(architecture);
    const build = facts.revision.slice(0, 12);
    const native = buildNative({ architecture, node: files, version: facts.version, build, directory: place });
    const product = productEntries(native, "#!/usr/bin/node");
    const node = files.get("package/bin/node") as Buffer;
    for (const each of versions) {
      if (each === LAST) {
        await writeLastImage(directory);
        continue;
      }
      const tree = rootEntries({
        architecture,
        node,
        product: each.hasNewerRegistry ? withNewerRegistry(product) : product,
        notices: NO_NOTICES,
        directory: join(place, "packages"),
      });
      const archive = await writeTar(tree, facts.timeSeconds);
      const image = await writeImage(architecture, archive, { ...facts, version: each.version });
      await writeFile(archivePath(directory, each), image);
    }
    return versions.map((each) => archivePath(directory, each));
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

const archivePath = (directory: string, { version }: BerthVersion): string => join(directory, `berth-${version}.tar`);

/** By the release's own scripts, which stand in another folder, into the same path. */
async function writeLastImage(directory: string): Promise<void> {
  const script = `
    const { CURRENT, writeBerthImages } = await import("./scripts/lab/nodes/berth-images.ts");
    await writeBerthImages(${JSON.stringify(directory)}, [CURRENT]);`;
  const cwd = lastReleaseDir();
  await requireCommand([join(cwd, "node_modules/.bin/node"), "--input-type=module", "-e", script], { cwd });
}

/** The one difference to an image that is published. */
const NO_NOTICES = Buffer.alloc(0);

/** Throws unless a program names the format. */
function withNewerRegistry(product: readonly ArchiveEntry[]): ArchiveEntry[] {
  let count = 0;
  const changed = product.map((entry) => {
    if (!entry.path.endsWith(".mjs")) return entry;
    const text = Buffer.from(entry.content ?? []).toString();
    const content = text.replace(/(?<=\bSCHEMA_VERSION=)\d+/g, (format) => {
      count++;
      return `${Number(format) + 1}`;
    });
    return { ...entry, content: Buffer.from(content) };
  });
  if (count === 0) throw new Error("No program names the format of the registry");
  return changed;
}
