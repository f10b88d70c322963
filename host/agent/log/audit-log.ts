/**
 * The audit log of this agent: lines are queued as they are, and become text, on stderr and in the file, after the
 * requests that caused them were answered. If disk or reader stall, lines are dropped and counted; no request waits.
 */
import { setTimeout as pause } from "node:timers/promises";
import { LOG_DIRECTORY } from "../../config/coordinator-conf.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import { type AuditLine, boundLine } from "../../records/audit-line.ts";
import { listPages } from "../../registry/list-rows.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Audit, AuditEntry, Refusal, Served } from "./audit.ts";
import { LogWriter } from "./log-writer.ts";

/** Name of the file in the log directory; full ones are `audit.jsonl.1` to `.3`. Network definitions cannot name it. */
export const AUDIT_FILE = "audit.jsonl";

/** Largest file of the audit log: bytes. A full one is renamed to `.1`. @limit */
export const AUDIT_FILE_BYTES = 16 * 1024 * 1024;

/** Most full files of the audit log; the oldest is removed. @limit */
export const AUDIT_FILES_KEPT = 3;

/** Most audit lines that wait to be written. Further ones are dropped and counted. */
const MAX_AUDIT_BACKLOG = 4_096;

/** Time for which audit lines are gathered before they are written: milliseconds. `kill -9` loses them. */
const AUDIT_DELAY_MS = 250;

/** Most audit lines that are written before the agent looks after its requests again. */
const AUDIT_BATCH = 32;

/** Between two batches of a start's lines: the agent's one thread is the requests', which come at the same time. */
const HELD_PAUSE_MS = 1;

interface AuditLogOptions {
  /** Directory that stands for {@link LOG_DIRECTORY} on this machine. */
  readonly directory?: string;
  readonly node: string;
  /** The agent's own log, which shows every line as well. */
  readonly log: Log;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

interface Waiting {
  readonly entry: AuditEntry;
  /** Time of the wall clock. */
  readonly atMs: number;
  /** Not on stderr. */
  readonly isQuiet: boolean;
}

export class AuditLog implements Audit {
  readonly #options: AuditLogOptions;
  readonly #file: LogWriter;
  readonly #refusals: RefusalMemory;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #lost = 0;

