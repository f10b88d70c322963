/**
 * The coordinator's log files, which network definitions name and root writes; JSON, one object per line.
 * Effects: those of host/agent/log.
 */
import pino from "pino";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { LOG_DIRECTORY } from "../../config/coordinator-conf.ts";
import { type CoordinatorConf, DEFAULT_COORDINATOR_CONF, type LogLevel } from "../../config/coordinator-settings.ts";
import { describeValue } from "../../lib/describe.ts";
import { LOG_FORMAT, type Log } from "../../lib/log.ts";
import { AUDIT_FILE } from "../log/audit-log.ts";
import { LogWriter } from "../log/log-writer.ts";
import { LogPathError } from "../log/open-log-file.ts";

/**
 * Most log files that tenants' network definitions name during an agent's life. Lines for more go to the default.
 * @limit
 */
export const MAX_LOG_FILES = 16;

/** Time for which lines of these files are gathered before they are written: milliseconds. `kill -9` loses them. */
const PLUGIN_LOG_DELAY_MS = 250;

export interface PluginLogs {
  /**
   * Returns the log for these options. Throws CniError 7 if the file must not be written. A full or broken disk is no
   * error: lines are lost, and the agent's log reports it.
   */
  for(logOptions: CoordinatorConf["logOptions"]): Log;
  /** Resolves when all lines are written. */
  close(): Promise<void>;
}

interface PluginLogsOptions {
  /** Whether a definition of an administrator, or the resource Coordinator, names the file; such do not count. */
  readonly isAdministrators: (logFile: string) => boolean;
  /** Directory that stands for `/var/log/vendor/` of the definitions on this machine; created if missing. */
  readonly directory?: string;
  /** The agent's own log. */
  readonly log: Log;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

interface LogFile {
  readonly stream: LogWriter;
  /** One log per level: two definitions may name one file with different levels. */
  readonly logs: Map<LogLevel, Log>;
}

const DEFAULT_FILE = DEFAULT_COORDINATOR_CONF.logOptions.logFile;

const WANTED = `a regular file below ${LOG_DIRECTORY}, in existing folders, without links`;

export function openPluginLogs(options: PluginLogsOptions): PluginLogs {
  const { directory = LOG_DIRECTORY, isAdministrators, log, nowMs } = options;
  const files = new Map<string, LogFile>();
  /** Number of those that tenants name. */
  let named = 0;
  let isReported = false;
  const isCounted = (logFile: string): boolean =>
    logFile !== DEFAULT_FILE && !files.has(logFile) && !isAdministrators(logFile);
  const reportFull = (logFile: string): void => {
    if (isReported) return;
    isReported = true;
    const text = `Network definitions name more than ${MAX_LOG_FILES} log files on this node; lines for others go to ${DEFAULT_FILE}`;
    log.warn({ logFile }, text);
  };
  const open = (logFile: string): LogFile => {
    const path = { directory, parts: logFile.slice(LOG_DIRECTORY.length).split("/") };
    const subject = "the coordinator's log file";
    const stream = new LogWriter({ path, subject, name: "coordinator", gatherMs: PLUGIN_LOG_DELAY_MS, log, nowMs });
    return { stream, logs: new Map() };
  };
  return {
    for: ({ logFile: wanted, logLevel }) => {
      requireForeign(wanted);
      const counts = isCounted(wanted);
      const isFull = counts && named >= MAX_LOG_FILES;
      if (isFull) reportFull(wanted);
      const logFile = isFull ? DEFAULT_FILE : wanted;
      const file = files.get(logFile) ?? open(logFile);
      requireWritable(file.stream);
      files.set(logFile, file);
      if (counts && !isFull) named++;
      return levelOf(file, logLevel);
    },
    close: async () => {
      await Promise.all([...files.values()].map(({ stream }) => stream.close()));
      files.clear();
    },
  };
}

/** A tenant may write a network definition, but no line of the audit log. */
function requireForeign(logFile: string): void {
  const name = logFile.slice(LOG_DIRECTORY.length);
  if (name !== AUDIT_FILE && !name.startsWith(`${AUDIT_FILE}.`)) return;
  throw refusal(`${describeValue(logFile)}, which is the audit log`, "another name");
}

function requireWritable(stream: LogWriter): void {
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
  return logs.getOrInsertComputed(level, () => pino({ name: "coordinator", level, ...LOG_FORMAT }, stream));
}
