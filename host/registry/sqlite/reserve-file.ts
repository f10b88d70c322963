/** A file whose only purpose is to be removed, so that a DEL can be recorded on a full disk (full-disk). */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";

/** Room reserved so that a DEL can be recorded on a full disk: bytes. A DEL takes a handful of WAL pages. */
export const RESERVE_BYTES = 1024 * 1024;

export class ReserveFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Creates or completes the file if the disk has room. Returns whether it is complete. */
  ensure(): boolean {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size >= RESERVE_BYTES) return true;
    try {
      fill(this.#path, RESERVE_BYTES - size);
      return true;
    } catch {
      // Keeps only what was there before.
      if (size === 0) rmSync(this.#path, { force: true });
      else truncateSync(this.#path, size);
      return false;
    }
  }

  /** Gives up half of the room, for work that will free more. {@link ensure} completes the file again. */
  lend(): void {
    try {
      truncateSync(this.#path, RESERVE_BYTES / 2);
    } catch {
      // There is no file.
    }
  }

  /** Gives up all of the room. Returns false if there was none. */
  spend(): boolean {
    if (!existsSync(this.#path)) return false;
    rmSync(this.#path, { force: true });
    return true;
  }
}

/** Appends real bytes, as a sparse file would reserve nothing. `writeFileSync` repeats a short write. */
function fill(path: string, bytes: number): void {
  const descriptor = openSync(path, "a", 0o600);
  try {
    writeFileSync(descriptor, Buffer.alloc(bytes, 0x62));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
