/** Searches the files of the audit log, in pieces between which the agent serves its requests. */
// Not node:fs/promises, which loads the line editor of the REPL: `fs.promises` is loaded when it is read.
import * as fs from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../lib/describe.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { type AuditLine, type HistoryPage, parseAuditLine } from "../../records/audit-line.ts";
import { AUDIT_FILE, AUDIT_FILES_KEPT } from "./audit-log.ts";

/** Most lines on one page of GET /v1/history. */
const MAX_HISTORY_LINES = 500;

/** Size of the part of a file that is searched at once: bytes. */
const HISTORY_READ_BYTES = 256 * 1024;

/** Longest line of the audit log that is searched: bytes. */
const MAX_HISTORY_LINE_BYTES = 64 * 1024;

interface HistoryQuery {
  /** Exactly one of this and `pod` is given. As Berth writes it. */
  readonly address?: string | undefined;
  readonly pod?: { readonly namespace: string; readonly name: string } | undefined;
  /** The first and the last moment, both included, as in the lines. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Number of the lines at `since` that the caller has already. */
  readonly skip: number;
}

export class History {
  readonly #directory: string;
  readonly #node: string;
  /** One search at a time. */
  readonly #queue = new SerialQueue();

  constructor(directory: string, node: string) {
    this.#directory = directory;
    this.#node = node;
  }

  /** Returns the oldest lines that match. */
  find(query: HistoryQuery): Promise<HistoryPage> {
    return this.#queue.run(() => this.#find(query));
  }

  async #find(query: HistoryQuery): Promise<HistoryPage> {
    const files = await this.#open();
    const search = new Search(query);
    try {
      for (const file of files) {
        await search.scan(file);
        if (search.isFull) break;
      }
    } finally {
      await Promise.all(files.map((file) => file.close()));
    }
    const { lines, from, missing, next } = search;
    return { node: this.#node, lines, from, missing, next };
  }

  /**
   * Opens the newest first, for a file that is renamed meanwhile is then met twice and not missed. Returns the oldest
   * first.
   */
  async #open(): Promise<FileHandle[]> {
    const found = new Map<bigint, FileHandle>();
    for (let number = 0; number <= AUDIT_FILES_KEPT; number++) {
      const path = join(this.#directory, number === 0 ? AUDIT_FILE : `${AUDIT_FILE}.${number}`);
      const file = await openRegular(path);
      if (file === undefined) continue;
      const { ino } = await file.stat({ bigint: true });
      if (found.has(ino)) await file.close();
      else found.set(ino, file);
    }
    return [...found.values()].reverse();
  }
}

async function openRegular(path: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  try {
    const file = await fs.promises.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" && errnoOf(error) !== "ELOOP") throw error;
  }
  return undefined;
}

const LINE_FEED = 0x0a;
const LOSS = /"msg":"At most (\d+) lines before this one are missing"/;

class Search {
  readonly #query: HistoryQuery;
  /** A line without the first contains nothing that is searched for. */
  readonly #needles: readonly Buffer[];
  readonly lines: AuditLine[] = [];
  from: string | undefined;
  missing = 0;
  next: HistoryPage["next"];
  #skip: number;

  constructor(query: HistoryQuery) {
    this.#query = query;
    this.#skip = query.skip;
    const wanted = query.address ?? query.pod?.name ?? "";
    this.#needles = [JSON.stringify(wanted), '"audit":"START"', "lines before this one are missing"].map((text) =>
      Buffer.from(text),
    );
  }

  get isFull(): boolean {
    return this.next !== undefined;
  }

  async scan(file: FileHandle): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    while (!this.isFull) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(HISTORY_READ_BYTES), 0, HISTORY_READ_BYTES);
      if (bytesRead === 0) return;
      const piece = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      const end = piece.lastIndexOf(LINE_FEED) + 1;
      this.#scanLines(piece.subarray(0, end));
      rest = piece.length - end > MAX_HISTORY_LINE_BYTES ? Buffer.alloc(0) : piece.subarray(end);
    }
  }

  #scanLines(piece: Buffer): void {
    this.from ??= parseAuditLine(piece.subarray(0, Math.max(0, piece.indexOf(LINE_FEED))).toString())?.time;
    for (let at = this.#findNext(piece, 0); at >= 0 && !this.isFull; ) {
      const start = piece.lastIndexOf(LINE_FEED, at) + 1;
      const end = piece.indexOf(LINE_FEED, at);
      this.#read(piece.subarray(start, end).toString());
      at = this.#findNext(piece, end);
    }
  }

  /** Returns where the next needle is; -1 if there is none. */
  #findNext(piece: Buffer, from: number): number {
    const found = this.#needles.map((needle) => piece.indexOf(needle, from)).filter((at) => at >= 0);
    return found.length === 0 ? -1 : Math.min(...found);
  }

  #read(text: string): void {
    const loss = LOSS.exec(text);
    if (loss !== null) this.missing += Number(loss[1]);
    const line = parseAuditLine(text);
    if (line === undefined || !this.#isInTime(line)) return;
    if (line.audit === "START" ? this.#isNews : this.#isWanted(line)) this.#add(line);
  }

  #add(line: AuditLine): void {
    if (this.#skip > 0 && line.time === this.#query.since) {
      this.#skip--;
      return;
    }
    if (this.lines.length >= MAX_HISTORY_LINES) {
      const { time = "" } = this.lines.at(-1) ?? {};
      const known = time === this.#query.since ? this.#query.skip : 0;
      this.next = { since: time, skip: known + this.lines.filter((each) => each.time === time).length };
      return;
    }
    this.lines.push(line);
  }

  /** A start of the agent concerns what is known to be in use before. */
  get #isNews(): boolean {
    const last = this.lines.at(-1);
    return last === undefined ? this.#query.skip > 0 : last.audit !== "START";
  }

  #isInTime({ time }: AuditLine): boolean {
    const { since = "", until } = this.#query;
    return time >= since && (until === undefined || time <= until);
  }

  #isWanted({ addresses, namespace, pod }: AuditLine): boolean {
    const { address, pod: wanted } = this.#query;
    if (address !== undefined) return addresses.includes(address);
    return namespace === wanted?.namespace && pod === wanted.name;
  }
}
