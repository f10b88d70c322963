/**
 * A file in memory (/run) with the registry's ID, generation and last row version as of the last commit. It lives as
 * long as the machine runs: a registry that is older than this file has lost rows of live pods. Each commit writes it,
 * without fsync, in a few microseconds.
 */

import { closeSync, constants, fstatSync, mkdirSync, openSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import type { RegistryPoint } from "./identity.ts";

const NUMBER = /^\d+$/;

export class Witness {
  readonly #path: string;
  readonly #bootId: string;
  #descriptor: number | undefined;

  constructor(path: string, bootId: string) {
    this.#path = path;
    this.#bootId = bootId;
  }

  /** Returns the content of this boot's last agent; undefined if there was none. */
  read(): RegistryPoint | undefined {
    const text = tryOr(() => readText(this.#path), "");
    // The rest after the first line is left of a longer text.
    const [bootId, id, generation, lastVersion = ""] = text.split("\n", 1).join("").split(" ");
    if (bootId !== this.#bootId || id === undefined || !NUMBER.test(generation ?? "")) return undefined;
    return {
      id,
      generation: Number(generation),
      lastVersion: NUMBER.test(lastVersion) ? Number(lastVersion) : undefined,
    };
  }

  /** A failure is ignored: the registry is then as safe as without a witness. */
  write({ id, generation, lastVersion = 0 }: RegistryPoint): void {
    const numbers = [generation, lastVersion].map((each) => String(each).padStart(16, "0"));
    const text = `${this.#bootId} ${id} ${numbers.join(" ")} \n`;
    try {
      this.#descriptor ??= this.#open();
      writeSync(this.#descriptor, text, 0);
    } catch {
      this.close();
    }
  }

  /** Writes the file again if /run was cleaned meanwhile. */
  ensure(point: RegistryPoint): void {
    if (this.#descriptor !== undefined && !this.#isInPlace(this.#descriptor)) this.close();
    this.write(point);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #open(): number {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o755 });
    // Not truncated: until the first write it has the last agent's content.
    return openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  #isInPlace(descriptor: number): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === fstatSync(descriptor).ino;
  }
}
