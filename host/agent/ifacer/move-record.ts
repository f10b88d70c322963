/**
 * What the ifacer is about to do to addresses and routes of the node, on the disk while it does it: an agent that is killed in the middle
 * must not leave the node cut off. The next agent takes it back before it serves anybody.
 * Called by attach.ts and open.ts. No fsync: after a power loss the node's own configuration makes its addresses anew.
 * Effects: one file in the state directory.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Operation } from "../../plan/operation.ts";

const FORMAT = 1;

interface Record {
  readonly format: typeof FORMAT;
  /** The kernel's: what another boot was about to do has gone with it. */
  readonly boot: string;
  readonly operations: readonly Operation[];
}

/** JSON has neither big integers nor bytes. */
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

  /** Throws what the file system throws: then nothing may be moved. */
  write(operations: readonly Operation[]): void {
    const record: Record = { format: FORMAT, boot: this.#boot, operations };
    const temporary = `${this.#path}.new`;
    writeFileSync(temporary, JSON.stringify(record, encode), { mode: 0o600 });
    renameSync(temporary, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }

  /** What an agent of this boot was doing when it ended; none when it had finished, or the file is not one of ours. */
  read(): readonly Operation[] {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return [];
    }
    try {
      const record = JSON.parse(text, decode) as Record;
      const isOurs = record.format === FORMAT && record.boot === this.#boot && Array.isArray(record.operations);
      return isOurs ? record.operations : [];
    } catch {
      return [];
    }
  }
}
