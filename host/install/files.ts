/** Files of a host that other programs may use: each appears complete, by rename, and survives a power loss. */

import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, rmdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errnoOf, isMissing } from "../lib/describe.ts";
import { readRegular } from "../lib/regular-file.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { insteadOf } from "../lib/try-or.ts";
import type { Step } from "./step.ts";

/** Starts the name of a file that is still being written. Runtimes and kubelet ignore names with a leading dot. */
const TEMPORARY = ".berth-install-";

/** Age from which a temporary file belongs to an installer that has died: milliseconds. */
export const ABANDONED_MS = 600_000;

/** Plans the file with this content. */
export function writeFile(path: string, content: Uint8Array, mode: number): Step {
  const temporary = join(dirname(path), `${TEMPORARY}${basename(path)}-${randomBytes(6).toString("hex")}`);
  return {
    text: `${existsSync(path) ? "replace" : "create"} ${path}`,
    run: () => replaceFile(path, { content, mode, temporary }),
  };
}

/** Longest file of another product that is compared: bytes. A plugin in Go has some ten million. */
const MAX_CONTENT_BYTES = 256 * 1024 * 1024;

/** Returns the content; undefined without a file. Throws for a dangling link and anything but a regular file. */
export function findContent(path: string): Buffer | undefined {
  try {
    return readRegular(path, MAX_CONTENT_BYTES).bytes;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || listNames(dirname(path)).includes(basename(path))) throw error;
    return undefined;
  }
}

/** Returns the names of a directory's entries; none if there is no directory. */
export function listNames(directory: string): string[] {
  return insteadOf(isMissing, [], () => readdirSync(directory));
}

/** Returns the paths of temporary files that have reached the age. */
export function listTemporaries(directory: string, ageMs: number): string[] {
  return listNames(directory)
    .filter((name) => name.startsWith(TEMPORARY))
    .map((name) => join(directory, name))
    .filter((path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) <= Date.now() - ageMs);
}

/** Plans a directory, readable for all; no step if it exists. */
export function makeDirectory(path: string): Step[] {
  if (existsSync(path)) return [];
  return [{ text: `create directory ${path}`, run: () => void mkdirSync(path, { recursive: true, mode: 0o755 }) }];
}

/**
 * Plans the removal of a file, or of a directory with everything below; no step if it does not exist. Mount points are
 * emptied and stay, with the directories that they are in.
 */
export function removeFile(path: string): Step[] {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return [];
  return [{ text: `remove ${path}`, run: () => removeTree(path) }];
}

function removeTree(path: string): void {
  const isDirectory = lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isDirectory) for (const name of readdirSync(path)) removeTree(join(path, name));
  try {
    if (isDirectory) rmdirSync(path);
    else rmSync(path, { force: true });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno !== "EBUSY" && !(isDirectory && errno === "ENOTEMPTY")) throw error;
  }
}
