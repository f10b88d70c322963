/**
 * A file whose only purpose is to be removed: on a full disk a DEL must still be recorded (allocation rule 19).
 * Called by sqlite-batch.ts.
 * Effects: writes and removes the file.
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { RESERVE_BYTES } from "./limits.ts";

export class ReserveFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Makes the file if it is missing and the disk has room for it. True when it is there. */
  ensure(): boolean {
    if (existsSync(this.#path)) return true;
    const temporary = `${this.#path}.tmp`;
    try {
      const descriptor = openSync(temporary, "w", 0o600);
      try {
        // Real bytes, a sparse file would reserve nothing; and all of them, one write may stop where the disk ends.
        writeFileSync(descriptor, Buffer.alloc(RESERVE_BYTES, 0x62));
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
      renameSync(temporary, this.#path);
      return true;
    } catch {
      rmSync(temporary, { force: true });
      return false;
    }
  }

  /** Gives the room back. True when there was any to give. */
  spend(): boolean {
    if (!existsSync(this.#path)) return false;
    rmSync(this.#path, { force: true });
    return true;
  }
}
