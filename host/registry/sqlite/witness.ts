/**
 * What the node knows of its registry beside the registry: a file in memory (/run) with the registry's ID and generation as of the last
 * commit, for as long as the machine runs. A registry that knows less than this file has lost rows of live pods.
 * Written by sqlite-batch.ts after each commit, without fsync: a few microseconds. Read by sqlite-worker.ts at the start.
 * Effects: writes the file, keeps it open.
 */
import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { RegistryPoint } from "./identity.ts";

export class Witness {
  readonly #path: string;
  readonly #bootId: string;
  #descriptor: number | undefined;

  constructor(path: string, bootId: string) {
    this.#path = path;
    this.#bootId = bootId;
  }

  /** What was known when the last agent of this boot wrote; undefined when none did. */
  read(): RegistryPoint | undefined {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return undefined;
    }
    const [bootId, id, generation] = text.split(" ");
    if (bootId !== this.#bootId || id === undefined || !/^\d+$/.test(generation ?? "")) return undefined;
    return { id, generation: Number(generation) };
  }

  /** Where the file cannot be written, the registry is as safe as without it: nothing is said. */
  write({ id, generation }: RegistryPoint): void {
    const text = `${this.#bootId} ${id} ${String(generation).padStart(16, "0")} \n`;
    try {
      this.#descriptor ??= this.#open();
      writeSync(this.#descriptor, text, 0);
    } catch {
      this.close();
    }
  }

  /** /run may be cleaned: writes the file again when it is not the one that is open. */
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
    // Not cut: until the first write it says what the last agent knew.
    return openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  #isInPlace(descriptor: number): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === fstatSync(descriptor).ino;
  }
}
