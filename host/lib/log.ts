/**
 * The log of an executable: one JSON object per line on stderr, through pino. When nobody reads it, lines are lost, and counted; the caller never waits.
 * Called by whoever acts; pure code returns warnings as values instead.
 * Effects: those of `send`.
 */
import { writeSync } from "node:fs";
import pino from "pino";
import { BoundedLines, type BoundedLinesOptions } from "./bounded-lines.ts";

export type Log = pino.Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `send` takes what there is room for on stderr, without waiting; the default waits. */
export function openLog(name: string, level: LogLevel, send: BoundedLinesOptions["send"] = writeAll): Log {
  const lines = new BoundedLines({
    send,
    onLoss: (lost) => log.warn({ lost }, `${lost} lines of this log were lost: they were not read in time`),
  });
  if (send !== writeAll) process.once("exit", () => lines.flush());
  const log = pino({ name, level, timestamp: pino.stdTimeFunctions.isoTime }, { write: (line) => lines.write(line) });
  return log;
}

function writeAll(bytes: Uint8Array): number {
  return writeSync(2, bytes);
}
