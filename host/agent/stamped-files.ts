/**
 * Files that are decoded again only when their stamp says that they changed; a bad one keeps what it last said rightly.
 * Called by definitions.ts. Nothing is watched: who asks sees every change that was made before.
 * Effects: reads files.
 */
import { type BigIntStats, lstatSync, statSync } from "node:fs";
import { messageOf } from "../lib/describe.ts";
import { readRegular } from "./regular-file.ts";

/** A definition changed less than this before it was read is read again for the next question: milliseconds. Time stamps of files are coarser than changes. @limit */
export const STAMP_GRAIN_MS = 100;

interface StampedFile<T> {
  /** What the file last said rightly; undefined when it never did. */
  readonly value: T | undefined;
  /** A sentence that names the file; undefined while nothing is wrong. */
  readonly problem: string | undefined;
}

interface Known<T> extends StampedFile<T> {
  /** Undefined when a later change might leave the same stamp. */
  readonly stamp: BigIntStats | undefined;
}

export class StampedFiles<T> {
  readonly #decode: (text: string, path: string) => T;
  readonly #maxBytes: number;
  #known = new Map<string, Known<T>>();
  #asked = new Map<string, Known<T>>();

  /** `decode` throws an error whose message is a sentence that names the file. */
  constructor(decode: (text: string, path: string) => T, maxBytes: number) {
    this.#decode = decode;
    this.#maxBytes = maxBytes;
  }

  /** Undefined when there is no such file, or it is a directory. */
  look(path: string): StampedFile<T> | undefined {
    const file = this.#lookAt(path, this.#known.get(path));
    if (file !== undefined) this.#asked.set(path, file);
    return file;
  }

  /** Forgets the files at which nobody has looked since the last call. */
  sweep(): void {
    this.#known = this.#asked;
    this.#asked = new Map();
  }

  #lookAt(path: string, known: Known<T> | undefined): Known<T> | undefined {
    try {
      const stamp = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stamp === undefined) {
        if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
        throw new Error("it is a symbolic link to nothing");
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
