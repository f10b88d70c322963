/**
 * A file whose only purpose is to be removed: on a full disk a DEL must still be recorded (allocation rule 19).
 * Effects: writes and removes the file.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";

/** Room kept back so that a DEL can be recorded on a full disk: bytes. A handful of WAL pages per DEL. @limit */
export const RESERVE_BYTES = 1024 * 1024;

export class ReserveFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Makes the file, or makes it whole, if the disk has room for that. True when it is whole. */
  ensure(): boolean {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    return size >= RESERVE_BYTES || (size === 0 ? this.#make() : this.#extend(size));
  }

  /** Gives half of the room back, for work that gives back more. {@link ensure} makes the file whole. */
  lend(): void {
    try {
      truncateSync(this.#path, RESERVE_BYTES / 2);
    } catch {
      // Not there: nothing to give.
    }
  }

  /** Gives the room back. True when there was any to give. */
  spend(): boolean {
    if (!existsSync(this.#path)) return false;
    rmSync(this.#path, { force: true });
    return true;
  }

  #make(): boolean {
    const temporary = `${this.#path}.tmp`;
    try {
      fill(temporary, "w", RESERVE_BYTES);
      renameSync(temporary, this.#path);
      return true;
    } catch {
      rmSync(temporary, { force: true });
      return false;
    }
  }

  /** What is there stays, whether the rest finds room or not. */
  #extend(size: number): boolean {
    try {
      fill(this.#path, "a", RESERVE_BYTES - size);
      return true;
    } catch {
      truncateSync(this.#path, size);
      return false;
    }
  }
}

/** Real bytes, a sparse file would reserve nothing; and all of them, one write may stop where the disk ends. */
function fill(path: string, flags: "a" | "w", bytes: number): void {
  const descriptor = openSync(path, flags, 0o600);
  try {
    writeFileSync(descriptor, Buffer.alloc(bytes, 0x62));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
