/**
 * The set-up of `npm run release`: the pinned downloads that are included (scripts/release/sources.json). Node.js
 * comes from npm, verified by the hash in package-lock.json; the C library's parts come from the Debian archive,
 * verified by its signed index and by the recorded hash. Effects: the user's cache, dist, Debian packages (as
 * root).
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, SetupError } from "./command.mjs";
import { releaseSourcesDir, root } from "./paths.mjs";
import { oneModuleStep } from "./product.mjs";

const sources = JSON.parse(readFileSync(join(root, "scripts", "release", "sources.json"), "utf8"));

export function releaseSteps() {
  return [nodeArchivesStep(), debianArchivesStep(), oneModuleStep()];
}

function digest(path, algorithm, encoding) {
  return createHash(algorithm).update(readFileSync(path)).digest(encoding);
}

/** Fills `fetch`'s temporary folder, verifies each file and moves it into the folder of sources. */
function download(files, fetch) {
  const directory = releaseSourcesDir();
  mkdirSync(directory, { recursive: true });
  const temporary = mkdtempSync(join(directory, ".download-"));
  try {
    for (const { name, ...file } of files) {
      if (existsSync(join(directory, name))) continue;
      fetch(file, temporary);
      const found = file.hash(join(temporary, name));
      if (found !== file.wanted) {
        throw new SetupError(
          `The download of ${name} is not the recorded one`,
          `its hash is ${found}, want ${file.wanted}`,
        );
      }
      renameSync(join(temporary, name), join(directory, name));
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const isComplete = (files) => files.every(({ name }) => existsSync(join(releaseSourcesDir(), name)));

function nodeArchivesStep() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const { version, ...executables } = sources.node;
  const files = Object.values(executables).map(({ package: npmPackage }) => ({
    name: `${npmPackage}-${version}.tgz`,
    spec: `${npmPackage}@${version}`,
    wanted: packages[`node_modules/${npmPackage}`].integrity,
    hash: (path) => `sha512-${digest(path, "sha512", "base64")}`,
  }));
  return {
    name: `Node.js ${version} for both processors`,
    isCurrent: () => isComplete(files),
    run: () =>
      download(files, ({ spec }, directory) => {
        run("npm", ["pack", spec, "--pack-destination", directory]);
      }),
  };
}

function debianArchivesStep() {
  const files = sources.debian.packages.map(({ name, version, architecture, sha256 }) => ({
    name: `${name}_${version.replaceAll(":", "%3a")}_${architecture}.deb`,
    spec: `${name}:${architecture}=${version}`,
    wanted: sha256,
    hash: (path) => digest(path, "sha256", "hex"),
  }));
  let options;
  return {
    name: `Debian packages to include (${sources.debian.suite})`,
    isCurrent: () => isComplete(files),
    run: () =>
      download(files, ({ spec }, directory) => {
        options ??= openPrivateApt(join(directory, "apt"));
        run("apt-get", [...options, "-qq", "download", spec], { cwd: directory });
      }),
  };
}

/**
 * An apt of its own with both architectures, so that the machine's package lists and architectures stay as they are.
 */
function openPrivateApt(directory) {
  const mirror = run("apt-get", [
    ...["indextargets", "--format", "$(REPO_URI)", "ORIGIN: Debian", "LABEL: Debian", "COMPONENT: main"],
  ]).split("\n")[0];
  if (!mirror) throw new SetupError("No Debian archive", "apt of this machine names none", "apt-get update");
  for (const folder of ["state/lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(directory, folder), { recursive: true });
  }
  const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
  writeFileSync(join(directory, "sources.list"), `deb [signed-by=${keyring}] ${mirror} ${sources.debian.suite} main\n`);
  writeFileSync(join(directory, "status"), "");
  const settings = {
    "Dir::State": join(directory, "state"),
    "Dir::State::status": join(directory, "status"),
    "Dir::Cache": join(directory, "cache"),
    "Dir::Etc::SourceList": join(directory, "sources.list"),
    "Dir::Etc::SourceParts": "-",
    "APT::Architecture": "arm64",
    "APT::Architectures::": ["arm64", "amd64"],
    "APT::Sandbox::User": "root",
  };
  const options = Object.entries(settings).flatMap(([key, values]) =>
    [values].flat().flatMap((value) => ["-o", `${key}=${value}`]),
  );
  run("apt-get", [...options, "-qq", "update"]);
  return options;
}
