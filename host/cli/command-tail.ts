/** The end of a command's output, of bounded size whatever the whole has. */
import { type ChildProcess, spawn } from "node:child_process";
import { messageOf } from "../lib/describe.ts";

/** Longest text about a command's failure. */
const MAX_REASON = 500;

interface CommandTail {
  readonly content: Buffer;
  /** Length of the whole output. */
  readonly wholeBytes: number;
  /** The reason why the command failed; undefined if it succeeded. */
  readonly failure?: string | undefined;
}

/**
 * Resolves with the last `maxBytes` of stdout when the command has ended; it is killed after `timeoutMs`. Never
 * rejects.
 */
export function commandTail(
  [command = "", ...words]: readonly string[],
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
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
