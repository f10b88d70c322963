/** The man pages of a release: from the command trees, and from the reference pages of file formats. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { describeAgent } from "../../../host/bin/agent-options.ts";
import { addClusterCommands } from "../../../host/bin/cluster-commands.ts";
import { describeController } from "../../../host/bin/controller-options.ts";
import { addInstallCommands } from "../../../host/bin/install-commands.ts";
import manifest from "../../../package.json" with { type: "json" };
import { root as repository } from "../../setup/paths.mjs";
import { annotationsPage } from "./annotations.ts";
import {
  commands,
  describeOption,
  ENVIRONMENT,
  EXIT_CODES,
  OUTPUT_NOTES,
  optionsOf,
  root,
  usageOf,
  wordsOf,
} from "./berthctl.ts";
import { resourcesPage } from "./resources.ts";
import { roff, roffOf } from "./roff.ts";

/** A page that a release installs in share/man. */
interface ManPage {
  /** Path below it, such as `man1/berthctl-pools.1`. */
  readonly name: string;
  readonly text: string;
}

function optionLines(options: readonly Option[]): string[] {
  return options.flatMap((option) => [".TP", `.B ${roff(option.flags)}`, roff(`${describeOption(option)}.`)]);
}

function manPage(name: string, chapter: 1 | 5 | 7 | 8, summary: string, body: readonly string[]): ManPage {
  const lines = [
    `.TH ${roff(name.toUpperCase())} ${chapter} "" "Berth ${manifest.version}" "Berth"`,
    ".SH NAME",
    `${roff(name)} \\- ${roff(summary)}`,
    ...body,
  ];
  return { name: `man${chapter}/${name}.${chapter}`, text: `${lines.join("\n")}\n` };
}

const COMMON = [
  ".SH EXIT STATUS",
  ...EXIT_CODES.flatMap(([code, meaning]) => [".TP", `.B ${code}`, roff(`${meaning}.`)]),
  ".SH ENVIRONMENT",
  ...ENVIRONMENT.flatMap(([name, meaning]) => [".TP", `.B ${name}`, roff(`${meaning}.`)]),
];

const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

function nameOf(command: Command): string {
  return ["berthctl", ...wordsOf(command)].join("-");
}

function commandPage(command: Command): ManPage {
  const args = command.registeredArguments;
  return manPage(nameOf(command), 1, lower(command.description()), [
    ".SH SYNOPSIS",
    `.B ${roff(usageOf(command))}`,
    ".SH DESCRIPTION",
    roff(`${command.description()}.`),
    ...(args.length === 0
      ? []
      : [".SH ARGUMENTS", ...args.flatMap((each) => [".TP", `.I ${roff(each.name())}`, roff(`${each.description}.`)])]),
    ".SH OPTIONS",
    ...optionLines([...optionsOf(command), ...optionsOf(root)]),
    ...COMMON,
    ".SH SEE ALSO",
    ".BR berthctl (1),",
    ".BR berth (7)",
  ]);
}

const PROGRAM_EXIT_CODES = [
  ["0", "a signal ended it"],
  ["1", "it could not start or go on; the log says why"],
  ["2", "wrong usage"],
] as const;

/** A daemon: its options, and its other commands. */
function daemonPage(program: Command, more: readonly string[]): ManPage {
  const name = program.name();
  const others = program.commands.map((command) => [
    `.SS ${roff(usageOf(command, name))}`,
    roff(`${command.description()}.`),
    ...optionLines(optionsOf(command)),
  ]);
  return manPage(name, 8, lower(program.description().replace(/\. .*/s, "")), [
    ".SH SYNOPSIS",
    `.B ${name}`,
    ".RI [ options ]",
    ".SH DESCRIPTION",
    roff(`${program.description()}.`),
    ...more,
    ".SH OPTIONS",
    ...optionLines(optionsOf(program)),
    ".SH COMMANDS",
    ...others.flat(),
    ".SH EXIT STATUS",
    ...PROGRAM_EXIT_CODES.flatMap(([code, meaning]) => [".TP", `.B ${code}`, roff(`${meaning}.`)]),
    ".SH SEE ALSO",
    ".BR berthctl (1),",
    ".BR berth\\-resources (5),",
    ".BR berth (7)",
  ]);
}

