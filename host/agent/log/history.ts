/** Searches the files of the audit log, in pieces between which the agent serves its requests. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../lib/describe.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { type AuditLine, type HistoryPage, parseAuditLine } from "../../records/audit-line.ts";
import { AUDIT_FILE, AUDIT_FILES_KEPT } from "./audit-log.ts";

/** Most lines on one page of GET /v1/history. */
const MAX_HISTORY_LINES = 500;

/** Most searches that run or wait. */
const MAX_SEARCHES = 8;

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
  /** The newest lines instead of the oldest, without the starts of the agent; without `skip`. */
  readonly isNewest?: boolean;
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

  /** Returns a page of lines that match; "busy": too many searches wait. Rejects when the signal aborts. */
  async find(query: HistoryQuery, signal?: AbortSignal): Promise<HistoryPage | "busy"> {
    if (this.#queue.size >= MAX_SEARCHES) return "busy";
    return this.#queue.run(async () => {
      signal?.throwIfAborted();
      const files = await this.#open();
      try {
        const page = await (query.isNewest === true
          ? findNewest(files, query, signal)
          : findOldest(files, query, signal));
        return { node: this.#node, ...page };
      } finally {
        await Promise.all(files.map((file) => file.close()));
      }
    });
  }

  /** Returns the newest first: a file that is renamed meanwhile is then met twice and not missed. */
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
    return [...found.values()];
  }
}

type Page = Omit<HistoryPage, "node">;

async function findOldest(files: readonly FileHandle[], query: HistoryQuery, signal?: AbortSignal): Promise<Page> {
  const search = new Search(query);
  for (const file of files.toReversed()) {
    await search.scan(file, signal);
    if (search.isFull) break;
  }
  const { lines, from, missing, next } = search;
  return { lines, from, missing, next };
}

/** Reads no older file once there are lines enough. */
async function findNewest(files: readonly FileHandle[], query: HistoryQuery, signal?: AbortSignal): Promise<Page> {
  const page: Page = { lines: [], missing: 0, hasOlder: false };
  for (const [index, file] of files.entries()) {
    const search = new Search(query);
    await search.scan(file, signal);
    page.lines.unshift(...search.lines);
    page.from = search.from ?? page.from;
    page.missing += search.missing;
    page.hasOlder = page.lines.length > MAX_HISTORY_LINES;
    if (page.lines.length < MAX_HISTORY_LINES) continue;
    page.lines.splice(0, page.lines.length - MAX_HISTORY_LINES);
    page.hasOlder ||= index < files.length - 1;
    break;
  }
  return page;
}

async function openRegular(path: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
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

  async scan(file: FileHandle, signal?: AbortSignal): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    while (!this.isFull) {
      signal?.throwIfAborted();
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
    if (this.#query.isNewest === true) {
      // Cut in pieces, so that a file full of them does not shift the list for each.
      if (this.lines.length >= 2 * MAX_HISTORY_LINES) this.lines.splice(0, MAX_HISTORY_LINES - 1);
    } else if (this.lines.length >= MAX_HISTORY_LINES) {
      const { time = "" } = this.lines.at(-1) ?? {};
      const known = time === this.#query.since ? this.#query.skip : 0;
      this.next = { since: time, skip: known + this.lines.filter((each) => each.time === time).length };
      return;
    }
    this.lines.push(line);
  }

  /** A start of the agent concerns addresses that are known to be in use before. */
  get #isNews(): boolean {
    if (this.#query.isNewest === true) return false;
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
