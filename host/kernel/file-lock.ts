/**
 * A lock on a file (flock), which the kernel releases whenever its process ends. The text in the file names the holder,
 * for people.
 * Effects: a file that stays, and a descriptor until the lock is released.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { constants as os } from "node:os";
import { invariant } from "../lib/invariant.ts";
import { loadNative, type Native } from "./native.ts";

/** sys/file.h */
const [LOCK_EX, LOCK_NB] = [2, 4];

export interface FileLock {
  /** Returns whether the path still names the locked file: a lock on a removed file excludes no other process. */
  isInPlace(): boolean;
  /** Releases the lock. The file stays: removing it would break the lock of a process that has opened it meanwhile. */
  release(): void;
}

/** The lock, or the text that its holder has written; "" if there is none. */
type LockOutcome = { readonly lock: FileLock } | { readonly holder: string };

/** Tries once to take the lock. Other processes read `text` while it is held. Throws if the file cannot be opened. */
export function tryLock(path: string, text: string, native: Native = loadNative()): LockOutcome {
  for (;;) {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const result = native.flock(fd, LOCK_EX | LOCK_NB);
    if (result === 0 && leadsTo(path, fd)) {
      sign(fd, text);
      return { lock: { isInPlace: () => leadsTo(path, fd), release: () => unlock(fd) } };
    }
    const holder = result === 0 ? undefined : readFileSync(fd, "utf8").trim();
    closeSync(fd);
    if (holder === undefined) continue; // The file was replaced between opening and locking.
    invariant(result === -os.errno.EWOULDBLOCK, `flock of ${path} failed with ${result}`);
    return { holder };
  }
}

function leadsTo(path: string, fd: number): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd);
  return there !== undefined && there.dev === dev && there.ino === ino;
}

/** Writes the text, which is for people only: the lock holds even if the disk is full. */
function sign(fd: number, text: string): void {
  try {
    ftruncateSync(fd);
    writeSync(fd, `${text}\n`, 0);
  } catch {
    // The lock holds; its text is "".
  }
}

function unlock(fd: number): void {
  try {
    ftruncateSync(fd);
  } finally {
    closeSync(fd);
  }
}
