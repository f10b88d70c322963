/**
 * The version of a build: the version of package.json, and between releases the number of commits since the last one
 * and the commit, `1.0.0-rc.0.dev.12+0123456789ab`, with `.dirty` if tracked files differ from the commit.
 * Effects: runs git.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

/** The version and the commit of the last release. */
export const lastRelease = JSON.parse(readFileSync(join(root, "scripts", "last-release.json"), "utf8"));

/** File to which the product's version is written when it is built: the version that all in dist report. */
export const VERSION_FILE = join(root, "dist", "VERSION");

/** Returns the version that the programs in dist report. */
export function readVersion() {
  return readFileSync(VERSION_FILE, "utf8").trim();
}

const readManifestVersion = () => JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;

/**
 * Returns the version in package.json between the release `last` and the release `next`: newer than the one, older than
 * the other in the order of Semantic Versioning, of Debian and of rpm. `1.0.0-rc.1-dev` would be newer than
 * `1.0.0-rc.1`, and `1.0.0-dev` older than each of its candidates.
 */
export function developmentVersion(next, last = lastRelease.version) {
  const [number] = next.split("-");
  return `${last.startsWith(`${number}-rc.`) ? last : `${number}-rc.0`}.dev`;
}

/**
 * Returns the version of a build from `directory`. The number of commits is left out if the history does not reach back
 * to the last release (a shallow clone), number and commit if `directory` is no clone, as an unpacked source archive is
 * not.
 */
export function buildVersion({ version = readManifestVersion(), since = lastRelease.commit, directory = root } = {}) {
  if (!version.endsWith(".dev")) return version;
  const git = (...args) => {
    const { status, stdout } = spawnSync("git", args, { cwd: directory, encoding: "utf8" });
    return status === 0 ? stdout.trim() : undefined;
  };
  // Below the top of another repository, its commits say nothing about this tree.
  if (git("rev-parse", "--show-cdup") !== "") return version;
  const commit = git("rev-parse", "--short=12", "HEAD");
  if (commit === undefined) return version;
  const reaches = git("merge-base", "--is-ancestor", since, "HEAD") !== undefined;
  const count = reaches ? `.${git("rev-list", "--count", `${since}..HEAD`)}` : "";
  const dirty = git("status", "--porcelain", "--untracked-files=no") === "" ? "" : ".dirty";
  return `${version}${count}+${commit}${dirty}`;
}

/**
 * Returns the version as tags of images and names of files have it: a tag has no `+`. Helm replaces it in a registry
 * in the same way.
 */
export function tagOf(version) {
  return version.replace("+", "_");
}
