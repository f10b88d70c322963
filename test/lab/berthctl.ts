/**
 * Command lines of berthctl and kubectl berth in the caller's own process, and its environment, which is much cheaper
 * than a process each.
 */
import { readMoreCommands } from "../../host/bin/extensions.ts";
import { runCommands } from "../../host/cli/berthctl.ts";
import type { Program } from "../../host/cli/command-line.ts";

export interface CommandLineEnding {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Runs one command line to its end, without colours in the output. */
export function runBerthctl(...words: readonly string[]): Promise<CommandLineEnding> {
  return runProgram("berthctl", words);
}

/** The same of `kubectl berth`. */
export function runKubectlBerth(...words: readonly string[]): Promise<CommandLineEnding> {
  return runProgram("kubectl berth", words);
}

async function runProgram(program: Program, words: readonly string[]): Promise<CommandLineEnding> {
  const texts = { out: "", error: "" };
  const terminal = {
    write: (text: string) => {
      texts.out += text;
    },
    writeError: (text: string) => {
      texts.error += text;
    },
    isColored: false,
  };
  const code = await runCommands({ program, version: "1.2.3", words, terminal, more: await readMoreCommands() });
  return { code, ...texts };
}
