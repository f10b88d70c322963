/** Command lines of berthctl in the caller's own process, which is much cheaper than a process each. */
import { MORE_COMMANDS } from "../../host/bin/berthctl-process.ts";
import { runCommands } from "../../host/cli/berthctl.ts";

export interface CommandLineEnding {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Runs one command line to its end; what it prints has no colours. */
export async function runBerthctl(...words: readonly string[]): Promise<CommandLineEnding> {
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
  const code = await runCommands({ program: "berthctl", version: "1.2.3", words, terminal, more: MORE_COMMANDS });
  return { code, ...texts };
}