const AGENT = [
  ".PP",
  roff("It allocates the addresses of this node's pods, and sets up their NICs, routes and rules."),
  ".SH FILES",
  ...[
    ["/etc/berth/agent.env", "BERTH_AGENT_OPTIONS: the options of the service berth-agent"],
    ["/etc/berth/pools.d", "pools and settings of a host without a cluster: berth-resources(5)"],
    ["/etc/cni/net.d", "network definitions of the runtimes"],
    ["/opt/cni/bin", "the plugins berth, coordinator and ifacer"],
    ["/run/berth/agent.sock", "the socket that plugins and berthctl call"],
    ["/var/lib/berth", "registry of addresses, and DELs that no agent has taken yet"],
    ["/var/log/vendor", "audit log, berth-audit(5), and the coordinator's log"],
  ].flatMap(([path = "", meaning = ""]) => [".TP", `.I ${roff(path)}`, roff(`${meaning}.`)]),
];

/** A reference page of the repository. */
function formatPage(name: string, summary: string, markdown: string): ManPage {
  return manPage(name, 5, summary, [".SH DESCRIPTION", ...roffOf(markdown), ".SH SEE ALSO", ".BR berth (7)"]);
}

/** What there is, and where it is described. */
function overviewPage(others: readonly ManPage[]): ManPage {
  const chapters = others.filter(({ name }) => !name.startsWith("man1/berthctl-"));
  return manPage("berth", 7, lower(manifest.description.replace(/:.*/, "")), [
    ".SH DESCRIPTION",
    roff(`${manifest.description}.`),
    ".PP",
    roff(
      "On each node an agent answers the CNI plugins berth (addresses), coordinator (routes and rules of pods with several NICs) and ifacer (VLANs and bonds), which runtimes call. It has its pools from files, or from the API server of a cluster, where a controller looks after what no single node knows.",
    ),
    ".PP",
    roff("Tasks are described in /usr/share/doc/berth/docs, from README.md on."),
    ".SH SEE ALSO",
    ...chapters.map(({ name }, index) => {
      const [, page = "", chapter] = /^.*\/(.+)\.(\d)$/.exec(name) ?? [];
      return `.BR ${roff(page)} (${chapter})${index < chapters.length - 1 ? "," : ""}`;
    }),
  ]);
}

/** Returns a page for each program, each command of berthctl, and each format of files; and an overview. */
export function manPages(): ManPage[] {
  const overview = manPage("berthctl", 1, "inspect and repair Berth, on a node or in a cluster", [
    ".SH SYNOPSIS",
    ".B berthctl",
    ".RI [ options ]",
    ".I command",
    ".RI [ arguments ]",
    ".SH DESCRIPTION",
    roff("Asks the agent of this node on its socket, or with --kubeconfig the API server of a cluster."),
    ".B kubectl berth",
    roff("is the same program with the kubeconfig of kubectl."),
    ...OUTPUT_NOTES.flatMap((note) => [".PP", roff(note)]),
    ".SH COMMANDS",
    ...commands.flatMap((command) => [".TP", `.BR ${roff(nameOf(command))} (1)`, roff(`${command.description()}.`)]),
    ".SH OPTIONS",
    ...optionLines(optionsOf(root)),
    ...COMMON,
  ]);
  const plugin = { name: "man1/kubectl-berth.1", text: ".so man1/berthctl.1\n" };
  const pages = [
    overview,
    ...commands.map(commandPage),
    plugin,
    daemonPage(addInstallCommands(describeAgent()), AGENT),
    daemonPage(addClusterCommands(describeController()), []),
    formatPage("berth-resources", "pools, settings and network definitions of Berth", resourcesPage()),
    formatPage("berth-annotations", "annotations that choose the addresses of a pod", annotationsPage()),
    formatPage(
      "berth-audit",
      "the log of who had which address",
      readFileSync(join(repository, "docs/audit-log.md"), "utf8"),
    ),
  ];
  return [...pages, overviewPage(pages)];
}
