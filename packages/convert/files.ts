/**
 * The files of a conversion. Reads those that are named, and in directories those whose names tell that they may be
 * input; writes a plan into a directory, and removes files of an earlier conversion that the plan no longer has.
 */

import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import { UsageError } from "../../host/cli/exit-code.ts";
import { errnoOf, messageOf } from "../../host/lib/describe.ts";
import { readText } from "../../host/lib/regular-file.ts";
import { insteadOf } from "../../host/lib/try-or.ts";
import { type InputFile, isInputName } from "./input.ts";
import type { OutputFile } from "./output.ts";

/** Largest file that `berthctl convert` reads: bytes. @limit */
const MAX_INPUT_BYTES = 67_108_864;

/** Most files of one conversion: host-local has one for each address. */
const MAX_INPUT_FILES = 100_000;

interface InputPath {
  readonly path: string;
  readonly node?: string | undefined;
}

/** Throws UsageError for a path that cannot be read. Links inside directories are not followed. */
export function readInputFiles(paths: readonly InputPath[]): InputFile[] {
  const files = paths.flatMap(({ path, node }) => listFiles(path).map((file) => ({ path: file, node })));
  if (files.length > MAX_INPUT_FILES)
    throw new UsageError(`Found ${files.length} files, want at most ${MAX_INPUT_FILES}`);
  return files.map(({ path, node }) => ({ path, node, text: attempt(path, () => readText(path, MAX_INPUT_BYTES)) }));
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

/** Lists the files of the conversion, so that the next one recognises its own. */
const LIST = ".berth-convert.json";

const listSchema = z.object({ files: z.array(z.string().regex(/^(?!.*(?:^|\/)\.\.(?:\/|$))[^/\0][^\0]*$/)) });

/** Throws UsageError if the directory cannot be written. */
export function writeFiles(directory: string, files: readonly OutputFile[]): void {
  try {
    const paths = files.map(({ path }) => path);
    mkdirSync(directory, { recursive: true });
    for (const path of readList(directory)) if (!paths.includes(path)) rmSync(join(directory, path), { force: true });
    writeFileSync(join(directory, LIST), `${JSON.stringify({ files: paths }, undefined, 2)}\n`);
    for (const { path, text } of files) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    }
  } catch (error) {
    throw new UsageError(`Option --out: ${messageOf(error)}`);
  }
}

function readList(directory: string): readonly string[] {
  const isAbsent = (error: unknown): boolean => errnoOf(error) === "ENOENT" || error instanceof SyntaxError;
  const read = (): unknown => JSON.parse(readText(join(directory, LIST), MAX_INPUT_BYTES));
  return listSchema.safeParse(insteadOf(isAbsent, undefined, read)).data?.files ?? [];
}
