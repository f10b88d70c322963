/**
 * Tells by one system call whether a directory may have changed since the last read of it: the kernel notes each change
 * in an inotify instance before the call that made it returns (inotify(7)). So nothing is waited for, and no change is
 * missed that was complete before the question.
 * Effects: one inotify instance for the process, with a watch per directory.
 */
import { EAGAIN } from "./errno.ts";
import { loadNative, type Native } from "./native.ts";

/** sys/inotify.h */
const IN_NONBLOCK = 0o4000;
const IN_CLOEXEC = 0o2000000;
const [IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO] = [0x2, 0x4, 0x40, 0x80];
const [IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF] = [0x100, 0x200, 0x400, 0x800];
const [IN_IGNORED, IN_ONLYDIR] = [0x8000, 0x1000000];
const CHANGES =
  IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;

/**
 * Longest time between two reads of a directory without a notice: milliseconds. The kernel gives no notice if another
 * directory is mounted at the path, a parent is renamed, or a file changes under another of its names.
 */
export const LOOK_ANYWAY_MS = 1_000;

/** Bytes before the name in struct inotify_event: wd, mask, cookie, len. */
const EVENT_BYTES = 16;

/** An inotify instance, and the watches with unread notices. */
class Instance {
  readonly #native: Native;
  readonly #fd: number;
  readonly #events = Buffer.allocUnsafeSlow(4_096);
  readonly #askers = new Map<number, Set<DirectoryNotices>>();

  /** If the kernel's limit of instances is reached, nothing is watched. */
  constructor(native: Native) {
    this.#native = native;
    this.#fd = native.inotifyInit(IN_NONBLOCK | IN_CLOEXEC);
  }

  /** Watches the directory now at the path. Returns the number of the watch; undefined if that is impossible. */
  watch(path: string, asker: DirectoryNotices): number | undefined {
    if (this.#fd < 0) return undefined;
    // Earlier changes are not reported for this watch.
    this.read();
    const watch = this.#native.inotifyAddWatch(this.#fd, path, CHANGES | IN_ONLYDIR);
    if (watch < 0) return undefined;
    this.#askers.getOrInsertComputed(watch, () => new Set()).add(asker);
    return watch;
  }

  /** Reports all pending notices to their askers. */
  read(): void {
    for (;;) {
      const length = this.#native.read(this.#fd, this.#events);
      if (length === -EAGAIN) return;
      if (length <= 0) {
        this.#tellAll();
        return;
      }
      for (let at = 0; at < length; at += EVENT_BYTES + this.#events.readUInt32LE(at + 12)) {
        const watch = this.#events.readInt32LE(at);
        const askers = this.#askers.get(watch);
        // IN_Q_OVERFLOW names no watch.
        if (askers === undefined) this.#tellAll();
        else for (const asker of askers) asker.noticed();
        // The directory is gone.
        if ((this.#events.readUInt32LE(at + 4) & IN_IGNORED) !== 0) this.#askers.delete(watch);
      }
    }
  }

  #tellAll(): void {
    for (const askers of this.#askers.values()) for (const asker of askers) asker.noticed();
  }
}

let instance: Instance | undefined;

interface DirectoryNoticesOptions {
  readonly nowMs?: () => number;
  /** Infinite for a caller that reads the directory at intervals itself. */
  readonly lookAnywayMs?: number;
}

export class DirectoryNotices {
  readonly #path: string;
  readonly #instance: Instance;
  readonly #nowMs: () => number;
  readonly #lookAnywayMs: number;
  #watch: number | undefined;
  #isNoticed = true;
  #askedMs = 0;

  constructor(path: string, options: DirectoryNoticesOptions = {}) {
    this.#path = path;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#lookAnywayMs = options.lookAnywayMs ?? LOOK_ANYWAY_MS;
    instance ??= new Instance(loadNative());
    this.#instance = instance;
  }

  /**
   * Returns false if nothing was made, written, renamed or removed in the directory since the previous call. After true
   * the caller reads the directory; a change meanwhile makes the next call return true.
   */
  mayHaveChanged(): boolean {
    if (this.#watch !== undefined) this.#instance.read();
    const nowMs = this.#nowMs();
    if (!this.#isNoticed && this.#watch !== undefined && nowMs - this.#askedMs < this.#lookAnywayMs) return false;
    this.#askedMs = nowMs;
    this.#isNoticed = false;
    // The path may lead to another directory by now.
    this.#watch = this.#instance.watch(this.#path, this);
    return true;
  }

  noticed(): void {
    this.#isNoticed = true;
  }
}
