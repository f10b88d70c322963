/**
 * Completes command lines of a shell from the command tree; names of pools, pods and nodes come from the source. The
 * protocol is that of cobra, so that kubectl can ask the plugin: a candidate on each line, with a description after a
 * tab, then `:4` (nothing else) or `:0` (files, too).
 */
import type { Command, Option } from "commander";

interface Candidate {
  readonly value: string;
  readonly description?: string;
}

interface Completion {
  readonly candidates: readonly Candidate[];
  /** Names of files are wanted instead. */
  readonly isFile: boolean;
}

/** Kinds of names that only the source knows. */
export type NameKind = "pool" | "pod" | "node" | "namespace";

type FindNames = (kind: NameKind) => Promise<readonly string[]>;

const NOTHING: Completion = { candidates: [], isFile: false };
const FILES: Completion = { candidates: [], isFile: true };

/** Options whose value is the name of something. */
const VALUES: Readonly<Record<string, NameKind>> = {
  "--pool": "pool",
  "--ipv4-pool": "pool",
  "--ipv6-pool": "pool",
  "--node": "node",
  "--namespace": "namespace",
};

/** In the words for an option with its value, or for an argument: it is a file. */
const FILE = /\b(?:file|path|directory)\b/;

/** `words` are those of the command line behind the program; the last one is being typed, and may be empty. */
export async function complete(root: Command, words: readonly string[], findNames: FindNames): Promise<Completion> {
  const typed = words.at(-1) ?? "";
  const { command, operands, pending } = walk(root, words.slice(0, -1));
  const options = command === root ? visibleOptions(root) : [...visibleOptions(command), ...visibleOptions(root)];
  const [flag, value] = typed.startsWith("--") && typed.includes("=") ? typed.split("=", 2) : [undefined, typed];
  const option = flag === undefined ? pending : options.find(({ long }) => long === flag);
  if (option !== undefined) {
    const { flags, long = "", argChoices } = option;
    const found = await offer(argChoices ?? (FILE.test(flags) ? "file" : VALUES[long]), findNames);
    const prefix = flag === undefined ? "" : `${flag}=`;
    return matching(
      found.candidates.map((each) => ({ ...each, value: `${prefix}${each.value}` })),
      typed,
      found.isFile,
    );
  }
  if (value?.startsWith("-"))
    return matching(
      options.map(({ long, short, description }) => ({ value: long ?? short ?? "", description })),
      typed,
    );
  if (command.commands.length > 0 && operands.length === 0)
    return matching(
      command
        .createHelp()
        .visibleCommands(command)
        .map((each) => ({ value: each.name(), description: each.description() })),
      typed,
    );
  const { candidates, isFile } = await completeArgument(command, operands, findNames);
  return matching(candidates, typed, isFile);
}

/** Returns the rows of the protocol. */
export function completionRows({ candidates, isFile }: Completion): string[][] {
  const rows = candidates.map(({ value, description = "" }) =>
    description === "" ? [value] : [value, description.replaceAll(/\s+/g, " ")],
  );
  return [...rows, [isFile ? ":0" : ":4"]];
}

/** Finds the command, its operands so far, and an option that waits for its value. */
function walk(root: Command, words: readonly string[]) {
  let command = root;
  let pending: Option | undefined;
  const operands: string[] = [];
  for (const word of words) {
    if (pending !== undefined) pending = undefined;
    else if (word.startsWith("-")) pending = waitingOption([...command.options, ...root.options], word);
    else {
      const next = operands.length > 0 ? undefined : command.commands.find((each) => each.name() === word);
      if (next === undefined) operands.push(word);
      else command = next;
    }
  }
  return { command, operands, pending };
}

function waitingOption(options: readonly Option[], word: string): Option | undefined {
  const option = options.find(({ long, short }) => long === word || short === word);
  return option?.required === true ? option : undefined;
}

function visibleOptions(command: Command): Option[] {
  return command.createHelp().visibleOptions(command);
}

async function completeArgument(
  command: Command,
  operands: readonly string[],
  findNames: FindNames,
): Promise<Completion> {
  const declared = command.registeredArguments;
  const argument = declared[operands.length] ?? (declared.at(-1)?.variadic === true ? declared.at(-1) : undefined);
  if (argument === undefined) return NOTHING;
  const name = argument.name();
  const kind = name.includes("pod") ? "pod" : name.includes("pool") ? "pool" : undefined;
  const { candidates, isFile } = await offer(argument.argChoices ?? (FILE.test(name) ? "file" : kind), findNames);
  return { candidates: candidates.filter(({ value }) => !operands.includes(value)), isFile };
}

async function offer(wanted: readonly string[] | NameKind | "file" | undefined, findNames: FindNames) {
  if (wanted === undefined) return NOTHING;
  if (wanted === "file") return FILES;
  return choices(typeof wanted === "string" ? await findNames(wanted) : wanted);
}

function choices(values: readonly string[]): Completion {
  return { candidates: values.map((value) => ({ value })), isFile: false };
}

function matching(candidates: readonly Candidate[], typed: string, isFile = false): Completion {
  return { candidates: candidates.filter(({ value }) => value !== "" && value.startsWith(typed)), isFile };
}
