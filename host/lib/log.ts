/** The log of an executable: one JSON object per line on stderr, through pino. If the reader stalls, lines are dropped and counted; callers never wait. */
import { writeSync } from "node:fs";
import pino from "pino";
import { BoundedLines, type BoundedLinesOptions } from "./bounded-lines.ts";

export type Log = pino.Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** How every log of Berth writes its lines: the time in UTC, the level as a word. */
export const LOG_FORMAT: Pick<pino.LoggerOptions, "timestamp" | "formatters"> = {
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label) => ({ level: label }) },
};

/** Opens the log. `send` writes to stderr without waiting; the default waits. */
export function openLog(name: string, level: LogLevel, send: BoundedLinesOptions["send"] = writeAll): Log {
  const lines = new BoundedLines({
    send,
    onLoss: (lost) => log.warn({ lost }, `${lost} log lines were dropped because the reader was too slow`),
  });
  if (send !== writeAll) process.once("exit", () => lines.flush());
  const log = pino({ name, level, ...LOG_FORMAT }, { write: (line) => lines.write(line) });
  return log;
}

function writeAll(bytes: Uint8Array): number {
  return writeSync(2, bytes);
}
