/**
 * A lock on a file (flock): the kernel frees it when its process ends, however that ends. The file's text says who holds it, for people.
 * Effects: a file that stays, and a descriptor until the lock is released.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { constants as os } from "node:os";
import { invariant } from "../lib/invariant.ts";
import { loadNative, type Native } from "./native.ts";

/** sys/file.h */
const [LOCK_EX, LOCK_NB] = [2, 4];

export interface FileLock {
  /** Whether the path still leads to the file that is locked: a lock on a file that was removed keeps nothing away. */
  isInPlace(): boolean;
  /** The file stays: to remove it would take away the lock of whichever process opened it in the meantime. */
  release(): void;
}

/** The lock, or the text of the process that holds it; "" when it has left none. */
export type LockOutcome = { readonly lock: FileLock } | { readonly holder: string };

/** Tries once. `text` is what others are told while the lock is held. Throws when the file cannot be opened. */
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

/** For people only: a full disk takes nothing from the lock. */
function sign(fd: number, text: string): void {
  try {
    ftruncateSync(fd);
    writeSync(fd, `${text}\n`, 0);
  } catch {
    // The lock holds, and says of its holder "".
  }
}

function unlock(fd: number): void {
  try {
    ftruncateSync(fd);
  } finally {
    closeSync(fd);
  }
}
