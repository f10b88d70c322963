/**
 * Writes one log file asynchronously: a line is queued at once and written when the disk is ready. A full disk, or a
 * file that was moved, removed or replaced by something else, loses lines but fails no pod. Lines may contain text of
 * tenants and are read in terminals, so invisible characters are escaped and lines have a maximum length.
 * Effects: writes the file, reopens it when its name refers to another one, rotates it when it is full.
 */
import { closeSync, write } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { escapeUnprintable } from "../../lib/printable.ts";
import { type LogPath, LogPathError, type OpenLogFile, openLogPath, rotateLogFile } from "./open-log-file.ts";

/**
 * Largest log file that a network definition names: bytes. A full one is renamed to `.1`, which replaces the previous
 * one. @limit
 */
export const LOG_FILE_BYTES = 8 * 1024 * 1024;

/** Most text waiting to be written to one log file: UTF-16 units. Further lines are dropped and counted. */
export const MAX_LOG_BACKLOG = 1024 * 1024;

/** Interval at which a log file's name is checked for rotation: milliseconds. */
export const LOG_RECHECK_MS = 1_000;

const writeBytes = promisify(write);
const LINE_FEED = 0x0a;

interface LogWriterOptions {
  readonly path: LogPath;
  /** The file's name in reports: `the coordinator's log file`. */
  readonly subject: string;
  /** `name` of the lines about lost ones. */
  readonly name: string;
  /** Largest file; default: {@link LOG_FILE_BYTES}. */
  readonly fileBytes?: number;
  /** Number of full files that are kept; default: one. */
  readonly keep?: number;
  /** Time for which lines are gathered before they are written: milliseconds. */
  readonly gatherMs: number;
  /** The agent's own log, which reports once that lines are being lost, and once that they no longer are. */
  readonly log: Log;
  readonly nowMs: () => number;
}

interface Waiting {
  readonly text: string;
  /** Number of lines that are lost with it. */
  readonly count: number;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  #file: OpenLogFile | undefined;
  #checkedMs = Number.NEGATIVE_INFINITY;
  /** Why no file is open, or why the open one may be outdated. */
  #failure: unknown;
  #waiting: Waiting[] = [];
  #waitingLength = 0;
  /** Lines lost since the last queued one. */
  #lost = 0;
  #inTrouble = false;
  #gathering: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;
  /** Number of lines lost since the start. */
  lost = 0;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  /** Throws {@link LogPathError} if the path must not be written. Ignores errors of the disk. */
  require(): void {
    // A write in progress uses the open file and has checked it.
    if (this.#writing === undefined) this.#reopen();
    if (this.#failure instanceof LogPathError) throw this.#failure;
  }

  /** Queues one line with its line feed. */
  write(line: string): void {
    const text = cleanLine(line);
    if (this.#closed || this.#waitingLength + text.length > MAX_LOG_BACKLOG) {
      this.#lost++;
      this.lost++;
      return;
    }
    if (this.#lost > 0) this.#queue({ text: lossLine(this.#options.name, this.#lost), count: this.#lost });
    this.#lost = 0;
    this.#queue({ text, count: 1 });
    if (this.#writing === undefined) this.#gathering ??= setTimeout(() => this.#start(), this.#options.gatherMs);
  }

  #start(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#writing ??= this.#drain();
  }

  #queue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#waitingLength += waiting.text.length;
  }

  /** Resolves when all queued lines are written, or lost. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#start();
    await this.#writing;
    this.#drop();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.splice(0);
      this.#waitingLength = 0;
      try {
        await this.#append(lines);
        this.#reportFailure(undefined);
      } catch (error) {
        const lost = lines.reduce((sum, { count }) => sum + count, 0);
        this.#lost += lost;
        this.lost += lost;
        this.#reportFailure(error);
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

  /** Returns the open file with room for so many bytes. */
  #fileFor(lengthBytes: number): OpenLogFile {
    this.#reopen();
    if (this.#isFull(lengthBytes)) {
      this.#reopen(true); // The name may refer to another file since the last check; only our own is rotated.
      if (this.#file !== undefined && this.#isFull(lengthBytes)) {
        rotateLogFile(this.#options.path, this.#file.fd, this.#options.keep);
        this.#reopen(true);
      }
    }
    if (this.#file === undefined) throw this.#failure;
    return this.#file;
  }

  #isFull(lengthBytes: number): boolean {
    const { fileBytes = LOG_FILE_BYTES } = this.#options;
    const sizeBytes = this.#file?.sizeBytes ?? 0;
    return sizeBytes > 0 && sizeBytes + lengthBytes > fileBytes;
  }

  /** Opens the present file of the name, if the last check was a while ago. If the disk fails, the open one stays. */
  #reopen(now = false): void {
    const nowMs = this.#options.nowMs();
    if (!now && nowMs - this.#checkedMs < LOG_RECHECK_MS) return;
    this.#checkedMs = nowMs;
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

  #reportFailure(failure: unknown): void {
    const { log, path, subject } = this.#options;
    const about = { logFile: path.parts.join("/") };
    if (failure !== undefined && !this.#inTrouble) {
      log.warn({ ...about, problem: messageOf(failure) }, `Writing ${subject} failed; lines are lost`);
    } else if (failure === undefined && this.#inTrouble) {
      log.info(about, `Writing ${subject} works again`);
    }
    this.#inTrouble = failure !== undefined;
  }
}

/** Returns a line that reports missing ones, in the format of the others. */
function lossLine(name: string, count: number): string {
  const msg = `At most ${count} lines before this one are missing`;
  return `${JSON.stringify({ level: "warn", time: new Date().toISOString(), name, msg })}\n`;
}

/** Longest line of a log: UTF-16 units. Texts in a longer one are truncated. */
export const MAX_LOG_LINE = 16 * 1024;

/** Longest text in a line that is too long: UTF-16 units. */
export const MAX_LOG_TEXT = 1024;

/** Returns the line with invisible characters escaped, and with its texts truncated if it is too long. */
function cleanLine(line: string): string {
  const whole = escapeUnprintable(line);
  return whole.length <= MAX_LOG_LINE ? whole : shortenLine(line);
}

function shortenLine(line: string): string {
  const value: unknown = JSON.parse(line);
  const cut = (_key: string, inner: unknown): unknown =>
    typeof inner === "string" && inner.length > MAX_LOG_TEXT ? `${inner.slice(0, MAX_LOG_TEXT)}…` : inner;
  const short = escapeUnprintable(`${JSON.stringify(value, cut)}\n`);
  if (short.length <= MAX_LOG_LINE) return short;
  const { level, time, name } = { ...(typeof value === "object" ? value : {}) } as Readonly<Record<string, unknown>>;
  return `${JSON.stringify({ level, time, name, msg: `A line of ${line.length} characters was dropped` })}\n`;
}
