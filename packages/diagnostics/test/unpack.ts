import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { requireCommand } from "../../../test/lab/command.ts";

/** Unpacks the bundle beside it, by tar. Returns the files by their paths in its folder. */
export async function unpack(bundle: string): Promise<Map<string, string>> {
  const folder = `${bundle}.d`;
  mkdirSync(folder);
  const names = await requireCommand(["tar", "-xvzf", bundle, "-C", folder]);
  return new Map(
    names
      .trim()
      .split("\n")
      .map((name) => [name.replace(/^[^/]*\//, ""), readFileSync(join(folder, name), "utf8")]),
  );
}
