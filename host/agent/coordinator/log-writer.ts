/**
 * One log file, written behind the request: a line is taken at once and written when the disk is ready. A full disk, a file
 * that was moved or removed, and a file that has become something else cost lines, never a pod.
 * Effects: writes the file, reopens it when another has its name, retires it when it is full.
 */
import { closeSync, write } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { type LogPath, LogPathError, type OpenLogFile, openLogPath, retireLogFile } from "./open-log-file.ts";

/** Largest log file that a network definition names: bytes. A full one becomes `.1`, which replaces the one before. Definitions are written by tenants, the disk is the node's. @limit */
export const LOG_FILE_BYTES = 8 * 1024 * 1024;

/** Most that waits to be written into one log file: UTF-16 units. What comes while so much waits is lost, and counted. @limit */
export const MAX_LOG_BACKLOG = 1024 * 1024;

/** How often a log file that is written is looked for under its name, where logrotate may have put another: milliseconds. @limit */
export const LOG_RECHECK_MS = 1_000;

const writeBytes = promisify(write);
const LINE_FEED = 0x0a;

export interface LogStreamOptions {
  readonly path: LogPath;
  /** The agent's own log: told once when lines begin to be lost, and once when they no longer are. */
  readonly log: Log;
  readonly nowMs: () => number;
}

interface Waiting {
  readonly text: string;
  /** How many lines are lost with it. */
  readonly count: number;
}

export class LogStream {
  readonly #options: LogStreamOptions;
  #file: OpenLogFile | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Why there is no file, or why it may be the wrong one. */
  #failure: unknown;
  #waiting: Waiting[] = [];
  #waitingLength = 0;
  /** Lines that were lost since the last that was taken. */
  #lost = 0;
  #inTrouble = false;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(options: LogStreamOptions) {
    this.#options = options;
  }

  /** Throws {@link LogPathError} when the name leads to what must not be written. A disk that fails is no reason. */
  require(): void {
    // A write under way uses the open file and has looked itself.
    if (this.#writing === undefined) this.#look();
    if (this.#failure instanceof LogPathError) throw this.#failure;
  }

  /** Takes one line with its line feed. */
  write(line: string): void {
    const text = cleanLine(line);
    if (this.#closed || this.#waitingLength + text.length > MAX_LOG_BACKLOG) {
      this.#lost++;
      return;
    }
    if (this.#lost > 0) this.#take({ text: lossLine(this.#lost), count: this.#lost });
    this.#lost = 0;
    this.#take({ text, count: 1 });
    this.#writing ??= this.#drain();
  }

  #take(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#waitingLength += waiting.text.length;
  }

  /** Resolves when all that was taken is written, or lost. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    this.#drop();
  }

  async #drain(): Promise<void> {
    // What one turn of the event loop logs is one write.
    await setImmediate();
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.splice(0);
      this.#waitingLength = 0;
      try {
        await this.#append(lines);
        this.#tell(undefined);
      } catch (error) {
        this.#lost += lines.reduce((sum, { count }) => sum + count, 0);
        this.#tell(error);
      }
    }
    this.#writing = undefined;
  }

  async #append(lines: readonly Waiting[]): Promise<void> {
    const bytes = Buffer.from(lines.map(({ text }) => text).join(""));
    const file = this.#fileFor(bytes.length + 1);
    const text = file.midLine ? Buffer.concat([Buffer.of(LINE_FEED), bytes]) : bytes;
    for (let done = 0; done < text.length; ) {
      const { bytesWritten } = await writeBytes(file.fd, text, done, text.length - done, null);
      done += bytesWritten;
      file.sizeBytes += bytesWritten;
      file.midLine = text[done - 1] !== LINE_FEED;
    }
  }

  /** The open file with room for so many bytes. */
  #fileFor(lengthBytes: number): OpenLogFile {
    this.#look();
    if (this.#isFull(lengthBytes)) {
      this.#look(true); // Another may have the name since the last look; only ours is to be retired.
      if (this.#file !== undefined && this.#isFull(lengthBytes)) {
        retireLogFile(this.#options.path, this.#file.fd);
        this.#look(true);
      }
    }
    if (this.#file === undefined) throw this.#failure;
    return this.#file;
  }

  #isFull(lengthBytes: number): boolean {
    const sizeBytes = this.#file?.sizeBytes ?? 0;
    return sizeBytes > 0 && sizeBytes + lengthBytes > LOG_FILE_BYTES;
  }

  /** Opens what has the name now, when the last look is a while ago. A disk that fails leaves the file that is open. */
  #look(now = false): void {
    const nowMs = this.#options.nowMs();
    if (!now && nowMs - this.#lookedMs < LOG_RECHECK_MS) return;
    this.#lookedMs = nowMs;
    try {
      const file = openLogPath(this.#options.path);
      this.#drop();
      this.#file = file;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
      if (error instanceof LogPathError) this.#drop();
    }
  }

  #drop(): void {
    if (this.#file !== undefined) closeSync(this.#file.fd);
    this.#file = undefined;
  }

  #tell(failure: unknown): void {
    const { log, path } = this.#options;
    const about = { logFile: path.parts.join("/") };
    if (failure !== undefined && !this.#inTrouble) {
      log.warn(
        { ...about, problem: messageOf(failure) },
        "A log file of the coordinator cannot be written; lines are lost",
      );
    } else if (failure === undefined && this.#inTrouble) {
      log.info(about, "The coordinator's log file is written again");
    }
    this.#inTrouble = failure !== undefined;
  }
}

/** What stands after missing lines, in the form of the others. */
function lossLine(count: number): string {
  const msg = `Lines are missing before this one: ${count} at most`;
  return `${JSON.stringify({ level: 40, time: new Date().toISOString(), name: "coordinator", msg })}\n`;
}

/** Longest line of such a log: UTF-16 units. In a longer one the texts are cut. @limit */
export const MAX_LOG_LINE = 16 * 1024;

/** Longest text in a line that is too long: UTF-16 units. @limit */
export const MAX_LOG_TEXT = 1024;

/** What JSON lets through and a terminal obeys or hides: C1 controls, DEL, separators, directions, zero widths. */
const UNSEEN = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu;

/** The line with all that is invisible escaped, and with its texts cut when it is too long. */
export function cleanLine(line: string): string {
  const whole = line.replace(UNSEEN, escapeUnits);
  return whole.length <= MAX_LOG_LINE ? whole : shortenLine(line);
}

/** As JSON escapes: both halves of what has two. */
function escapeUnits(text: string): string {
  return text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

function shortenLine(line: string): string {
  const value: unknown = JSON.parse(line);
  const cut = (_key: string, inner: unknown): unknown =>
    typeof inner === "string" && inner.length > MAX_LOG_TEXT ? `${inner.slice(0, MAX_LOG_TEXT)}…` : inner;
  const short = `${JSON.stringify(value, cut)}\n`.replace(UNSEEN, escapeUnits);
  if (short.length <= MAX_LOG_LINE) return short;
  const { level, time, name } = { ...(typeof value === "object" ? value : {}) } as Readonly<Record<string, unknown>>;
  return `${JSON.stringify({ level, time, name, msg: `A line of ${line.length} characters is left out` })}\n`;
}
