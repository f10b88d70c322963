/**
 * The release tarball's files in a folder, with the parts that are in dist instead of those built for a release: for
 * tests of install.sh.
 * Effects: files in `directory`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ArchiveEntry, writeFolder } from "../../scripts/release/archive.ts";
import { readNative, TRIPLES } from "../../scripts/release/native.ts";
import { productEntries } from "../../scripts/release/product.ts";
import { hostEntries } from "../../scripts/release/tarball.ts";
import { lastReleaseDir, root } from "../../scripts/setup/paths.mjs";
import { readVersion } from "../../scripts/setup/version.mjs";
import { formatShell, requireCommand } from "./command.ts";

/**
 * Writes the same for the last release, by its own scripts, which stand in another folder; {@link assembleHostLayout}.
 */
export async function assembleLastHostLayout(directory: string): Promise<void> {
  const script = `
    const { assembleHostLayout } = await import("./scripts/lab/host-layout.ts");
    assembleHostLayout(${JSON.stringify(directory)});`;
  const cwd = lastReleaseDir();
  await requireCommand([join(cwd, "node_modules/.bin/node"), "--input-type=module", "-e", script], { cwd });
}

/** A program of some bytes that runs this Node.js: a copy of it, and of each copy, takes a moment. */
export const SMALL_NODE = Buffer.from(`#!/bin/sh\nexec ${formatShell([process.execPath])} "$@"\n`);

/** Returns the path of its install.sh. `directory` must not exist. `node`: the file lib/node. */
export function assembleHostLayout(directory: string, node = readFileSync(process.execPath)): string {
  writeFolder(hostFiles(node), directory);
  return join(directory, "install.sh");
}

/** Returns the tarball's files. */
export function hostFiles(node: Buffer): ArchiveEntry[] {
  const triple = TRIPLES[process.arch === "arm64" ? "arm64" : "amd64"];
  return hostEntries({
    version: readVersion(),
    node,
    libatomic: readFileSync(`/usr/lib/${triple}/libatomic.so.1`),
    product: productEntries(readNative(join(root, "dist")), "#!/usr/bin/env node"),
    notices: Buffer.from("of a release\n"),
  });
}
