/** The facts that identify a build: the same commit gives the same facts. */
import { execFileSync } from "node:child_process";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";
import { readVersion } from "../setup/version.mjs";

/** The page of the project; releases are below it. */
export const HOME = manifest.homepage;

export interface Facts {
  /** The version that the programs in dist report. */
  readonly version: string;
  readonly description: string;
  /** The commit, with `-dirty` if tracked files differ from it. */
  readonly revision: string;
  /** Time of everything in the archives: SOURCE_DATE_EPOCH, else the commit's; seconds since 1970. */
  readonly timeSeconds: number;
}

export function readFacts(): Facts {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const isDirty = git("status", "--porcelain", "--untracked-files=no") !== "";
  return {
    version: readVersion(),
    description: manifest.description,
    revision: `${git("rev-parse", "HEAD")}${isDirty ? "-dirty" : ""}`,
    timeSeconds: Number(process.env.SOURCE_DATE_EPOCH || git("log", "-1", "--format=%ct")),
  };
}
