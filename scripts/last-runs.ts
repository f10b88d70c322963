/**
 * Results of a run for the next: the files that the gate has last seen green, the progress of the long run, and its
 * last completion.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryOr } from "../host/lib/try-or.ts";
import { root } from "./setup/paths.mjs";

const GREEN = "dist/last-green.json";
const PROGRESS = "dist/long-run.json";
const STAMP = "test/long/last-run.json";

const git = (args: readonly string[], env: NodeJS.ProcessEnv = {}): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", env: { ...process.env, ...env } }).trim();

/** The files of the work tree that are tracked or would be, with uncommitted changes. */
export interface Tree {
  /** Git's hash of them, which git also keeps them by for two weeks. */
  readonly hash: string;
  /** The commit, for people. */
  readonly name: string;
}

export function readTree(): Tree {
  using place = mkdtempDisposableSync(join(tmpdir(), "berth-tree-"));
  const env = { GIT_INDEX_FILE: join(place.path, "index") };
  // Not the stamp: it changes when a run ends.
  const files = ["--", ".", `:!${STAMP}`];
  git(["add", "--all", ...files], env);
  const changes = git(["status", "--porcelain", ...files]);
  const commit = git(["rev-parse", "--short", "HEAD"]);
  return { hash: git(["write-tree"], env), name: changes === "" ? commit : `${commit} with changes` };
}

/** Returns the paths that differ; undefined if git no longer knows the earlier tree. */
export function readChanged(earlier: Tree, now: Tree): string[] | undefined {
  return tryOr(() => git(["diff-tree", "-r", "-z", "--name-only", earlier.hash, now.hash]).split("\0"), undefined);
}

function readFile<T>(name: string): T | undefined {
  const path = join(root, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

const writeFile = (name: string, value: unknown): void =>
  writeFileSync(join(root, name), `${JSON.stringify(value, undefined, 2)}\n`);

export const readGreen = (): Tree | undefined => readFile(GREEN);
export const writeGreen = (tree: Tree): void => writeFile(GREEN, tree);

/** Returns the results of a long run of the same files, by name. It continues with these. */
export function readProgress<Result>(tree: Tree): Record<string, Result> {
  const saved = readFile<{ readonly tree: Tree; readonly results: Record<string, Result> }>(PROGRESS);
  return saved?.tree.hash === tree.hash ? saved.results : {};
}

export const writeProgress = (tree: Tree, results: Record<string, unknown>): void =>
  writeFile(PROGRESS, { tree, results });

/** Remembers a long run that came to its end. The file is committed. */
export const writeStamp = (tree: Tree, result: string): void =>
  writeFile(STAMP, { commit: tree.name, day: new Date().toISOString().slice(0, 10), result });

/** Returns the age of the stamp. A rebase may lose the commit that it names, never the one that brought it. */
export function readStamp(): { readonly commits: number; readonly text: string } {
  const { day, result } = readFile<{ readonly day?: string; readonly result?: string }>(STAMP) ?? {};
  const commits = Number(git(["rev-list", "--count", `${git(["log", "-1", "--format=%H", "--", STAMP])}..HEAD`]));
  if (day === undefined) return { commits, text: `never, for ${commits} commits` };
  const days = Math.floor((Date.now() - Date.parse(day)) / 86_400_000);
  return { commits, text: `last on ${day}: ${result}, ${commits} commits and ${days} days ago` };
}
