/**
 * berthctl without the rest: as an npm package, which needs a Node.js, and for Linux as one file, which brings it
 * (https://nodejs.org/api/single-executable-applications.html).
 */
import { execFileSync } from "node:child_process";
import { mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import project from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";
import { tagOf } from "../setup/version.mjs";
import { compress, writeTar } from "./archive.ts";
import { readMetafile } from "./inventory.ts";
import { below } from "./product.ts";
import { writeSbom } from "./sbom.ts";
import { type Architecture, readNode, sha256 } from "./sources.ts";
import type { Artifact, Release } from "./step.ts";

type Parts = Omit<Release, "site" | "output">;

const PROGRAMS = ["berthctl", "kubectl-berth"];
const LICENSE = { path: "LICENSE", mode: 0o644, content: readFileSync(join(root, "LICENSE")) };
const CORE = "core/berth-core.wasm";

/** The step of a release: archives and their SBOMs. */
export async function buildBerthctl(parts: Parts): Promise<Artifact[]> {
  const { inventories, facts } = parts;
  const withSbom = (name: string, content: Buffer, components = inventories.amd64.berthctl): Artifact[] => {
    const subject = { name, type: "application", sha256: sha256(content) } as const;
    const stem = name.replace(/\.tar\.gz$|\.tgz$/, "");
    return [
      [name, content],
      [`${stem}.cdx.json`, writeSbom(subject, components, facts)],
    ];
  };
  const stem = `berthctl-${tagOf(facts.version)}`;
  return [
    ...withSbom(`${stem}.tgz`, await npmPackage(parts), inventories.amd64.npm),
    ...withSbom(`${stem}-linux-amd64.tar.gz`, await oneFile("amd64", parts)),
    ...withSbom(`${stem}-linux-arm64.tar.gz`, await oneFile("arm64", parts)),
  ];
}

/** Returns the package that `npm install --global` installs: the bundles that both programs need, and no dependency. */
export async function npmPackage({ facts, notices }: Pick<Parts, "facts" | "notices">): Promise<Buffer> {
  const dist = join(root, "dist");
  const { outputs } = readMetafile(dist);
  const files = new Set<string>();
  const add = (output: string): void => {
    if (files.has(output)) return;
    files.add(output);
    for (const { path, external } of outputs[output]?.imports ?? []) if (external !== true) add(path);
  };
  for (const output of Object.keys(outputs))
    if (PROGRAMS.some((name) => basename(output) === `${name}.mjs`)) add(output);
  const { license, homepage, repository } = project;
  const manifest = {
    ...{ name: "berthctl", version: facts.version, description: `Inspects and repairs Berth: ${facts.description}` },
    ...{ license, homepage, repository, type: "module", engines: { node: ">=26" } },
    bin: Object.fromEntries(PROGRAMS.map((name) => [name, `${name}.mjs`])),
  };
  const text = (path: string, content: string | Buffer) => ({ path, mode: 0o644, content: Buffer.from(content) });
  const programs = [...files].map((output) => basename(output)).sort();
  const entries = [
    text("package.json", `${JSON.stringify(manifest, undefined, 2)}\n`),
    text("README.md", `# berthctl\n\nThe command line of [Berth](${homepage}): ${homepage}/docs/${facts.version}.\n`),
    text("THIRD_PARTY_LICENSES", notices),
    text(CORE, readFileSync(join(dist, CORE))),
    ...programs.map((path) => ({ path, mode: 0o755, content: readFileSync(join(dist, path)) })),
    LICENSE,
  ];
  return compress(await writeTar(below("package", entries), facts.timeSeconds));
}

async function oneFile(architecture: Architecture, { facts, notices }: Parts): Promise<Buffer> {
  const files = [
    { path: "berthctl", mode: 0o755, content: await buildExecutable(architecture) },
    LICENSE,
    { path: "THIRD_PARTY_LICENSES", mode: 0o644, content: notices },
  ];
  return compress(await writeTar(files, facts.timeSeconds));
}

/** V8's compiled code is for one processor: that of the build. */
const HERE = process.arch === "arm64" ? "arm64" : "amd64";

/** Returns Node.js's executable with the program inside, which is dist/one-file/berthctl.mjs. */
async function buildExecutable(architecture: Architecture): Promise<Buffer> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "berth-one-file-"));
  const inside = (name: string) => join(folder.path, name);
  writeFileSync(inside("node"), (await readNode(architecture)).get("package/bin/node") as Buffer);
  const settings = {
    ...{ main: join(root, "dist/one-file/berthctl.mjs"), mainFormat: "module", executable: inside("node") },
    ...{ output: inside("berthctl"), disableExperimentalSEAWarning: true, useCodeCache: architecture === HERE },
    assets: { "berth-core.wasm": join(root, "dist", CORE) },
  };
  writeFileSync(inside("sea.json"), JSON.stringify(settings));
  // With a seed V8 compiles to the same bytes. Unlike --hash-seed it is no reason to reject them at the start.
  execFileSync(process.execPath, ["--random-seed=1", "--build-sea", inside("sea.json")], { stdio: "pipe" });
  return readFileSync(inside("berthctl"));
}
