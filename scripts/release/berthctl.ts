/**
 * berthctl as one file for laptops, each in an archive of its own, and the manifest by which krew installs it as
 * `kubectl berth`: Node.js's executables with the program inside
 * (https://nodejs.org/api/single-executable-applications.html).
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { root } from "../setup/paths.mjs";
import { tagOf } from "../setup/version.mjs";
import { compress, writeTar } from "./archive.ts";
import { type Facts, HOME } from "./facts.ts";
import { writeSbom } from "./inventory/sbom.ts";
import { signAdHoc } from "./mach-o.ts";
import { type Architecture, type Laptop, nodePath, readNode, sha256 } from "./sources.ts";
import type { Artifact, Release } from "./step.ts";

const PLATFORMS = {
  "linux-amd64": "amd64",
  "linux-arm64": "arm64",
  "darwin-amd64": "darwin-amd64",
  "darwin-arm64": "darwin-arm64",
  "windows-amd64": "windows-amd64",
} as const satisfies Readonly<Record<string, Architecture | Laptop>>;

export type Platform = keyof typeof PLATFORMS;

/** V8's compiled code is of one processor and system: the one that builds. */
const HERE = `linux-${process.arch === "arm64" ? "arm64" : "amd64"}`;

/** Returns the executable. The program is dist/one-file/berthctl.mjs. */
export async function buildExecutable(platform: Platform): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), "berth-one-file-"));
  const [node, config, output] = ["node", "sea.json", "berthctl"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  try {
    const source = PLATFORMS[platform];
    writeFileSync(node, (await readNode(source)).get(nodePath(source)) as Buffer);
    const settings = {
      ...{ main: join(root, "dist/one-file/berthctl.mjs"), mainFormat: "module", executable: node, output },
      ...{ disableExperimentalSEAWarning: true, useCodeCache: platform === HERE },
      assets: { "berth-core.wasm": join(root, "dist/core/berth-core.wasm") },
    };
    writeFileSync(config, JSON.stringify(settings));
    // With a seed V8 compiles to the same bytes. Unlike --hash-seed it is no reason to reject them at the start.
    execFileSync(process.execPath, ["--random-seed=1", "--build-sea", config], { stdio: "pipe" });
    const executable = readFileSync(output);
    if (platform.startsWith("darwin")) return signAdHoc(executable, "berthctl");
    return platform.startsWith("windows") ? dropAuthenticode(executable) : executable;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/**
 * Returns a Windows executable without the signature of Node.js, which no longer fits: the table entry, which Node.js
 * leaves as it was, and the bytes, which it leaves at the end.
 */
function dropAuthenticode(executable: Buffer): Buffer {
  const optionalHeader = executable.readUInt32LE(0x3c) + 24;
  // Entry 4 of the data directories of a PE32+ file: offset and length.
  const entry = executable.subarray(optionalHeader + 112 + 4 * 8, optionalHeader + 112 + 5 * 8);
  const lengthBytes = entry.readUInt32LE(4);
  entry.fill(0);
  return executable.subarray(0, executable.length - lengthBytes);
}

const programOf = (platform: string): string => (platform.startsWith("windows") ? "berthctl.exe" : "berthctl");

/** The step of a release: archives, their SBOMs, and krew's manifest. */
export async function buildBerthctl({ facts, inventories, notices }: Omit<Release, "site">): Promise<Artifact[]> {
  const license = readFileSync(join(root, "LICENSE"));
  const archives: Artifact[] = [];
  const sboms: Artifact[] = [];
  // One after the other: each is 150 MB in memory.
  for (const platform of Object.keys(PLATFORMS) as Platform[]) {
    const files = [
      { path: programOf(platform), mode: 0o755, content: await buildExecutable(platform) },
      { path: "LICENSE", mode: 0o644, content: license },
      { path: "THIRD_PARTY_LICENSES", mode: 0o644, content: notices },
    ];
    const stem = `berthctl-${tagOf(facts.version)}-${platform}`;
    const archive = await compress(await writeTar(files, facts.timeSeconds));
    const subject = { name: `${stem}.tar.gz`, type: "application", sha256: sha256(archive) } as const;
    archives.push([subject.name, archive]);
    sboms.push([`${stem}.cdx.json`, writeSbom(subject, inventories.amd64.berthctl, facts)]);
  }
  return [...archives, ...sboms, ["berth.krew.yaml", Buffer.from(krewManifest(archives, facts))]];
}

/** Returns the manifest of krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest). */
function krewManifest(archives: readonly Artifact[], { version, description }: Facts): string {
  const platforms = archives.map(([name, content]) => {
    const [, os = "", arch = ""] = /-([a-z]+)-(\w+)\.tar\.gz$/.exec(name) ?? [];
    return {
      selector: { matchLabels: { os, arch } },
      ...{ uri: `${HOME}/releases/${tagOf(version)}/${name}`, sha256: sha256(content) },
      bin: programOf(os),
      // Out of the archive; all of it without this list.
      files: [programOf(os), "LICENSE", "THIRD_PARTY_LICENSES"].map((from) => ({ from, to: "." })),
    };
  });
  const [shortDescription = ""] = description.split(":");
  return stringify({
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "berth" },
    spec: {
      ...{ version: `v${version}`, homepage: HOME, shortDescription: `Inspect Berth: ${shortDescription}` },
      description: `${description}.\nShows pools and addresses of pods, checks nodes, and repairs what is wrong.\n`,
      platforms,
    },
  });
}
