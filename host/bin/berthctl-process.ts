/** The process of berthctl and of kubectl berth: prints on stdout and stderr, and ends with the command's exit code. */
import { runCommands } from "../cli/berthctl.ts";
import type { Program, Terminal } from "../cli/command-line.ts";
import { ExitCode } from "../cli/exit-code.ts";
import { errnoOf, messageOf } from "../lib/describe.ts";
import { readMoreCommands } from "./extensions.ts";
import { VERSION } from "./version.ts";

export async function runBerthctl(program: Program): Promise<void> {
  process.stdout.on("error", (error) => {
    // A reader such as head has enough.
    if (errnoOf(error) === "EPIPE") process.exit(ExitCode.Success);
    process.stderr.write(`${program}: The output cannot be written: ${messageOf(error)}\n`);
    process.exit(ExitCode.NoAnswer);
  });
  // The exit code says it, too.
  process.stderr.on("error", () => {});
  const terminal: Terminal = {
    write: (text) => void process.stdout.write(text),
    writeError: (text) => void process.stderr.write(text),
    // Honours NO_COLOR.
    isColored: process.stdout.isTTY === true && process.stdout.hasColors(),
    isRewritable: process.stderr.isTTY === true,
  };
  const words = process.argv.slice(2);
  const more = await readMoreCommands();
  process.exitCode = await runCommands({ program, version: VERSION, words, terminal, more });
}
