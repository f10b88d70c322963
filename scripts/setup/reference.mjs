/**
 * The reference plugins and cnitool, built from Go modules into the user's cache, a folder for each version.
 * The modules in scripts/reference fix the exact versions of all they need.
 * Effects: the user's cache; nothing in the repository.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findCommand, run, SetupError } from "./command.mjs";
import { referenceTool } from "./paths.mjs";
import { hashInputs, readStamp, writeStamp } from "./stamp.mjs";

const FLAGS = ["-trimpath", "-ldflags", "-s -w"];
const ENVIRONMENT = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly -buildvcs=false", GOWORK: "off" };

export function referenceSteps() {
  return ["plugins", "cnitool"].map(referenceStep);
}

function referenceStep(tool) {
  const { source, version, directory } = referenceTool(tool);
  const stamp = (folder) => join(folder, ".stamp");
  const current = () => hashInputs([join(source, "go.mod"), join(source, "go.sum")], [...FLAGS, process.arch]);
  return {
    name: `reference ${tool} ${version}`,
    isCurrent: () => readStamp(stamp(directory)) === current(),
    run: () => {
      const go = requireGo();
      mkdirSync(dirname(directory), { recursive: true });
      removeAbandoned(directory);
      const temporary = mkdtempSync(`${directory}.`);
      try {
        run(go, ["build", ...FLAGS, "-o", `${temporary}/`, "tool"], { cwd: source, env: ENVIRONMENT });
        writeStamp(stamp(temporary), current());
        replaceFolder(directory, temporary);
      } finally {
        rmSync(temporary, { recursive: true, force: true });
      }
    },
  };
}

/** Removes what an interrupted build left beside `directory`; a build that is under way is younger. */
function removeAbandoned(directory) {
  const hourAgoMs = Date.now() - 3_600_000;
  for (const name of readdirSync(dirname(directory))) {
    if (!name.startsWith(`${basename(directory)}.`)) continue;
    const path = join(dirname(directory), name);
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) < hourAgoMs) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Puts `temporary` at `directory`, however often another checkout's set-up does the same at this moment. */
function replaceFolder(directory, temporary) {
  const old = `${temporary}.old`;
  for (;;) {
    try {
      if (existsSync(directory)) renameSync(directory, old);
      renameSync(temporary, directory);
      return;
    } catch (error) {
      if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes(error.code)) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

function requireGo() {
  const go = findCommand("go", ["/usr/local/go/bin"]);
  if (go !== undefined) return go;
  throw new SetupError(
    "The reference plugins and cnitool cannot be built",
    'there is no "go" in PATH; Go 1.24.2 or newer is needed',
    "apt-get install golang-go (Debian 13 or newer; before that from go.dev), then npm run setup",
  );
}
