/**
 * The product of the last release, built by its own set-up from its commit: the start of tests of upgrades, rollbacks
 * and mixed versions.
 * Effects: the user's cache.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { run, SetupError } from "./command.mjs";
import { replaceFolder } from "./go.mjs";
import { lastReleaseDir, root } from "./paths.mjs";
import { readStamp, writeStamp } from "./stamp.mjs";
import { lastRelease } from "./version.mjs";

const stampOf = (part, directory) => join(directory, "dist", ".stamps", `last-release-${part}`);
const isDone = (part) => readStamp(stampOf(part, lastReleaseDir())) === lastRelease.commit;

/** Its sources, with the packages that they import, and its programs: all that the simulation runs. */
export function lastReleaseProductSteps() {
  return [
    {
      name: `the last release, ${lastRelease.version} (half a minute, the first time)`,
      isCurrent: () => isDone("product"),
      run: () => {
        const directory = lastReleaseDir();
        mkdirSync(dirname(directory), { recursive: true });
        const temporary = mkdtempSync(`${directory}.`);
        try {
          checkOut(lastRelease.commit, temporary);
          setUp("product", temporary);
          replaceFolder(directory, temporary);
        } finally {
          rmSync(temporary, { recursive: true, force: true });
        }
      },
    },
  ];
}

/** The product, and the contents of its images. */
export function lastReleaseSteps() {
  return [
    ...lastReleaseProductSteps(),
    {
      name: `artefacts of the last release, ${lastRelease.version}`,
      isCurrent: () => isDone("artefacts"),
      // It downloads the same as the set-up of this tree, too, unless its versions are others.
      run: () => setUp("artefacts", lastReleaseDir(), ["release"]),
    },
  ];
}

function setUp(part, directory, targets = [part]) {
  run(process.execPath, [join("scripts", "setup.mjs"), ...targets], { cwd: directory });
  writeStamp(stampOf(part, directory), lastRelease.commit);
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
