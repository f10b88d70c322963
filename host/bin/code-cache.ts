/** The cache of code that V8 compiled at an earlier start. It runs unchecked, so only this user may have written it. */
import { chmodSync, lstatSync, readdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../lib/describe.ts";

const STICKY = 0o1000;

/**
 * Uses BERTH_CODE_CACHE, also for threads and programs that this one starts. Leaves a directory alone that another user
 * may have written, with a line on stderr; Node.js itself would take any.
 */
export function useCodeCache(program: string): void {
  const named = process.env.BERTH_CODE_CACHE;
  if (named === undefined || named === "") return;
  const directory = resolve(named);
  // Node.js makes a directory in it by the umask.
  process.umask(0o077);
  const why = findObstacle(directory);
  if (why !== undefined) {
    console.error(`${program}: BERTH_CODE_CACHE ${directory} is not used: ${why}`);
    return;
  }
  enableCompileCache(directory);
  process.env.NODE_COMPILE_CACHE = directory;
}

function findObstacle(directory: string): string | undefined {
  try {
    if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() === false) return "it is no directory";
    const foreign = findForeign(directory);
    return foreign && `another user owns or may write ${foreign}`;
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns the first path that another user may have written: above the directory, itself, or below. */
function findForeign(directory: string): string | undefined {
  for (let above = dirname(directory); ; above = dirname(above)) {
    // In a sticky directory others cannot replace our files.
    if (!isOwn(above, [0, process.geteuid?.()]) && !isSticky(above)) return above;
    if (above === dirname(above)) break;
  }
  const status = lstatSync(directory, { throwIfNoEntry: false });
  if (status === undefined) return undefined;
  // An emptyDir is open to all; from here on only its present entries can be another user's.
  const isOpen = status.isDirectory() && status.uid === process.geteuid?.() && (status.mode & 0o022) !== 0;
  if (isOpen && !isSticky(directory)) chmodSync(directory, 0o700);
  const below = readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name));
  return [directory, ...below].find((path) => !isOwn(path, [process.geteuid?.()]));
}

function isOwn(path: string, owners: readonly (number | undefined)[]): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return true;
  const isPlain = status.isFile() || status.isDirectory();
  return isPlain && owners.includes(status.uid) && (status.mode & 0o022) === 0;
}

function isSticky(path: string): boolean {
  const { uid = 1, mode = 0 } = lstatSync(path, { throwIfNoEntry: false }) ?? {};
  return uid === 0 && (mode & STICKY) !== 0;
}
