/**
 * Reads the files of a conversion: those that are named, and in directories those whose names tell that they may be
 * input.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../cli/exit-code.ts";
import { messageOf } from "../lib/describe.ts";
import { type InputFile, isInputName } from "./input.ts";

/** Largest file that `berthctl convert` reads: bytes. @limit */
const MAX_INPUT_BYTES = 67_108_864;

/** Most files of one conversion: host-local has one for each address. */
const MAX_INPUT_FILES = 100_000;

export interface InputPath {
  readonly path: string;
  readonly node?: string | undefined;
}

/** Throws UsageError for a path that cannot be read. Links inside directories are not followed. */
export function readInputFiles(paths: readonly InputPath[]): InputFile[] {
  const files = paths.flatMap(({ path, node }) => listFiles(path).map((file) => ({ path: file, node })));
  if (files.length > MAX_INPUT_FILES)
    throw new UsageError(`Found ${files.length} files, want at most ${MAX_INPUT_FILES}`);
  return files.map(({ path, node }) => ({ path, node, text: attempt(path, () => readText(path)) }));
}

function readText(path: string): string {
  const { size } = statSync(path);
  if (size > MAX_INPUT_BYTES) throw new Error(`it has ${size} bytes, want at most ${MAX_INPUT_BYTES}`);
  return readFileSync(path, "utf8");
}

function listFiles(path: string): string[] {
  if (!attempt(path, () => statSync(path)).isDirectory()) return [path];
  const entries = attempt(path, () => readdirSync(path, { withFileTypes: true, recursive: true }));
  return entries
    .filter((entry) => entry.isFile() && isInputName(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function attempt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`File ${JSON.stringify(path)} cannot be read: ${messageOf(error)}`);
  }
}
