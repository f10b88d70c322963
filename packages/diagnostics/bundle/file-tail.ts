/** The end of a file, of bounded size whatever the whole has. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Returns the file's last `maxBytes`. Only regular files are read. Throws file system errors. */
export function fileTail(path: string, maxBytes: number): { readonly text: string; readonly wholeBytes: number } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new TypeError(`${path} is no regular file`);
    const start = Math.max(0, stats.size - maxBytes);
    const buffer = Buffer.alloc(stats.size - start);
    const length = readSync(fd, buffer, 0, buffer.length, start);
    return { text: wholeLines(buffer.subarray(0, length), start > 0).toString(), wholeBytes: stats.size };
  } finally {
    closeSync(fd);
  }
}

/** Returns the text from its first whole line on, if it was cut: half a line may be half a secret. */
export function wholeLines(content: Buffer, isCut: boolean): Buffer {
  return isCut ? content.subarray(content.indexOf("\n") + 1) : content;
}
