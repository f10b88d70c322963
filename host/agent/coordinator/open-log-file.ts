/**
 * Opening a file that a tenant has named, below a directory that is the node's, so that no link leads elsewhere.
 * Each step opens one name inside what is open already (`/proc/self/fd/N/name`, which Node.js has for openat(2)) and looks
 * at what it opened: nothing can be exchanged between the look and the use, and nothing but a regular file is opened to be written.
 * Effects: opens, creates, renames and cuts files; makes the log directory itself, no folder in it.
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
import { describeValue, errnoOf } from "../../lib/describe.ts";

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

/** asm-generic/fcntl.h: what is opened can be looked at and gone through, no more. Node.js does not name it. */
const O_PATH = 0o10000000;

const DIRECTORY_MODE = 0o750;
const FILE_MODE = 0o640;

/** A regular file with one name, opened for appending. The caller closes `fd`. */
export interface OpenLogFile {
  readonly fd: number;
  /** Whoever writes keeps these two. */
  sizeBytes: number;
  /** Somebody stopped in the middle of a line. */
  midLine: boolean;
}

/** The name leads to something that must not be written; `found` is a phrase that begins with its path. */
export class LogPathError extends Error {
  override readonly name = "LogPathError";
  readonly found: string;

  constructor(found: string) {
    super(found);
    this.found = found;
  }
}

/** What a path below the log directory is made of; none of `parts` is empty, `.` or `..`, or has a `/`. */
export interface LogPath {
  /** Where the log directory is on this machine. May be a link: it is the node's own. */
  readonly directory: string;
  readonly parts: readonly string[];
}

/** Makes the file when it is not there. Throws {@link LogPathError}; and the system's errors when the disk will not have it. */
export function openLogPath({ directory, parts }: LogPath): OpenLogFile {
  if (mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE }) !== undefined)
    chmodSync(directory, DIRECTORY_MODE);
  return inFolder({ directory, parts }, (folder, name) => openFile(folder, name, shown(parts, parts.length)));
}

/** Renames the file to `.1`, over the one before; cuts it when that cannot be. `fd` is that file, open. */
export function retireLogFile(path: LogPath, fd: number): void {
  try {
    inFolder(path, (folder, name) => renameSync(`${folder}/${name}`, `${folder}/${name}.1`));
  } catch {
    ftruncateSync(fd, 0);
  }
}

/** The first parts of the path as the definition spells them. */
function shown(parts: readonly string[], count: number): string {
  return describeValue(LOG_DIRECTORY + parts.slice(0, count).join("/"));
}

/** Calls `use` with a path that is the opened folder itself, whatever the names lead to meanwhile. */
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
    // Whoever collects logs reads them as the group, whatever the agent's mask is.
    fchmodSync(fd, FILE_MODE);
    return describeOpen(fd, text);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw pathError(error, text);
  }
  const looked = openPart(path, text);
  try {
    requireSole(fstatSync(looked, { bigint: true }), text);
    // The very file that was looked at: this name of it cannot be exchanged.
    return describeOpen(openSync(`/proc/self/fd/${looked}`, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY), text);
  } finally {
    closeSync(looked);
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

/** What a definition can be blamed for becomes a {@link LogPathError}; a full or broken disk stays what it is. */
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
