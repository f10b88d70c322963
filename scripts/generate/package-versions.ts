/**
 * The version of package.json in the manifests of the embeddings' packages, each in the form of its registry; all else
 * in these files is written by hand. A Go module has its version from a tag.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";
import type { GeneratedText } from "./generated-text.ts";

/** Each with the text before the version. */
const PLACES: readonly (readonly [path: string, before: RegExp, format?: (version: string) => string])[] = [
  ["browser/package.json", /^ {2}"version": "/m],
  ["c/Makefile", /^VERSION = /m],
  ["java/pom.xml", /^ {2}<version>/m],
  ["python/pyproject.toml", /^version = "/m, pythonVersion],
  ["rust/Cargo.lock", /^name = "berth-core"\nversion = "/m],
  ["rust/Cargo.toml", /^version = "/m],
];

/** Returns `1.0.0rc1.dev0`, older than `1.0.0rc1`, for `1.0.0-rc.0.dev` (PEP 440). */
export function pythonVersion(version: string): string {
  return version.replace(/-rc\.(\d+)(\.dev)?$/, (_, rc, dev) => (dev ? `rc${Number(rc) + 1}.dev0` : `rc${rc}`));
}

/** Returns the manifests with the version. */
export function packageVersions(): GeneratedText[] {
  return PLACES.map(([name, before, format = String]) => {
    const path = `embeddings/${name}`;
    const text = readFileSync(join(root, path), "utf8");
    const place = new RegExp(`(${before.source})[0-9][0-9a-z.-]*`, "m");
    if (!place.test(text)) throw new Error(`${path} has no version behind ${before}`);
    return { path, text: text.replace(place, (_, start: string) => start + format(manifest.version)) };
  });
}
