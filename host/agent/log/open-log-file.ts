/**
 * Opens a file that a tenant has named, below a directory of the node, without following links. Each step opens one
 * name inside an open directory (`/proc/self/fd/N/name`, since Node.js lacks openat(2)) and checks the opened file:
 * nothing can be exchanged between check and use, and only a regular file is opened for writing.
 * Effects: opens, creates, renames and truncates files; creates the log directory itself, but no folder in it.
 */

import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
} from "node:fs";
import { LOG_DIRECTORY } from "../../config/coordinator-conf.ts";
import { describeValue, errnoOf, isMissing } from "../../lib/describe.ts";
import { insteadOf } from "../../lib/try-or.ts";

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

/** asm-generic/fcntl.h: the descriptor serves only for fstat and as a directory. Node.js does not name it. */
const O_PATH = 0o10000000;

const DIRECTORY_MODE = 0o750;
const FILE_MODE = 0o640;

/** A regular file with one name, opened for appending. The caller closes `fd`. */
export interface OpenLogFile {
  readonly fd: number;
  /** The writer updates this and `midLine`. */
  sizeBytes: number;
  /** The file does not end with a line feed. */
  midLine: boolean;
}

/** The path names something that must not be written; `found` is a phrase that begins with the path. */
export class LogPathError extends Error {
  override readonly name = "LogPathError";
  readonly found: string;

  constructor(found: string) {
    super(found);
    this.found = found;
  }
}

/** A path below the log directory; no part is empty, `.` or `..`, or contains a `/`. */
export interface LogPath {
  /** The log directory on this machine. May be a link, since the administrator chooses it. */
  readonly directory: string;
  readonly parts: readonly string[];
}

/** Opens the file, or creates it. Throws {@link LogPathError}, and file system errors. */
export function openLogPath({ directory, parts }: LogPath): OpenLogFile {
  if (mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE }) !== undefined)
    chmodSync(directory, DIRECTORY_MODE);
  return inFolder({ directory, parts }, (folder, name) => openFile(folder, name, shown(parts, parts.length)));
}

/**
 * Renames the file to `.1`, after `.1` to `.2` and so on: `keep` full files remain. Truncates it if it cannot be
 * renamed. `fd` is that file, open.
 */
export function rotateLogFile(path: LogPath, fd: number, keep = 1): void {
  try {
    inFolder(path, (folder, name) => {
      const rename = (from: string, to: string): void =>
        renameSync(`${folder}/${name}${from}`, `${folder}/${name}${to}`);
      for (let number = keep; number > 1; number--)
        insteadOf(isMissing, undefined, () => rename(`.${number - 1}`, `.${number}`));
      rename("", ".1");
    });
  } catch {
    ftruncateSync(fd, 0);
  }
}

/** Returns the first parts of the path as the definition spells them. */
function shown(parts: readonly string[], count: number): string {
  return describeValue(LOG_DIRECTORY + parts.slice(0, count).join("/"));
}

/** Calls `use` with a path of the opened folder itself, whatever its name refers to meanwhile. */
function inFolder<T>({ directory, parts }: LogPath, use: (folder: string, name: string) => T): T {
  let fd = openSync(directory, O_RDONLY | O_DIRECTORY);
  try {
    for (const [index, part] of parts.slice(0, -1).entries()) {
      const next = openPart(`/proc/self/fd/${fd}/${part}`, shown(parts, index + 1));
      closeSync(fd);
      fd = next;
      const stats = fstatSync(fd, { bigint: true });
      if (!stats.isDirectory()) throw new LogPathError(`${shown(parts, index + 1)}, which is ${kindOf(stats)}`);
    }
    return use(`/proc/self/fd/${fd}`, parts.at(-1) ?? "");
  } finally {
    closeSync(fd);
  }
}

function openPart(path: string, text: string): number {
  try {
    return openSync(path, O_PATH | O_NOFOLLOW);
  } catch (error) {
    throw pathError(error, text);
  }
}

function openFile(folder: string, name: string, text: string): OpenLogFile {
  const path = `${folder}/${name}`;
  try {
    const fd = openSync(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
    // The log collector reads the files as the group, whatever the agent's umask is.
    fchmodSync(fd, FILE_MODE);
    return describeOpen(fd, text);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw pathError(error, text);
  }
  const checked = openPart(path, text);
  try {
    requireSole(fstatSync(checked, { bigint: true }), text);
    // The file that was checked: this path of it cannot be exchanged.
    return describeOpen(openSync(`/proc/self/fd/${checked}`, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY), text);
  } finally {
    closeSync(checked);
  }
}

function describeOpen(fd: number, text: string): OpenLogFile {
  try {
    const stats = fstatSync(fd, { bigint: true });
    requireSole(stats, text);
    const sizeBytes = Number(stats.size);
    return { fd, sizeBytes, midLine: sizeBytes > 0 && !endsLine(fd, sizeBytes) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function endsLine(fd: number, sizeBytes: number): boolean {
  const last = Buffer.alloc(1);
  return readSync(fd, last, 0, 1, sizeBytes - 1) === 1 && last.toString() === "\n";
}

function requireSole(stats: BigIntStats, text: string): void {
  if (!stats.isFile()) throw new LogPathError(`${text}, which is ${kindOf(stats)}`);
  if (stats.nlink > 1n) throw new LogPathError(`${text}, which is a file with ${stats.nlink} names (hard links)`);
}

/** Errors that the definition causes become {@link LogPathError}; a full or broken disk does not. */
function pathError(error: unknown, text: string): unknown {
  switch (errnoOf(error)) {
    case "ENOENT":
      return new LogPathError(`${text}, which does not exist`);
    case "ENAMETOOLONG":
      return new LogPathError(`${text}, which has a name that is too long`);
    default:
      return error;
  }
}

function kindOf(stats: BigIntStats): string {
  if (stats.isSymbolicLink()) return "a symbolic link";
  if (stats.isDirectory()) return "a directory";
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSocket()) return "a socket";
  if (stats.isBlockDevice() || stats.isCharacterDevice()) return "a device";
  return "a file";
}
