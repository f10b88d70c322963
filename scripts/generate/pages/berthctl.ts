/** The reference page of berthctl, from the command tree. */
import type { Command, Option } from "commander";
import { readMoreCommands } from "../../../host/bin/extensions.ts";
import { createCommands } from "../../../host/cli/berthctl.ts";
import manifest from "../../../package.json" with { type: "json" };

const terminal = { write: () => {}, writeError: () => {}, isColored: false };
const { root } = await createCommands({
  program: "berthctl",
  version: manifest.version,
  words: [],
  terminal,
  more: await readMoreCommands(),
});
const commands = commandsOf(root);

/** Each command is followed by its own commands. */
function commandsOf(parent: Command): readonly Command[] {
  const visible = parent.createHelp().visibleCommands(parent);
  return visible
    .filter((command) => command.name() !== "help")
    .flatMap((command) => [command, ...(command.commands.length === 0 ? [] : commandsOf(command))]);
}

/** Returns `blocks release`. */
function wordsOf(command: Command): readonly string[] {
  const above = command.parent === null || command.parent.parent === null ? [] : wordsOf(command.parent);
  return [...above, command.name()];
}

const EXIT_CODES = [
  ["0", "success: the question was answered, and all is well"],
  ["1", "problem found: the answer is bad news, a refusal, or that there is no such object"],
  ["2", "usage error: the command line, or a file that it names, is wrong"],
  ["3", "no answer: no agent or API server answered, it does not permit the question, or the output cannot be written"],
] as const;

const ENVIRONMENT = [
  ["BERTH_SOCKET", "socket of the agent, instead of `/run/berth/agent.sock`"],
  ["KUBECONFIG", "kubeconfigs of `kubectl berth`, separated by colons, merged as kubectl does; else `~/.kube/config`"],
  ["NO_COLOR", "if it is set, no colours"],
] as const;

const OUTPUT_NOTES = [
  "Tables align numbers on the right; a number above 2^32 is shown by the nearest power of two (`2^64-3`). `-o json` and `-o yaml` print the records with exact numbers as text, one list; of several agents each has its `node`. With `--watch` each is a document, JSON on one line. `-o name` prints what other commands take as arguments. Keys may be added to records; none changes its meaning.",
  "With `--watch` the list is followed by changes: an address that became free has the state `Free`, a pool that has gone the note `deleted`. A cluster is watched, an agent asked every two seconds; stderr says when it is away.",
  "On a terminal verdicts, findings, states and full pools have colours.",
  "Names from outside are printed with control and format characters as `\\u{1b}`, in JSON and YAML as `\\u001b`.",
];

function usageOf(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [...wordsOf(command), "[options]", ...words].join(" ");
}

function optionsOf(command: Command): Option[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== "--help" && long !== "--version");
}

/** Description, choices and default in one text. */
function describeOption({ description, argChoices, defaultValue, envVar }: Option): string {
  const isShown = defaultValue !== undefined && defaultValue !== true && defaultValue !== "";
  const shown = Array.isArray(defaultValue) ? defaultValue.join(" ") : String(defaultValue);
  const notes = [
    ...(argChoices === undefined ? [] : [argChoices.join(", ")]),
    ...(isShown ? [`default: ${shown}`] : []),
    ...(envVar === undefined ? [] : [`environment: ${envVar}`]),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join("; ")})`;
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

function optionTable(options: readonly Option[]): string[] {
  const rows = options.map(
    (option) => `| \`${option.flags.replaceAll("|", "\\|")}\` | ${cell(describeOption(option))} |`,
  );
  return ["| Option | Meaning |", "|---|---|", ...rows];
}

const described = commands.flatMap(optionsOf).map(describeOption);

/** Options that several commands have, by their descriptions: the page explains these. */
const SHARED = new Map(
  commands
    .flatMap(optionsOf)
    .filter((option) => described.filter((each) => each === describeOption(option)).length > 1)
    .filter(({ argChoices }) => argChoices === undefined)
    .map((option) => [describeOption(option), option]),
);

/** One line for a command: its arguments, and its description. */
function row(command: Command): string {
  const words = usageOf(command).replace(" [options]", "").replaceAll("|", "\\|");
  return `| \`${words}\` | ${command.description()} |`;
}

/** Returns the text of docs/berthctl.md. */
export function berthctlPage(): string {
  return [
    "# berthctl",
    "",
    "`berthctl` asks the agent of this node, on its socket. With `--kubeconfig` or `--context` it asks the API server of a",
    "cluster instead. `kubectl berth` is the same program with kubectl's own kubeconfig: link `kubectl-berth` of the release",
    "into `PATH`. On a node of a cluster, tables begin with `THIS NODE ONLY`.",
    "",
    "Questions to agents (`check`, `explain`, `history`, `recover`, `adopt`) then go to their pods by kubectl's `exec`, on",
    "all nodes or that of `--node`. `release` and `quarantine` go to the agent of the address. [`status`](diagnostics.md#status)",
    "and [`test`](diagnostics.md#test) are about a cluster. [Diagnostics](diagnostics.md) has examples.",
    "",
    "On a laptop, `npm install --global berthctl-VERSION.tgz` of a release installs both; `npx --package berthctl-VERSION.tgz",
    "berthctl` runs it once. For Linux without Node.js there is [one file](develop/release.md#berthctl-alone).",
    "",
    "## Exit codes",
    "",
    "| Code | Meaning |",
    "|---|---|",
    ...EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`),
    "",
    "Over several agents the highest code counts, of `history` the lowest; of `check`, findings count more than silent nodes, and warnings nothing.",
    "",
    "## Output",
    "",
    ...OUTPUT_NOTES.flatMap((note) => [note, ""]),
    "## Completion",
    "",
    "| Shell | Command, or a line of its start file |",
    "|---|---|",
    "| bash | `source <(berthctl completion bash)` |",
    "| zsh | `source <(berthctl completion zsh)`, after `compinit` |",
    "| fish | `berthctl completion fish \\| source` |",
    "",
    "`install.sh` and packages do that. `kubectl berth` needs `kubectl_complete-berth` of the release in `PATH`.",
    "",
    "## Environment",
    "",
    "| Variable | Meaning |",
    "|---|---|",
    ...ENVIRONMENT.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
    "",
    "## Global options",
    "",
    "They may stand before or after the command.",
    "",
    ...optionTable(optionsOf(root)),
    "",
    "## Commands",
    "",
    "`berthctl COMMAND --help` has all options, and examples.",
    "",
    "| Command | What it does |",
    "|---|---|",
    ...commands.map(row),
    "",
    "## Options of several commands",
    "",
    ...optionTable([...SHARED.values()]),
    "| `-o, --output <format>` | `wide`, `name`, `json` or `yaml` in place of a table, `json` or `yaml` of a text |",
    "",
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}
