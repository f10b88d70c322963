/** `berthctl completion`: scripts for shells, and the answers to them. */
import { Argument, type Command } from "commander";
import type { CommandLine } from "../command-line.ts";
import { complete, completionRows, type NameKind } from "../completion.ts";
import { ExitCode } from "../exit-code.ts";
import { SHELL_SCRIPTS, SHELLS, type Shell } from "../shell-scripts.ts";
import type { Source } from "../source.ts";

/** Longest wait of a shell for names: milliseconds. Without them it completes commands and options. */
const COMPLETION_PATIENCE_MS = 1_500;

/** Most names that a shell is offered. */
const MAX_COMPLETIONS = 200;

export function addCompletion(cli: CommandLine): void {
  cli
    .command("completion", "Print the completion script of a shell", ["completion bash", "completion fish"])
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action((shell: Shell) =>
      cli.run({}, async ({ out }) => {
        out.text(SHELL_SCRIPTS[shell].trimEnd());
        return ExitCode.Success;
      }),
    );
}

/**
 * The first word of the command lines that shells ask with. Commander would take options from among the words, so it
 * does not see them.
 */
export const COMPLETE = "__complete";

/** Answers a shell: `words` are those behind the program, the last one is being typed. */
export function runCompletion(cli: CommandLine, words: readonly string[]): Promise<void> {
  const joined = joinAssignments(words);
  takeGlobalOptions(cli.root, joined.slice(0, -1));
  return cli.run({}, async ({ source, out }) => {
    const found = await complete(cli.root, joined, (kind) => findNames(source, kind));
    out.tabbed(completionRows(found));
    return ExitCode.Success;
  });
}

/** Bash breaks `--pool=blue` into three words. */
function joinAssignments(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const before = joined.at(-1);
    if (words[at] === "=" && before?.startsWith("--")) joined[joined.length - 1] = `${before}=${words[++at] ?? ""}`;
    else joined.push(words[at] ?? "");
  }
  return joined;
}

/** The source is that of the command line that is being typed. */
function takeGlobalOptions(root: Command, words: readonly string[]): void {
  for (const option of root.options) {
    const value = option.envVar === undefined ? undefined : process.env[option.envVar];
    if (value !== undefined) root.setOptionValueWithSource(option.attributeName(), value, "env");
  }
  for (const [at, word] of words.entries()) {
    const [flag, value = words[at + 1]] = word.split("=", 2);
    const option = root.options.find(({ long, required }) => required && long === flag);
    if (option !== undefined && value !== undefined)
      root.setOptionValueWithSource(option.attributeName(), value, "cli");
  }
}

/** Returns no names if the source is too late: a shell shows no errors. Leaves out names that no shell can show. */
async function findNames(open: () => Promise<Source>, kind: NameKind): Promise<readonly string[]> {
  const names = open().then((source) => readNames(source, kind));
  const late = new Promise<readonly string[]>((resolve) => setTimeout(resolve, COMPLETION_PATIENCE_MS, []).unref());
  const found = await Promise.race([names.catch(() => []), late]);
  return [...new Set(found)]
    .filter((name) => /^[\w./:-]+$/.test(name))
    .sort()
    .slice(0, MAX_COMPLETIONS);
}

async function readNames(source: Source, kind: NameKind): Promise<readonly string[]> {
  if (kind === "pool") return (await source.pools()).map(({ name }) => name);
  const records = await source.allocations({});
  if (kind === "node") return records.flatMap(({ node }) => node ?? []);
  const waiting = ((await source.waitingPods?.()) ?? []).map(({ namespace, name }) => ({ namespace, pod: name }));
  const held = [...records, ...waiting].filter(({ pod }) => pod !== "");
  return held.map(({ namespace, pod }) => (kind === "namespace" ? namespace : `${namespace}/${pod}`));
}
