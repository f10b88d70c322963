/** The end of what a command prints, and of a file, of bounded size whatever the whole has. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { messageOf } from "../../lib/describe.ts";

/** Longest text about a command's failure. */
const MAX_REASON = 500;

interface CommandTail {
  readonly content: Buffer;
  /** Length of the whole output. */
  readonly wholeBytes: number;
  /** The reason why the command failed; undefined if it succeeded. */
  readonly failure?: string | undefined;
}

interface TailOptions {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/**
 * Resolves with the last `maxBytes` of stdout when the command has ended; it is killed after `timeoutMs`. Never
 * rejects.
 */
export function commandTail(
  [command = "", ...words]: readonly string[],
  { maxBytes, timeoutMs }: TailOptions,
): Promise<CommandTail> {
  return new Promise((resolve) => {
    const tail = new Tail(maxBytes);
    const errors = new Tail(MAX_REASON);
    const child: ChildProcess = spawn(command, words, { stdio: ["ignore", "pipe", "pipe"] });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill("SIGKILL");
      // A child of the child may have the pipes open.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, timeoutMs);
    const end = (failure: string | undefined): void => {
      clearTimeout(timer);
      resolve({ content: tail.content(), wholeBytes: tail.wholeBytes, failure });
    };
    child.stdout?.on("data", (piece: Buffer) => tail.add(piece));
    child.stderr?.on("data", (piece: Buffer) => errors.add(piece));
    child.on("error", (error) => end(`Cannot execute ${command}: ${messageOf(error)}`));
    child.on("close", (code) => {
      const said = errors.content().toString().trim();
      if (isLate) end(`No answer within ${timeoutMs / 1_000} s`);
      else end(code === 0 ? undefined : `${command} ended with ${code ?? "a signal"}${said === "" ? "" : `: ${said}`}`);
    });
  });
}

/** Returns the file's last `maxBytes`. Only regular files are read. Throws file system errors. */
export function fileTail(path: string, maxBytes: number): { readonly text: string; readonly wholeBytes: number } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new TypeError(`${path} is no regular file`);
    const start = Math.max(0, stats.size - maxBytes);
    const buffer = Buffer.alloc(stats.size - start);
    const length = readSync(fd, buffer, 0, buffer.length, start);
    return { text: wholeLines(buffer.subarray(0, length), start > 0).toString(), wholeBytes: stats.size };
  } finally {
    closeSync(fd);
  }
}

/** Returns the text from its first whole line on, if it was cut: half a line may be half a secret. */
export function wholeLines(content: Buffer, isCut: boolean): Buffer {
  return isCut ? content.subarray(content.indexOf("\n") + 1) : content;
}

class Tail {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #size = 0;
  wholeBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(piece: Buffer): void {
    this.wholeBytes += piece.length;
    this.#pieces.push(piece);
    this.#size += piece.length;
    while (this.#size - (this.#pieces[0]?.length ?? 0) >= this.#maxBytes)
      this.#size -= this.#pieces.shift()?.length ?? 0;
  }

  content(): Buffer {
    return Buffer.concat(this.#pieces).subarray(-this.#maxBytes);
  }
}
