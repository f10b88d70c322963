/**
 * The command tree of berthctl and kubectl berth.
 *
 * To add a command:
 *
 * 1. Write `commands/NAME.ts` with a function `addName(cli: CommandLine)`: `cli.command(name, description,
 *    examples)`, its options, and an action. * `cli.run(flags, work)` for a command that reads `call.source()`:
 *    the same code serves a node's agent and a cluster. If the source lacks a question, add it to `source.ts` and
 *    to both implementations. * `cli.runOnAgents(flags, work)` for a question that only agents can answer; `work`
 *    gets the socket. In a cluster the same words are called in the agents' pods. * `withOutput(command)` adds
 *    `-o` and `--no-headers` for a list (columns are a `Table`, printed by `call.out.list` or `showList`);
 *    `withRecordOutput` adds `-o json|yaml` for `call.out.report(lines, record)`. Print through `call.out` only:
 *    it escapes text from outside. * Return an ExitCode. Throw ProblemError, UsageError or AgentError;
 *    exit-code.ts maps them. * A record that an agent answers with has a schema in host/records, which the agent's
 *    status API imports too.
 * 2. Add it to `COMMANDS` below. Completion and docs/berthctl.md follow from the tree: `npm run generate`.
 */

import { CommanderError } from "commander";
import { documentation } from "../lib/documentation.ts";
import { CommandLine, type CommandLineOptions } from "./command-line.ts";
import { addDoctor, addHealth } from "./commands/aliases.ts";
import { addAllocations } from "./commands/allocations.ts";
import { addCheck } from "./commands/check.ts";
import { addCompletion, COMPLETE, runCompletion } from "./commands/completion.ts";
import { addExplain } from "./commands/explain.ts";
import { addHistory } from "./commands/history.ts";
import { addIp, addPod } from "./commands/ip.ts";
import { addNetwork } from "./commands/network.ts";
import { addPools } from "./commands/pools.ts";
import { addRecover } from "./commands/recover.ts";
import { addQuarantine, addRelease } from "./commands/release.ts";
import { addReservations } from "./commands/reservations.ts";
import { addReserve } from "./commands/reserve.ts";
import { addStatus } from "./commands/status.ts";
import { addVersion } from "./commands/version.ts";
import { ExitCode } from "./exit-code.ts";

/** In the order of the help. */
const COMMANDS: readonly ((cli: CommandLine) => void | Promise<void>)[] = [
  addCheck,
  addStatus,
  addPools,
  addAllocations,
  addIp,
  addPod,
  addExplain,
  addHistory,
  addReservations,
  addReserve,
  addRelease,
  addQuarantine,
  addRecover,
  addNetwork,
];

/** After those of {@link CommandLineOptions.more}. */
const LAST_COMMANDS: readonly ((cli: CommandLine) => void)[] = [addVersion, addCompletion, addDoctor, addHealth];

const EXAMPLES = {
  berthctl: `
Examples:
  berthctl check                                   what is wrong with this node, and what to do
  berthctl pools -o wide                           pools and their usage
  berthctl allocations -n shop --state bound       addresses of the pods of a namespace
  berthctl --kubeconfig admin.conf pools           the same of a whole cluster

Exit codes: 0 success, 1 problem found, 2 usage error, 3 no answer.`,
  "kubectl berth": `
Examples:
  kubectl berth pools                              pools of the cluster and their usage
  kubectl berth --node worker-1 allocations        addresses of the pods of a node
  kubectl berth status --wait                      is it ready, and what is full
  kubectl berth check                              what is wrong with the cluster, and what to do
  kubectl berth --node worker-1 explain web-0 -n shop    asks the agent of a node

Exit codes: 0 success, 1 problem found, 2 usage error, 3 no answer.`,
};

const DESCRIPTIONS = {
  berthctl: "Inspect and recover Berth: the agent of this node, or with --kubeconfig a cluster",
  "kubectl berth": "Inspect Berth in a cluster",
};

/** Returns the tree without running anything. */
export async function createCommands(options: CommandLineOptions): Promise<CommandLine> {
  const cli = new CommandLine(options);
  const more = `${EXAMPLES[options.program]}\n\nDocumentation: ${documentation("berthctl.html")}`;
  cli.root.description(DESCRIPTIONS[options.program]).addHelpText("after", more);
  for (const add of [...COMMANDS, ...(options.more ?? []), ...LAST_COMMANDS]) await add(cli);
  return cli;
}

/** Runs one command line. */
export async function runCommands(options: CommandLineOptions): Promise<ExitCode> {
  const cli = await createCommands(options);
  const { words, terminal } = options;
  if (words.length === 0) {
    terminal.write(cli.root.helpInformation());
    return ExitCode.Success;
  }
  if (words[0] === COMPLETE) {
    await runCompletion(cli, words.slice(1));
    return cli.exitCode;
  }
  try {
    await cli.root.parseAsync([...words], { from: "user" });
    return cli.exitCode;
  } catch (error) {
    // Its text is already printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.Success : ExitCode.Usage;
    throw error;
  }
}
