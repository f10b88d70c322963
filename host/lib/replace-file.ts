/** Replaces a file that others read at any moment, or execute. */
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

interface Replacement {
  readonly content: Uint8Array | string;
  /** Independent of the umask. */
  readonly mode: number;
  /** Path in the same directory, which must not exist yet. A crash may leave this file. */
  readonly temporary: string;
}

/**
 * Creates or replaces the file by rename: readers, and a crash or power loss, find the old content or the new one. A
 * program that is being executed goes on with its old content. Rejects with the file system's error, with nothing
 * changed before the rename.
 */
export async function replaceFile(path: string, { content, mode, temporary }: Replacement): Promise<void> {
  const file = await open(temporary, "wx", 0o600);
  try {
    try {
      await file.writeFile(content);
      await file.chmod(mode);
      await file.sync();
    } finally {
      // Before the rename: a program that is still open for writing cannot be executed (ETXTBSY).
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await using directory = await open(dirname(path));
  await directory.sync();
}
