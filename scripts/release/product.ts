/**
 * The files of Berth for one processor, as they lie in usr/lib/berth of the image; the tarball has the plugins in a
 * folder of their own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasPackage, root } from "../setup/paths.mjs";
import type { ArchiveEntry } from "./archive.ts";

/** The files that the bundles read. */
const PLAIN_FILES = [
  "core/berth-core.wasm",
  ...(hasPackage("map") ? ["map/index.html", "map/map.css", "map/map.js"] : []),
];

export interface NativeParts {
  /** The executables by their names. */
  readonly plugins: ReadonlyMap<string, Buffer>;
  readonly addon: Buffer;
}

/** `shebang` is the first line of each executable bundle. */
export function productEntries({ plugins, addon }: NativeParts, shebang: string): ArchiveEntry[] {
  const dist = join(root, "dist");
  return [
    ...readdirSync(dist)
      .sort()
      .filter((name) => name.endsWith(".mjs"))
      .map((path) => {
        const text = readFileSync(join(dist, path), "utf8");
        return { path, mode: 0o755, content: Buffer.from(text.replace(/^#!.*/, shebang)) };
      }),
    ...PLAIN_FILES.map((path) => ({ path, mode: 0o644, content: readFileSync(join(dist, path)) })),
    { path: "native/berth.node", mode: 0o755, content: addon },
    ...[...plugins].map(([name, content]) => ({ path: `bin/${name}`, mode: 0o755, content })),
  ];
}

export function below(folder: string, entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  return entries.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }));
}

/** Adds the directories above the entries, each before its contents. */
export function withDirectories(entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  const known = new Set(entries.map(({ path }) => path));
  return entries.flatMap((entry) => {
    const parts = entry.path.split("/").slice(0, -1);
    const folders = parts.map((_, index) => parts.slice(0, index + 1).join("/"));
    const missing = folders.filter((path) => !known.has(path));
    for (const path of missing) known.add(path);
    return [...missing.map((path) => ({ path, mode: 0o755 })), entry];
  });
}
