/** The pinned downloads that a release includes, verified again by the recorded hashes when they are read. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { releaseSourcesDir } from "../setup/paths.mjs";
import { readTar } from "./archive.ts";
import pinned from "./sources.json" with { type: "json" };

export type Architecture = "amd64" | "arm64";

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const nodes = new Map<Architecture, Promise<Map<string, Buffer>>>();

/**
 * Returns the files of the npm package of Node.js; throws unless the executable is the recorded one. Reads it once.
 */
export function readNode(architecture: Architecture): Promise<Map<string, Buffer>> {
  return nodes.getOrInsertComputed(architecture, () => unpackNode(architecture));
}

async function unpackNode(architecture: Architecture): Promise<Map<string, Buffer>> {
  const { version } = pinned.node;
  const { package: name, executableSha256 } = pinned.node[architecture];
  const files = await readTar(readFileSync(join(releaseSourcesDir(), `${name}-${version}.tgz`)));
  const executable = files.get("package/bin/node");
  const found = executable === undefined ? "missing" : sha256(executable);
  if (found !== executableSha256)
    throw new Error(`Node.js of ${name} ${version} is ${found}, want ${executableSha256}`);
  return files;
}

/** Returns the path of a Debian archive; throws unless it is the recorded one. */
function requireDebianArchive(name: string, architecture: Architecture): string {
  const entry = pinned.debian.packages.find((each) => each.name === name && each.architecture === architecture);
  if (entry === undefined) throw new Error(`scripts/release/sources.json has no package ${name} for ${architecture}`);
  const path = join(releaseSourcesDir(), `${name}_${entry.version}_${architecture}.deb`);
  const found = sha256(readFileSync(path));
  if (found !== entry.sha256) throw new Error(`${path} has the SHA-256 ${found}, want ${entry.sha256}`);
  return path;
}

/** Unpacks a Debian package into a folder; its links stay links. */
export function unpackDebian(name: string, architecture: Architecture, directory: string): void {
  execFileSync("dpkg-deb", ["--extract", requireDebianArchive(name, architecture), directory]);
}
