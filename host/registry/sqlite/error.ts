/** The meaning of SQLite's error codes (sqlite3.h) for a registry. */
import { messageOf } from "../../lib/describe.ts";

const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_CONSTRAINT = 19;
const SQLITE_NOTADB = 26;

/** Codes that concern the disk or the file, and so every write. */
const STORAGE: readonly number[] = [
  SQLITE_PERM,
  SQLITE_READONLY,
  SQLITE_IOERR,
  SQLITE_CORRUPT,
  SQLITE_FULL,
  SQLITE_CANTOPEN,
  SQLITE_NOTADB,
];

/** Returns the primary code, without the bits of an extended one; undefined if the error is not SQLite's. */
function codeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
}

/** Returns whether the disk is full. */
export function isFull(error: unknown): boolean {
  return codeOf(error) === SQLITE_FULL;
}

/** Returns whether another process has locked the database. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === SQLITE_BUSY;
}

/** Returns whether the table cannot have the row. */
export function isConstraint(error: unknown): boolean {
  return codeOf(error) === SQLITE_CONSTRAINT;
}

/** Returns whether the file's content is damaged, or is no database. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** Returns whether the disk or the file makes every write fail, not only this one. */
export function isStorage(error: unknown): boolean {
  return STORAGE.includes(codeOf(error) ?? 0);
}

/** Returns the error as a sentence that names the file, or its message alone if it does not concern the storage. */
export function describeStorage(error: unknown, file: string): string {
  const text = messageOf(error);
  if (isDamage(error)) return `Registry ${file} is damaged (${text})`;
  if (isFull(error)) return `Registry ${file} has no room (${text})`;
  return isStorage(error) ? `Registry ${file} cannot be written (${text})` : text;
}
