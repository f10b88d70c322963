/**
 * The agent's log: one JSON object per line on stderr, through pino.
 * Called by whoever acts; pure code returns warnings as values instead.
 * Effects: writes to stderr.
 */
import pino from "pino";

export type Log = pino.Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function openLog(name: string, level: LogLevel): Log {
  return pino({ name, level, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 2, sync: true }));
}
