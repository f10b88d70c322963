/** `berthctl blocks`: blocks of addresses that several clusters lease from a hub (docs/clusters.md). */
import { type Command, Option } from "commander";
import type { CommandLine } from "../command-line.ts";

export function addBlocks(cli: CommandLine): void {
  const blocks = cli.command("blocks", "Blocks of addresses that clusters lease from a hub");
  for (const add of SUBCOMMANDS) add(cli, blocks);
}

/** In the order of the help. */
const SUBCOMMANDS: readonly ((cli: CommandLine, blocks: Command) => void)[] = [];

/** Adds the option of a command that reads or writes AddressRanges. */
export function withHub(command: Command): Command {
  return command.addOption(
    new Option("--hub-kubeconfig <file>", "kubeconfig of an administrator of the hub").makeOptionMandatory(),
  );
}
