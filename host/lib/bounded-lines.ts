/**
 * Lines to a reader that may stop reading: what cannot be taken at once waits, up to a limit; what comes then is lost, and counted.
 * Effects: a timer while something waits; those of `send`.
 */

/** Most of an executable's log that waits for its reader: bytes. What comes while so much waits is lost, and counted. @limit */
export const MAX_UNREAD_LOG_BYTES = 1024 * 1024;

/** How often a reader that has stopped is tried again: milliseconds. @limit */
export const LOG_RETRY_MS = 100;

export interface BoundedLinesOptions {
  /** Takes as many of the bytes as there is room for, and returns how many; 0 when there is none. Throws when nobody can ever read them. */
  readonly send: (bytes: Uint8Array) => number;
  /** The reader is back: so many lines were lost. Called when nothing waits any more. */
  readonly onLoss: (lines: number) => void;
}

export class BoundedLines {
  readonly #options: BoundedLinesOptions;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lost = 0;
  /** What was sent last could not be read by anybody. */
  #isBroken = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: BoundedLinesOptions) {
    this.#options = options;
  }

  /** Takes one line with its line feed. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_UNREAD_LOG_BYTES && this.#waiting.length > 0) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#timer === undefined) this.flush();
  }

  /** Sends what there is room for. Called at the end of the process, too: nothing waits for the timer then. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sendWaiting();
    if (this.#waiting.length > 0) {
      this.#timer = setTimeout(() => this.flush(), LOG_RETRY_MS).unref();
      return;
    }
    if (this.#lost === 0 || this.#isBroken) return;
    const lost = this.#lost;
    this.#lost = 0;
    this.#options.onLoss(lost);
  }

  #sendWaiting(): void {
    let sent = 0;
    for (const bytes of this.#waiting) {
      const taken = this.#send(bytes);
      this.#waitingBytes -= taken;
      if (taken < bytes.length) {
        // The rest of a line that was begun goes first: the next one would continue it.
        this.#waiting = [bytes.subarray(taken), ...this.#waiting.slice(sent + 1)];
        return;
      }
      sent += 1;
    }
    this.#waiting = [];
  }

  /** What can never be read counts as taken: to keep it would keep back what comes after it. */
  #send(bytes: Uint8Array): number {
    try {
      const taken = this.#options.send(bytes);
      this.#isBroken = false;
      return taken;
    } catch {
      this.#lost += 1;
      this.#isBroken = true;
      return bytes.length;
    }
  }
}
