/**
 * The coordinator's logs, one file per name that definitions give: written by root, named by tenants. JSON, one object per line.
 * Effects: those of the files; see log-path.ts and log-stream.ts.
 */
import pino from "pino";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { LOG_DIRECTORY } from "../../config/coordinator-conf.ts";
import { type CoordinatorConf, DEFAULT_COORDINATOR_CONF, type LogLevel } from "../../config/coordinator-settings.ts";
import { describeValue } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { LogStream } from "./log-writer.ts";
import { LogPathError } from "./open-log-file.ts";

/** Most log files that network definitions name while an agent runs, beside the one that holds without a name. @limit */
export const MAX_LOG_FILES = 16;

export interface PluginLogs {
  /**
   * Throws CniError, code 7, when the file's name leads to something that must not be written. A full or broken disk is no
   * error: lines are lost, and the agent's log says so.
   */
  for(logOptions: CoordinatorConf["logOptions"]): Log;
  /** Resolves when the lines are written. */
  close(): Promise<void>;
}

export interface PluginLogsOptions {
  /** Where `/var/log/vendor/` of the definitions is on this machine; made when it is not there. */
  readonly directory?: string;
  /** The agent's own log. */
  readonly log: Log;
  /** A clock that nobody sets. */
  readonly nowMs: () => number;
}

interface LogFile {
  readonly stream: LogStream;
  /** Two definitions may name one file with two levels. */
  readonly logs: Map<LogLevel, Log>;
}

const DEFAULT_FILE = DEFAULT_COORDINATOR_CONF.logOptions.logFile;

const WANTED = `a file of its own inside ${LOG_DIRECTORY}, in folders that are there, without links`;

export function openPluginLogs({ directory = LOG_DIRECTORY, log, nowMs }: PluginLogsOptions): PluginLogs {
  const files = new Map<string, LogFile>();
  const open = (logFile: string): LogFile => {
    const path = { directory, parts: logFile.slice(LOG_DIRECTORY.length).split("/") };
    return { stream: new LogStream({ path, log, nowMs }), logs: new Map() };
  };
  return {
    for: ({ logFile, logLevel }) => {
      const known = files.get(logFile);
      if (known === undefined) requireRoom(files, logFile);
      const file = known ?? open(logFile);
      requireWritable(file.stream);
      files.set(logFile, file);
      return levelOf(file, logLevel);
    },
    close: async () => {
      await Promise.all([...files.values()].map(({ stream }) => stream.close()));
      files.clear();
    },
  };
}

function requireRoom(files: ReadonlyMap<string, LogFile>, logFile: string): void {
  if (logFile === DEFAULT_FILE) return;
  const named = [...files.keys()].filter((name) => name !== DEFAULT_FILE);
  if (named.length < MAX_LOG_FILES) return;
  throw refusal(
    `${describeValue(logFile)} beside ${named.length} other files`,
    `at most ${MAX_LOG_FILES} names in all definitions of this node; one more counts when the agent starts anew`,
  );
}

function requireWritable(stream: LogStream): void {
  try {
    stream.require();
  } catch (error) {
    throw error instanceof LogPathError ? refusal(error.found, WANTED) : error;
  }
}

function refusal(found: string, wanted: string): CniError {
  return new CniError(ErrorCode.InvalidNetworkConfig, `Field "logOptions.logFile": found ${found}, want ${wanted}`);
}

function levelOf({ stream, logs }: LogFile, level: LogLevel): Log {
  const known = logs.get(level);
  if (known !== undefined) return known;
  const log = pino({ name: "coordinator", level, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  logs.set(level, log);
  return log;
}
