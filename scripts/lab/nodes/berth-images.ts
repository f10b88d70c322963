/**
 * Images of Berth for nodes of the lab, as `npm run release` makes them, for this machine's processor only: a version, and what a user would upgrade to.
 * Effects: compiles shim and addon; writes archives.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../../package.json" with { type: "json" };
import { type ArchiveEntry, writeTar } from "../../release/archive.ts";
import { readFacts } from "../../release/facts.ts";
import { rootEntries, writeImage } from "../../release/image.ts";
import { buildNative } from "../../release/native.ts";
import { productEntries } from "../../release/product.ts";
import { type Architecture, readNode } from "../../release/sources.ts";

export interface BerthVersion {
  readonly version: string;
  /** The registry's format is one higher. */
  readonly hasNewerRegistry?: boolean;
}

/** What package.json says. */
export const CURRENT: BerthVersion = { version: manifest.version };

/** Writes one archive for each version into the folder and returns their paths. All have the same code; tags and texts differ. */
export async function writeBerthImages(directory: string, versions: readonly BerthVersion[]): Promise<string[]> {
  const architecture: Architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const facts = readFacts();
  const place = await mkdtemp(join(tmpdir(), "berth-images-"));
  try {
    const files = await readNode(architecture);
    const native = buildNative({ architecture, node: files, build: facts.revision.slice(0, 12), directory: place });
    const product = productEntries(native, "#!/usr/bin/node");
    const node = files.get("package/bin/node") as Buffer;
    const paths: string[] = [];
    for (const each of versions) {
      const changed = changeTexts(product, each);
      const tree = rootEntries({
        architecture,
        node,
        product: changed,
        notices: NO_NOTICES,
        directory: join(place, "packages"),
      });
      const path = join(directory, `berth-${each.version}.tar`);
      const archive = await writeTar(tree, facts.timeSeconds);
      await writeFile(path, await writeImage(architecture, archive, { ...facts, version: each.version }));
      paths.push(path);
    }
    return paths;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** The one difference to an image that is published. */
const NO_NOTICES = Buffer.alloc(0);

function changeTexts(product: readonly ArchiveEntry[], { version, hasNewerRegistry = false }: BerthVersion) {
  const changes: [RegExp, (text: string) => string][] = [];
  if (version !== CURRENT.version)
    changes.push([/\bversion:"[^"]+",description:/g, (text) => text.replace(CURRENT.version, version)]);
  if (hasNewerRegistry)
    changes.push([/\bSCHEMA_VERSION=\d+/g, (text) => text.replace(/\d+/, (format) => `${Number(format) + 1}`)]);
  return changes.reduce(changeBundles, product);
}

/** Throws unless the text occurs. */
function changeBundles(product: readonly ArchiveEntry[], [pattern, change]: [RegExp, (text: string) => string]) {
  let count = 0;
  const changed = product.map((entry) => {
    if (!entry.path.endsWith(".mjs")) return entry;
    const text = Buffer.from(entry.content ?? []).toString();
    const content = Buffer.from(
      text.replace(pattern, (found) => {
        count++;
        return change(found);
      }),
    );
    return { ...entry, content };
  });
  if (count === 0) throw new Error(`No bundle has the text ${pattern}`);
  return changed;
}
