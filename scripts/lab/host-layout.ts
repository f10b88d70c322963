/**
 * The release tarball's files in a folder, with the parts that are in dist instead of those built for a release: for tests of install.sh.
 * Effects: files in `directory`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "../../host/bin/version.ts";
import { writeFolder } from "../release/archive.ts";
import { readNative, TRIPLES } from "../release/native.ts";
import { productEntries } from "../release/product.ts";
import { hostEntries } from "../release/tarball.ts";
import { root } from "../setup/paths.mjs";

/** Returns the path of its install.sh. `directory` must not exist. */
export function assembleHostLayout(directory: string): string {
  const triple = TRIPLES[process.arch === "arm64" ? "arm64" : "amd64"];
  const entries = hostEntries({
    version: VERSION,
    node: readFileSync(process.execPath),
    libatomic: readFileSync(`/usr/lib/${triple}/libatomic.so.1`),
    product: productEntries(readNative(join(root, "dist")), "#!/usr/bin/env node"),
    notices: Buffer.from("of a release\n"),
  });
  writeFolder(entries, directory);
  return join(directory, "install.sh");
}