  constructor(options: AuditLogOptions) {
    const { directory = LOG_DIRECTORY, log, nowMs } = options;
    this.#options = options;
    this.#refusals = new RefusalMemory(nowMs);
    this.#file = new LogWriter({
      path: { directory, parts: [AUDIT_FILE] },
      subject: "the audit log",
      name: "audit",
      fileBytes: AUDIT_FILE_BYTES,
      keep: AUDIT_FILES_KEPT,
      gatherMs: 0,
      log,
      nowMs,
    });
  }

  /** Number of lines missing in the file. */
  get lost(): number {
    return this.#lost + this.#file.lost;
  }

  record(entry: AuditEntry): void {
    this.#queue(entry, false);
  }

  refuse(refusal: Refusal): boolean {
    const repeats = this.#refusals.note(refusal);
    if (repeats !== undefined) this.#queue({ ...refusal, repeats }, false);
    return repeats !== undefined;
  }

  get remembersRefusals(): boolean {
    return !this.#refusals.isEmpty;
  }

  served(request: Served): void {
    this.#refusals.forget(request);
  }

  /**
   * The agent has started: writes the addresses in use, for a file that may lack the previous agent's last moments.
   * Requests may come meanwhile: later ADDs have lines of their own, and the line of a DEL follows its row's, as a page
   * is queued in the turn in which it arrives.
   */
  async started(registry: Pick<Registry, "list">): Promise<void> {
    const startedMs = this.#options.nowMs();
    this.#queue({ audit: "START" }, true);
    for await (const page of listPages(registry)) {
      for (const row of page)
        if (row.state === "Bound" && row.containerId !== "" && row.sinceMs < startedMs)
          this.#queue({ audit: "HELD", allocations: [row] }, true);
      for (; this.#waiting.length > 0; await pause(HELD_PAUSE_MS)) this.#writeBatch();
    }
  }

  /** Resolves when all queued lines are written, or lost. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#waiting.length > 0) this.#writeBatch();
    await this.#file.close();
  }

  #queue(entry: AuditEntry, isQuiet: boolean): void {
    if (this.#waiting.length >= MAX_AUDIT_BACKLOG) {
      this.#dropped++;
      this.#lost++;
      return;
    }
    this.#waiting.push({ entry, atMs: Date.now(), isQuiet });
    this.#timer ??= setTimeout(() => this.#writeAll(), AUDIT_DELAY_MS);
  }

  #writeAll(): void {
    this.#writeBatch();
    if (this.#waiting.length > 0) setImmediate(() => this.#writeAll());
    else this.#timer = undefined;
  }

  #writeBatch(): void {
    const { log } = this.#options;
    for (const waiting of this.#waiting.splice(0, AUDIT_BATCH)) {
      const line = boundLine(lineOf(waiting, this.#options.node));
      this.#file.write(`${JSON.stringify(line)}\n`);
      if (waiting.isQuiet) continue;
      const { time: _, level, message, ...fields } = line;
      log[level === "warn" ? "warn" : "info"](fields, message ?? `${line.audit} of ${line.plugin}`);
    }
    if (this.#dropped === 0) return;
    log.warn({ lost: this.#dropped }, `${this.#dropped} lines of the audit log were dropped: they came too fast`);
    this.#dropped = 0;
  }
}

function lineOf({ entry, atMs }: Waiting, node: string): AuditLine {
  const { audit, code = 0, allocations = [] } = entry;
  const [first] = allocations;
  return {
    time: new Date(atMs).toISOString(),
    level: code !== 0 || audit === "QUARANTINE" ? "warn" : "info",
    audit,
    plugin: entry.plugin ?? "berth",
    node,
    namespace: entry.namespace ?? first?.namespace ?? "",
    pod: entry.pod ?? first?.pod ?? "",
    uid: entry.uid ?? first?.owner ?? "",
    interface: entry.ifName ?? first?.ifName ?? "",
    network: entry.network ?? first?.network ?? "",
    addresses: allocations.map(({ ip }) => formatIp(ip)),
    pools: allocations.map(({ pool }) => pool),
    sources: [...(entry.sources ?? [])],
    rule: entry.rule ?? "",
    container: entry.containerId ?? first?.containerId ?? "",
    code,
    ms: Math.round((entry.ms ?? 0) * 100) / 100,
    repeats: entry.repeats || undefined,
    message: entry.message,
    details: entry.details,
    names: entry.names,
  };
}

/** Most NICs whose refusals are remembered; of the one refused longest ago the next refusal is logged again. */
const MAX_REMEMBERED_REFUSALS = 1_024;

/**
 * Most different refusals of one NIC that are logged in {@link REFUSAL_REPEAT_MS}. One with a count or an address is
 * always different.
 */
export const MAX_REFUSALS_OF_NIC = 4;

/** After how long a refusal that lasts is logged once more, with the number of its repetitions: milliseconds. */
const REFUSAL_REPEAT_MS = 3_600_000;

interface Remembered {
  /** By code and text: when it was logged. */
  readonly loggedMs: Map<string, number>;
  repeats: number;
}

/**
 * Which refusals were logged: a kubelet repeats a refused ADD every few seconds, each time with a new sandbox. Only a
 * change is news: another code or text, or a success in between.
 */
class RefusalMemory {
  readonly #nowMs: () => number;
  readonly #refused = new BoundedMap<string, Remembered>(MAX_REMEMBERED_REFUSALS);

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns the number of unlogged repetitions if this refusal is to be logged; undefined for a repetition. */
  note(refusal: Refusal): number | undefined {
    const key = keyOf(refusal);
    const known = this.#refused.get(key) ?? { loggedMs: new Map<string, number>(), repeats: 0 };
    const oldestMs = this.#nowMs() - REFUSAL_REPEAT_MS;
    for (const [text, loggedMs] of known.loggedMs) if (loggedMs <= oldestMs) known.loggedMs.delete(text);
    this.#refused.set(key, known);
    const text = `${refusal.code} ${refusal.message}`;
    if (known.loggedMs.has(text) || known.loggedMs.size >= MAX_REFUSALS_OF_NIC) {
      known.repeats++;
      return undefined;
    }
    const { repeats } = known;
    known.loggedMs.set(text, this.#nowMs());
    known.repeats = 0;
    return repeats;
  }

  get isEmpty(): boolean {
    return this.#refused.size === 0;
  }

  /** The request was served. */
  forget(request: Served): void {
    this.#refused.delete(keyOf(request));
  }
}

/** A retry has another container; lines without a pod have nothing else. */
function keyOf({ audit, plugin, namespace = "", pod = "", ifName = "", containerId = "" }: Served): string {
  return JSON.stringify([audit, plugin, namespace, pod, ifName, pod === "" ? containerId : ""]);
}
