/**
 * Reads files that another program may have put there: a pipe, a device or an endless file must not block this one.
 * Everything that is read is read here; a house test forbids other ways.
 */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";

/** The file's type or size forbids reading it; retrying does not help. */
export class UnreadableFile extends Error {
  override readonly name = "UnreadableFile";
}

/** Longest file of settings, keys or records that is read: bytes. */
const MAX_TEXT_BYTES = 1_048_576;

/** A file of /proc claims to be empty; the kernel gives at most a page of those that are read. */
const PAGE_BYTES = 4_096;

/** Throws if something else than a socket is at the path of one: it would be replaced. */
export function requireSocketPath(path: string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isSocket())
    throw new Error(`${path} is no socket: it would be replaced; name another path, or move it`);
}

/** Returns the text of a file, as {@link readRegular}. */
export function readText(path: string, maxBytes = MAX_TEXT_BYTES): string {
  return readRegular(path, maxBytes).bytes.toString("utf8");
}

/** Returns the file's bytes, and its stamp from before. Throws UnreadableFile, or the error of the system call. */
export function readRegular(path: string, maxBytes: number): { bytes: Buffer; stats: BigIntStats } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isFile()) throw new UnreadableFile("it is not a regular file");
    if (stats.size > maxBytes) throw new UnreadableFile(`it has ${stats.size} bytes, at most ${maxBytes} are read`);
    const bytes = Buffer.alloc(Number(stats.size) || PAGE_BYTES);
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(fd, bytes, length, bytes.length - length, null);
      if (count === 0) break;
      length += count;
    }
    return { bytes: bytes.subarray(0, length), stats };
  } finally {
    closeSync(fd);
  }
}
