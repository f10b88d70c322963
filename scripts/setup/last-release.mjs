/**
 * The product of the last release, built by its own set-up from its commit: what tests of upgrades, rollbacks and
 * mixed versions start from.
 * Effects: the user's cache.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { run, SetupError } from "./command.mjs";
import { replaceFolder } from "./go.mjs";
import { lastReleaseDir, root } from "./paths.mjs";
import { readStamp, writeStamp } from "./stamp.mjs";
import { lastRelease } from "./version.mjs";

export function lastReleaseSteps() {
  const { version, commit } = lastRelease;
  const directory = lastReleaseDir();
  const stamp = (folder) => join(folder, "dist", ".stamps", "last-release");
  return [
    {
      name: `the last release, ${version} (a minute, the first time)`,
      isCurrent: () => existsSync(directory) && readStamp(stamp(directory)) === commit,
      run: () => {
        mkdirSync(dirname(directory), { recursive: true });
        const temporary = mkdtempSync(`${directory}.`);
        try {
          checkOut(commit, temporary);
          // Chart and release download what the set-up of this tree downloads, too, unless its versions are others.
          run(process.execPath, [join("scripts", "setup.mjs"), "product", "chart", "release"], { cwd: temporary });
          writeStamp(stamp(temporary), commit);
          replaceFolder(directory, temporary);
        } finally {
          rmSync(temporary, { recursive: true, force: true });
        }
      },
    },
  ];
}

/** A clone, because a release reads its commit. */
function checkOut(commit, directory) {
  const git = (...args) => run("git", ["-C", directory, ...args]);
  run("git", ["clone", "--quiet", "--no-tags", "--no-checkout", root, directory]);
  try {
    git("checkout", "--quiet", "--detach", commit);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    throw new SetupError(
      `The history has no commit ${commit}, the last release`,
      error.message,
      "git fetch --unshallow",
    );
  }
}
