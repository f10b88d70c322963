/** Writes a plan into a directory. Files of an earlier conversion that the plan no longer has are removed. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import { UsageError } from "../cli/exit-code.ts";
import { errnoOf, messageOf } from "../lib/describe.ts";
import type { OutputFile } from "./output.ts";

/** Lists what the conversion wrote, so that the next one knows what is its own. */
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
  try {
    return listSchema.safeParse(JSON.parse(readFileSync(join(directory, LIST), "utf8"))).data?.files ?? [];
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}
