/**
 * What SQLite's error codes (sqlite3.h) mean for a registry: whose fault it is, and what to do.
 */
import { messageOf } from "../../lib/describe.ts";

const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

const STORAGE: readonly number[] = [SQLITE_PERM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_NOTADB]; // biome-ignore format: one thought

/** The primary code; an extended one has more bits. Undefined for what SQLite did not say. */
function codeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
}

/** Whether the disk had no room for it. */
export function isFull(error: unknown): boolean {
  return codeOf(error) === SQLITE_FULL;
}

/** Whether another process has the database. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === SQLITE_BUSY;
}

/** Whether the file's content is broken, or is no database. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** Whether the disk or the file is in the way of every write, not only of this one. */
export function isStorage(error: unknown): boolean {
  return STORAGE.includes(codeOf(error) ?? 0);
}

/** The error as a sentence that names the file; the message alone when it is not about the storage. */
export function describeStorage(error: unknown, file: string): string {
  const text = messageOf(error);
  if (isDamage(error)) return `Registry ${file} is damaged (${text})`;
  if (isFull(error)) return `Registry ${file} has no room (${text})`;
  return isStorage(error) ? `Registry ${file} cannot be written (${text})` : text;
}
