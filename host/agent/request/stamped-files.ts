/**
 * Files that are decoded again only when their stamp has changed; an invalid one keeps its last valid content.
 * Nothing is watched: each read sees all changes made before it.
 */
import { type BigIntStats, lstatSync, statSync } from "node:fs";
import { messageOf } from "../../lib/describe.ts";
import { readRegular } from "./regular-file.ts";

/**
 * A file that was changed less than this before it was read is read again next time: milliseconds. Time stamps of
 * files are coarser than changes.
 */
export const STAMP_GRAIN_MS = 100;

interface StampedFile<T> {
  /** The file's last valid content; undefined if it was never valid. */
  readonly value: T | undefined;
  /** A sentence that names the file; undefined while the file is valid. */
  readonly problem: string | undefined;
}

interface Known<T> extends StampedFile<T> {
  /** Undefined if a later change could leave the same stamp. */
  readonly stamp: BigIntStats | undefined;
}

export class StampedFiles<T> {
  readonly #decode: (text: string, path: string) => T;
  readonly #maxBytes: number;
  #known = new Map<string, Known<T>>();
  #used = new Map<string, Known<T>>();

  /** `decode` throws an error whose message is a sentence that names the file. */
  constructor(decode: (text: string, path: string) => T, maxBytes: number) {
    this.#decode = decode;
    this.#maxBytes = maxBytes;
  }

  /** Returns undefined if there is no such file, or it is a directory. */
  read(path: string): StampedFile<T> | undefined {
    const file = this.#readAt(path, this.#known.get(path));
    if (file !== undefined) this.#used.set(path, file);
    return file;
  }

  /** Forgets the files that were not read since the last call. */
  sweep(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }

  #readAt(path: string, known: Known<T> | undefined): Known<T> | undefined {
    try {
      const stamp = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stamp === undefined) {
        if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
        throw new Error("it is a dangling symbolic link");
      }
      if (stamp.isDirectory()) return undefined;
      return known?.stamp !== undefined && isSame(stamp, known.stamp) ? known : this.#read(path, known);
    } catch (error) {
      return { value: known?.value, problem: `File "${path}" cannot be read: ${messageOf(error)}`, stamp: undefined };
    }
  }

  #read(path: string, known: Known<T> | undefined): Known<T> {
    const { bytes, stats } = readRegular(path, this.#maxBytes);
    const age = Date.now() - Number(stats.ctimeMs);
    const stamp = age > STAMP_GRAIN_MS ? stats : undefined;
    try {
      return { value: this.#decode(bytes.toString("utf8"), path), problem: undefined, stamp };
    } catch (error) {
      return { value: known?.value, problem: messageOf(error), stamp };
    }
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.dev === b.dev;
}
