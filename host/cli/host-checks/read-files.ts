/** Reads the files of a host that the checks name. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { HostFiles } from "./ini-file.ts";

/** Most bytes of one file that check judges; a larger one counts as empty. */
export const MAX_HOST_FILE_BYTES = 262_144;

/** Symbolic links that are followed, one after the other: as the kernel. */
const MAX_LINKS = 40;

/** Of the kernel and this process, wherever the host's files are. */
const OWN = /^\/(?:proc|sys)\//;

/**
 * Returns what there is of these paths, without the root. The last part of a path may be `*` and an ending: the files of a folder. A folder, a link that
 * leads nowhere and what cannot be read have an empty text.
 */
export function readFiles(root: string, paths: readonly string[]): HostFiles {
  const found = new Map<string, string>();
  for (const path of paths) {
    const base = OWN.test(path) ? "/" : root;
    for (const file of expand(base, path)) {
      const text = readWithin(base, file);
      if (text !== undefined) found.set(file, text);
    }
  }
  return found;
}

function expand(root: string, path: string): string[] {
  const [folder = "", ending] = path.split("/*");
  if (ending === undefined) return [path];
  try {
    return readdirSync(join(root, folder))
      .filter((name) => name.endsWith(ending))
      .map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
}

/** Returns undefined if there is nothing. An absolute link leads to a file below the root. */
function readWithin(root: string, path: string): string | undefined {
  let at = path;
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      const status = lstatSync(join(root, at));
      if (!status.isSymbolicLink())
        return status.isFile() && status.size <= MAX_HOST_FILE_BYTES ? readFileSync(join(root, at), "utf8") : "";
      at = resolve(dirname(at), readlinkSync(join(root, at)));
    }
  } catch {
    return at === path ? undefined : "";
  }
  return "";
}
