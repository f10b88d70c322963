/** The site of the documentation as files of a release. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../release/archive.ts";
import { root } from "../setup/paths.mjs";

/** File of the site that names the folders of the npm packages whose code is in it. */
const PACKAGES = "packages.json";

export interface Site {
  readonly entries: readonly ArchiveEntry[];
  readonly packages: readonly string[];
}

/** Builds the site in `directory`, which is replaced. */
export function buildSite(directory = join(root, "dist", "site")): Site {
  const script = join(root, "scripts", "docs", "build.ts");
  execFileSync(process.execPath, [script, directory], { stdio: ["ignore", "ignore", "inherit"] });
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  const entries = paths
    .filter((path) => statSync(join(directory, path)).isFile())
    .map((path) => ({ path, mode: 0o644, content: readFileSync(join(directory, path)) }));
  return { entries, packages: JSON.parse(readFileSync(join(directory, PACKAGES), "utf8")) };
}
