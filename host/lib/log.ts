/**
 * The log of an executable: one JSON object per line on stderr, through pino. If the reader stalls, lines are dropped
 * and counted; callers never wait.
 */

import { writeSync } from "node:fs";
import pino from "pino";
import { printable } from "./printable.ts";

export type Log = pino.Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `json`: for programs. `text`: for a person in the foreground. */
export const LOG_FORMATS = ["json", "text"] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

interface LogOutput {
  /** Writes to stderr without waiting; the default waits. */
  readonly send?: BoundedLinesOptions["send"];
  /** Default: `json`. */
  readonly format?: LogFormat;
}

/** The format of all log lines of Berth: the time in UTC, the level as a word. */
export const LOG_FORMAT: Pick<pino.LoggerOptions, "timestamp" | "formatters"> = {
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label) => ({ level: label }) },
};

/** Opens the log. */
export function openLog(name: string, level: LogLevel, { send = writeAll, format = "json" }: LogOutput = {}): Log {
  const lines = new BoundedLines({
    send,
    onLoss: (lost) => log.warn({ lost }, `${lost} log lines were dropped because the reader was too slow`),
  });
  if (send !== writeAll) process.once("exit", () => lines.flush());
  const write = format === "json" ? lines.write.bind(lines) : (line: string) => lines.write(formatLine(line));
  const log = pino({ name, level, ...LOG_FORMAT }, { write });
  return log;
}

/**
 * Returns a line of the log for a person: `2026-01-31T14:02:00.000Z INFO  Started server=https://…`. The stack of an
 * error follows on lines of its own.
 */
export function formatLine(line: string): string {
  const { time, level, pid: _, hostname: __, name: ___, msg = "", err, ...fields } = JSON.parse(line);
  const { message = err, stack = "", type: ____, ...more } = typeof err === "object" && err !== null ? err : {};
  const cause = message === undefined ? {} : { err: message };
  const words = Object.entries({ ...fields, ...cause, ...more }).map(([key, value]) => `${key}=${wordOf(value)}`);
  const head = [time, String(level).toUpperCase().padEnd(5), msg, ...words].join(" ");
  const frames = String(stack).split("\n").slice(1);
  return [head, ...frames].map((each) => `${printable(each)}\n`).join("");
}

function wordOf(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function writeAll(bytes: Uint8Array): number {
  return writeSync(2, bytes);
}

/** Most bytes of an executable's log that wait for a stalled reader. Lines beyond are dropped and counted. */
export const MAX_UNREAD_LOG_BYTES = 1024 * 1024;

/** Interval of retries while the reader is stalled: milliseconds. */
export const LOG_RETRY_MS = 100;

interface BoundedLinesOptions {
  /** Writes as many bytes as possible without waiting and returns their number. Throws if the reader is gone. */
  readonly send: (bytes: Uint8Array) => number;
  /** Called with the number of dropped lines once the reader has caught up. */
  readonly onLoss: (lines: number) => void;
}

/** Buffers lines for a reader that may stall, up to a limit. Lines beyond it are dropped and counted. */
export class BoundedLines {
  readonly #options: BoundedLinesOptions;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lost = 0;
  /** The last call of `send` failed: the reader is gone. */
  #isBroken = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: BoundedLinesOptions) {
    this.#options = options;
  }

  /** Sends or buffers one line, which ends with a line feed. */
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

  /** Sends as much as possible now; also for the end of the process, when no timer fires any more. */
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
        // The rest of a partly sent line goes first, else the next line would continue it.
        this.#waiting = [bytes.subarray(taken), ...this.#waiting.slice(sent + 1)];
        return;
      }
      sent += 1;
    }
    this.#waiting = [];
  }

  /** Returns how many bytes were taken: all of them if the reader is gone, so that they do not block later lines. */
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
