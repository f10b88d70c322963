/**
 * Records on disk how the ifacer is moving the node's addresses and routes, so that an agent killed in the middle
 * does not leave the node unreachable: the next agent undoes the move before it serves requests. Without fsync: after
 * a power loss the node's own configuration restores its addresses.
 * Effects: one file in the state directory.
 */

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import type { Operation } from "../../plan/operation.ts";

const FORMAT = 1;

interface Record {
  readonly format: typeof FORMAT;
  /** Boot ID: a move of another boot is void. */
  readonly boot: string;
  readonly operations: readonly Operation[];
}

/** Encodes big integers and bytes, which JSON lacks. */
function encode(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return { $integer: value.toString() };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("hex") };
  return value;
}

function decode(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$integer" in value && typeof value.$integer === "string") return BigInt(value.$integer);
  if ("$bytes" in value && typeof value.$bytes === "string") return Uint8Array.from(Buffer.from(value.$bytes, "hex"));
  return value;
}

export class MoveRecord {
  readonly #path: string;
  readonly #boot: string;

  constructor(stateDirectory: string, bootId: string) {
    this.#path = join(stateDirectory, "moving.json");
    this.#boot = bootId;
  }

  /** Throws file system errors; the caller must not move anything then. */
  write(operations: readonly Operation[]): void {
    const record: Record = { format: FORMAT, boot: this.#boot, operations };
    const temporary = `${this.#path}.new`;
    writeFileSync(temporary, JSON.stringify(record, encode), { mode: 0o600 });
    renameSync(temporary, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }

  /**
   * Returns the operations of a move that an agent of this boot did not finish; none if there is no such move, or the
   * file is invalid.
   */
  read(): readonly Operation[] {
    return tryOr(() => {
      const record = JSON.parse(readText(this.#path), decode) as Record;
      const isOurs = record.format === FORMAT && record.boot === this.#boot && Array.isArray(record.operations);
      return isOurs ? record.operations : [];
    }, []);
  }
}
